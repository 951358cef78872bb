/** A FIFO queue. `shift` is O(1) amortized, while `Array.shift` moves every remaining item. */
export class Queue<T> {
  #items: T[] = []
  #head = 0

  /** Number of items. */
  get size(): number {
    return this.#items.length - this.#head
  }

  /** Appends an item. */
  push(item: T): void {
    this.#items.push(item)
  }

  /** The last item; undefined when the queue is empty. */
  get last(): T | undefined {
    return this.size === 0 ? undefined : this.#items.at(-1)
  }

  /** Puts another item in the place of the last one. */
  replaceLast(item: T): void {
    this.#items[this.#items.length - 1] = item
  }

  /** Puts items in front of the first one. */
  unshift(items: readonly T[]): void {
    this.#items = [...items, ...this.#items.slice(this.#head)]
    this.#head = 0
  }

  /** Removes and returns the first item; undefined when the queue is empty. */
  shift(): T | undefined {
    if (this.size === 0) return undefined
    const item = this.#items[this.#head]
    this.#head += 1
    // Compacts when half of the array is consumed: each item moves at most once on average, and consumed items are freed soon.
    if (this.#head >= 64 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Removes all items and returns them. */
  drain(): readonly T[] {
    const items = this.#items.slice(this.#head)
    this.clear()
    return items
  }

  /** Removes all items. */
  clear(): void {
    this.#items = []
    this.#head = 0
  }
}
