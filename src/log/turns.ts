/**
 * Names that the recorders of one open log have one after the other. The claims of a store keep open logs apart; a name that the
 * same open log claims again is taken from its earlier claim.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>()

  /** Resolves after the earlier turns of this name, with a function that ends this one. Rejects with the signal's reason. */
  async take(name: string, signal: AbortSignal): Promise<() => void> {
    const turn = Promise.withResolvers<void>()
    const earlier = this.#last.get(name)
    const last = Promise.all([earlier, turn.promise]).then(() => {
      if (this.#last.get(name) === last) this.#last.delete(name)
    })
    this.#last.set(name, last)
    try {
      await aborted(earlier, signal)
    } catch (error) {
      turn.resolve()
      throw error
    }
    return turn.resolve
  }
}

/** Resolves with the promise, or rejects once the signal is aborted. */
async function aborted(promise: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (promise === undefined) return
  const abort = Promise.withResolvers<never>()
  const reject = () => abort.reject(signal.reason)
  signal.addEventListener('abort', reject)
  try {
    await Promise.race([promise, abort.promise])
  } finally {
    signal.removeEventListener('abort', reject)
  }
}
