import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Server, Socket } from 'node:net'

/** Where a connection breaks: after this many bytes that the client sends (`up`) or receives (`down`). */
export interface Cut {
  readonly side: 'up' | 'down'
  readonly bytes: number
}

/** A proxy that breaks connections at any byte: one cut for each connection, in order, and none after the last. The test closes it. */
export class CutWire {
  readonly #cuts: (Cut | undefined)[]
  readonly #sockets = new Set<Socket>()
  /** How many bytes each open connection still passes. */
  readonly #left = new Set<Record<Cut['side'], number>>()
  readonly #server = createServer((client) => this.#forward(client))
  /** The port that it forwards to. */
  #target = 0
  /** Number of connections that it has broken. */
  broken = 0

  constructor(cuts: readonly (Cut | undefined)[]) {
    this.#cuts = [...cuts]
  }

  /** Forwards to this port. Resolves to the URL of the proxy. */
  async open(target: number): Promise<string> {
    this.#target = target
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${portOf(this.#server)}`
  }

  /** Breaks the open connections too, after this many further bytes, and then the next ones in this order. */
  breakFromNow(first: Cut, ...others: readonly Cut[]): void {
    for (const left of this.#left) left[first.side] = first.bytes
    this.#cuts.unshift(first, ...others)
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #forward(client: Socket): void {
    const service = connect(this.#target, '127.0.0.1')
    const cut = this.#cuts.shift()
    const both = [client, service]
    const left = { up: Infinity, down: Infinity, ...(cut && { [cut.side]: cut.bytes }) }
    this.#left.add(left)
    const end = () => {
      this.#left.delete(left)
      for (const socket of both) socket.destroy()
    }
    for (const socket of both) {
      this.#sockets.add(socket)
      socket.on('error', end)
      socket.on('close', end)
    }
    const pass = (side: Cut['side'], from: Socket, to: Socket) => {
      from.on('data', (chunk) => {
        const rest = left[side]
        left[side] -= chunk.length
        if (left[side] > 0) return to.write(chunk)
        if (rest > 0) this.broken += 1
        // Bytes before the cut arrive, and none after it.
        return to.write(chunk.subarray(0, rest), () => end())
      })
    }
    pass('up', client, service)
    pass('down', service, client)
  }
}

/** The port of a listening server. */
export function portOf(server: Pick<Server, 'address'>): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}
