/**
 * Does one work after the other. Works that yield to the event loop would otherwise each have a part in every turn of it, and delay
 * everything else by their number.
 */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  /** Does the work in its turn. Rejects with the reason of the signal, and does nothing, if that is aborted before. */
  take<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const done = this.#last.then(() => {
      signal?.throwIfAborted()
      return work()
    })
    this.#last = done.catch(() => {})
    return done
  }
}
