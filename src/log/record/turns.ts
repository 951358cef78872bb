/**
 * Names that the recorders of one open log have one after the other. The claims of a store keep open logs apart; a name that the
 * same open log claims again is taken from its earlier claim.
 */
export class Turns {
  /** Functions that begin the waiting turns, by the name that is taken. */
  readonly #waiting = new Map<string, Set<() => void>>()

  /** Takes a name, and returns a function that ends this turn; undefined while another turn has it. */
  takeIfFree(name: string): (() => void) | undefined {
    if (this.#waiting.has(name)) return undefined
    this.#waiting.set(name, new Set())
    return this.#endOf(name)
  }

  /** Resolves after the earlier turns of this name, with a function that ends this one. Rejects with the signal's reason. */
  async take(name: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    const waiting = this.#waiting.get(name) ?? new Set()
    const end = this.takeIfFree(name)
    if (end !== undefined) return end
    const turn = Promise.withResolvers<() => void>()
    const begin = () => turn.resolve(this.#endOf(name))
    const leave = () => {
      // A turn that has begun is ended by its owner.
      if (waiting.delete(begin)) turn.reject(signal.reason)
    }
    waiting.add(begin)
    signal.addEventListener('abort', leave)
    try {
      return await turn.promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** Returns a function that ends a turn and begins the next one. */
  #endOf(name: string): () => void {
    let hasEnded = false
    return () => {
      if (hasEnded) return
      hasEnded = true
      const waiting = this.#waiting.get(name)
      const [next] = waiting ?? []
      if (next === undefined) this.#waiting.delete(name)
      else {
        waiting?.delete(next)
        next()
      }
    }
  }
}
