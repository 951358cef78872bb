/** Listeners for changes of a resource, by its id. */
export class Listeners {
  readonly #byId = new Map<string, Set<() => void>>()

  /** Calls the listener at each change of the resource. Returns a function that removes it. */
  on(id: string, listener: () => void): () => void {
    const listeners = this.#byId.get(id) ?? new Set()
    this.#byId.set(id, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#byId.get(id) === listeners) this.#byId.delete(id)
    }
  }

  /** Yields now and after each change of the resource, until the signal is aborted. Changes during a step are one. */
  async *changes(id: string, signal: AbortSignal): AsyncGenerator<undefined> {
    let hasChanged = true
    let wake = () => {}
    const onAbort = () => wake()
    const remove = this.on(id, () => {
      hasChanged = true
      wake()
    })
    signal.addEventListener('abort', onAbort)
    try {
      while (!signal.aborted) {
        if (hasChanged) {
          hasChanged = false
          yield
        } else {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      }
    } finally {
      remove()
      signal.removeEventListener('abort', onAbort)
    }
  }

  notify(id: string): void {
    for (const listener of this.#byId.get(id) ?? []) listener()
  }
}
