/** Who wants to hear of a change to which resource, by its id. */
export class Listeners {
  readonly #byId = new Map<string, Set<() => void>>()

  /** Calls the listener at each change of the resource until the function that it returns is called. */
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
