import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

/** How long a connection stalls at most, in ms. */
const MAX_STALL = 1_500

/** A proxy between a browser and a gateway which cuts connections anywhere in a frame, or lets them stall. */
export class UnreliableProxy implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#accept(socket))
  readonly #sockets = new Set<Socket>()
  readonly #random: () => number
  /** The port of the gateway. */
  target = 0
  connections = 0
  cuts = 0
  stalls = 0
  /** From now on, it forwards all. */
  isReliable = false

  readonly #mean: number

  /** @param mean After how many bytes of a response a connection is cut or stalls, on average. */
  constructor(random: () => number, mean: number) {
    this.#random = random
    this.#mean = mean
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    this.connections += 1
    const gateway = connect(this.target, '127.0.0.1')
    const cut = () => {
      client.destroy()
      gateway.destroy()
    }
    for (const socket of [client, gateway]) {
      this.#sockets.add(socket)
      socket.on('error', cut)
      socket.on('close', () => {
        this.#sockets.delete(socket)
        cut()
      })
    }
    client.pipe(gateway)
    let left = this.#patience()
    gateway.on('data', (bytes: Buffer) => {
      if (this.isReliable || bytes.length < left) {
        left -= bytes.length
        client.write(bytes)
        return
      }
      client.write(bytes.subarray(0, left))
      if (this.#random() < 0.7) {
        this.cuts += 1
        // What was written is sent first.
        client.end(cut)
        return
      }
      this.stalls += 1
      gateway.pause()
      setTimeout(() => {
        client.write(bytes.subarray(left))
        left = this.#patience()
        gateway.resume()
      }, this.#random() * MAX_STALL)
    })
  }

  #patience(): number {
    return 1 + Math.floor(this.#random() * 2 * this.#mean)
  }
}
