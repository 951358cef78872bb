import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server } from 'node:net'

/** What is lost when the connection breaks: the write, or the answer to it. */
export type Loss = 'write' | 'answer'

/** The answer to a request for messages where there are none: fields without a payload. */
const NONE = 'NATS/1.0 404 No Messages\r\n\r\n'

/** A TCP proxy that breaks the connection at a write, or holds it up there. */
export class LossyProxy {
  readonly #server: Server
  #armed: { readonly loss: Loss; readonly subject: string; readonly isLast: boolean } | undefined
  #isShut = false
  #held:
    | { readonly subject: string; readonly reached: () => void; readonly released: Promise<void> }
    | undefined
  #unanswered: string | undefined
  #emptied: string | undefined
  /** How often a connection was broken. */
  broken = 0

  private constructor(port: number) {
    this.#server = createServer((client) => {
      if (this.#isShut) return void client.destroy()
      const server = connect(port, '127.0.0.1')
      let isLosingAnswers = false
      const end = () => {
        client.destroy()
        server.destroy()
      }
      client.on('data', (data) => {
        if (this.#held !== undefined && data.includes(`PUB ${this.#held.subject}`)) {
          const { reached, released } = this.#held
          this.#held = undefined
          client.pause()
          reached()
          return void released.then(() => {
            server.write(data)
            client.resume()
          })
        }
        if (this.#armed !== undefined && data.includes(`HPUB ${this.#armed.subject}`)) {
          const { loss, isLast } = this.#armed
          this.#isShut = isLast
          this.#armed = undefined
          this.broken += 1
          if (loss === 'write') return end()
          isLosingAnswers = true
        }
        if (this.#unanswered !== undefined && data.includes(`PUB ${this.#unanswered} _`)) {
          const request = `PUB ${this.#unanswered} `
          this.#unanswered = undefined
          // The answer goes to a subject that is not subscribed to.
          return server.write(data.toString('latin1').replace(`${request}_`, `${request}x`), 'latin1')
        }
        if (this.#emptied !== undefined && data.includes(`PUB ${this.#emptied}`)) {
          const text = data.toString('latin1')
          const start = text.indexOf(`PUB ${this.#emptied}`)
          const payload = text.indexOf('\r\n', start) + 2
          const [, , reply, size] = text.slice(start, payload).split(/[ \r]/)
          this.#emptied = undefined
          // The client answers itself, in place of the request.
          const answer = `HPUB ${reply} ${NONE.length} ${NONE.length}\r\n${NONE}`
          return server.write(text.slice(0, start) + answer + text.slice(payload + Number(size)), 'latin1')
        }
        return server.write(data)
      })
      server.on('data', (data) => (isLosingAnswers ? end() : client.write(data)))
      for (const socket of [client, server]) socket.on('close', end).on('error', end)
    })
  }

  static async start(port: number): Promise<LossyProxy> {
    const proxy = new LossyProxy(port)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get url(): string {
    const { port }: Pick<AddressInfo, 'port'> = Object.assign({ port: 0 }, this.#server.address())
    return `nats://127.0.0.1:${port}`
  }

  /** The next write to a subject that begins so breaks its connection. @param isLast Whether there is no other one until {@link open}. */
  arm(loss: Loss, subject: string, isLast = false): void {
    this.#armed = { loss, subject, isLast }
  }

  /** The next request to this subject gets no answer. */
  leaveUnanswered(subject: string): void {
    this.#unanswered = subject
  }

  /** The next request for messages to a subject that begins so is answered as if there were none. */
  answerEmpty(subject: string): void {
    this.#emptied = subject
  }

  /** Whether the request of {@link answerEmpty} has been sent. */
  get hasAnsweredEmpty(): boolean {
    return this.#emptied === undefined
  }

  /** Whether the request of {@link leaveUnanswered} has been sent. */
  get hasLostAnswer(): boolean {
    return this.#unanswered === undefined
  }

  open(): void {
    this.#isShut = false
  }

  /**
   * Holds up the next write to a subject that begins so, and all that its connection sends after it. `reached` resolves when it is
   * there.
   */
  hold(subject: string): { readonly reached: Promise<void>; readonly release: () => void } {
    const reached = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    this.#held = { subject, reached: reached.resolve, released: released.promise }
    return { reached: reached.promise, release: released.resolve }
  }

  close(): void {
    this.#server.close()
  }
}
