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

  notify(id: string): void {
    for (const listener of this.#byId.get(id) ?? []) listener()
  }
}
