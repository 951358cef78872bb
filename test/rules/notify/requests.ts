import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { serve } from '../../support/serve.ts'

/** A request as the server has it. */
export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** How a server answers. */
export type Answer = (response: ServerResponse, received: Received, request: IncomingMessage) => void

/** A server that keeps what it receives, in the order of arrival, and lets a test wait for it. */
export class Receiver {
  url = ''
  readonly received: Received[] = []
  answer: Answer
  readonly #waiting = new Set<() => void>()

  private constructor(answer: Answer) {
    this.answer = answer
  }

  static async start(answer: Answer = (response) => response.end()): Promise<Receiver> {
    const receiver = new Receiver(answer)
    receiver.url = await serve((request, response) => {
      void buffer(request).then(
        (bytes) => {
          const { url: path = '', headers } = request
          const received = { path, headers, body: bytes.toString() }
          receiver.received.push(received)
          receiver.answer(response, received, request)
          for (const wake of receiver.#waiting) wake()
        },
        () => undefined,
      )
    })
    return receiver
  }

  /** Resolves once this is not undefined, which is tried after each request. */
  until<T>(find: (received: readonly Received[]) => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const look = () => {
        const found = find(this.received)
        if (found === undefined) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
  }

  /** Resolves with the first requests of this number. */
  requests(count: number): Promise<readonly Received[]> {
    return this.until((received) => (received.length >= count ? received.slice(0, count) : undefined))
  }
}
