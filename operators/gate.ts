/**
 * A consumer's way to hold back its sources. RxJS pushes: a source that reads a socket cannot know that its subscriber
 * is behind. So the consumer closes the gate that it subscribed through, and sources stop reading while it is closed.
 *
 * Events that a source had already read when the gate closed may still arrive: at the most one chunk or one page.
 */
export class Gate {
  #closed = false
  readonly #listeners = new Set<(closed: boolean) => void>()

  /** Whether sources shall stop reading. */
  get closed(): boolean {
    return this.#closed
  }

  /** Asks sources to stop reading. */
  close(): void {
    this.#set(true)
  }

  /** Lets sources read again. */
  open(): void {
    this.#set(false)
  }

  /** Calls the listener at each change until the function that it returns is called. */
  onChange(listener: (closed: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #set(closed: boolean): void {
    if (this.#closed === closed) return
    this.#closed = closed
    // Not with `closed`: a source that is let go on may fill its consumer at once, who closes again before the others hear.
    for (const listener of this.#listeners) listener(this.#closed)
  }
}

// Subscribing is synchronous from the consumer up to every source, through `merge`, `map` and the like. So the gate of
// the consumer that subscribes right now reaches the sources without passing through operators that know nothing of it.
let ambient: Gate | undefined

/** The gate of the consumer that is subscribing right now, for a source to keep as long as it is subscribed. */
export function currentGate(): Gate | undefined {
  return ambient
}

/** Subscribes on behalf of a consumer with this gate: sources subscribed within `subscribe` obey it. */
export function throughGate<T>(gate: Gate | undefined, subscribe: () => T): T {
  const outer = ambient
  ambient = gate
  try {
    return subscribe()
  } finally {
    ambient = outer
  }
}
