/** Entries that are deleted from one `Map` before the next takes its place. */
const DELETED = 1_000

/**
 * A map whose entries come and go, however many in all.
 *
 * A `Map` of V8 leaves a trail of such: each time that it makes its table anew the old table keeps pointing to the new one.
 * Once one of them has grown old it keeps all that came after it from the quick collection of what is young, entries
 * included, until a collection of everything. So the entries move to a new `Map` now and then, where the trail ends.
 */
export class ShortLivedMap<Key, Value> {
  #map = new Map<Key, Value>()
  #deleted = 0

  get(key: Key): Value | undefined {
    return this.#map.get(key)
  }

  set(key: Key, value: Value): void {
    this.#map.set(key, value)
  }

  /** Whether there was such an entry. */
  delete(key: Key): boolean {
    if (!this.#map.delete(key)) return false
    this.#deleted += 1
    // Each entry moves once, on average, for each that is deleted.
    if (this.#deleted > DELETED && this.#deleted > this.#map.size) {
      this.#map = new Map(this.#map)
      this.#deleted = 0
    }
    return true
  }

  /** In the order in which they were set first. */
  entries(): Iterable<[Key, Value]> {
    return this.#map.entries()
  }

  clear(): void {
    this.#map = new Map()
    this.#deleted = 0
  }
}
