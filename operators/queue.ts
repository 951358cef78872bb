/** First in, first out. `Array.shift` moves everything that is left, which a long queue would feel. */
export class Queue<T> {
  #items: T[] = []
  #head = 0

  /** How many wait. */
  get size(): number {
    return this.#items.length - this.#head
  }

  /** Adds at the end. */
  push(item: T): void {
    this.#items.push(item)
  }

  /** Takes the first; undefined when nothing waits. */
  shift(): T | undefined {
    if (this.size === 0) return undefined
    const item = this.#items[this.#head]
    this.#head += 1
    // Each item is moved once at the most on average, and those taken do not stay in memory for long.
    if (this.#head >= 64 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Drops everything. */
  clear(): void {
    this.#items = []
    this.#head = 0
  }
}
