import { refusalResponse } from '../http-answer.ts'

/** How soon a client may try again that has too many connections, in ms. */
const RETRY_AFTER = 5_000

/** Counts the open connections, or running requests, of each subject. */
export class SubjectConnections {
  readonly #max: number
  readonly #counts = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** A function to call when the connection has ended, any number of times; or a refusal. */
  open(sub: string): (() => void) | Response {
    const count = this.#counts.get(sub) ?? 0
    if (count >= this.#max) {
      const message = `this subject has ${this.#max} of them open`
      return refusalResponse('too_many', message, { retryAfter: RETRY_AFTER })
    }
    this.#counts.set(sub, count + 1)
    let isOpen = true
    return () => {
      if (isOpen) this.#close(sub)
      isOpen = false
    }
  }

  #close(sub: string): void {
    const count = (this.#counts.get(sub) ?? 0) - 1
    if (count > 0) this.#counts.set(sub, count)
    else this.#counts.delete(sub)
  }
}
