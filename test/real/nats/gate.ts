import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

/** A TCP proxy on a free port that can be shut: what goes through it is cut off then, and nothing else comes through. */
export class Gate {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isOpen = true
  /** The port behind it, which may change. */
  target = 0

  private constructor() {
    this.#server = createServer((near) => {
      if (!this.#isOpen || this.target === 0) {
        near.destroy()
        return
      }
      const far = connect(this.target, '127.0.0.1')
      const end = () => {
        near.destroy()
        far.destroy()
        this.#sockets.delete(near)
      }
      this.#sockets.add(near)
      for (const socket of [near, far]) socket.setNoDelay(true).on('close', end).on('error', end)
      near.pipe(far)
      far.pipe(near)
    })
  }

  static async start(): Promise<Gate> {
    const gate = new Gate()
    gate.#server.listen(0, '127.0.0.1')
    await once(gate.#server, 'listening')
    return gate
  }

  get port(): number {
    const { port }: Pick<AddressInfo, 'port'> = Object.assign({ port: 0 }, this.#server.address())
    return port
  }

  /** Number of connections that go through it. */
  get connections(): number {
    return this.#sockets.size
  }

  shut(): void {
    this.#isOpen = false
    for (const socket of this.#sockets) socket.destroy()
  }

  open(): void {
    this.#isOpen = true
  }

  close(): void {
    this.shut()
    this.#server.close()
  }
}
