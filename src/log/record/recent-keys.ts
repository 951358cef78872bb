/** The latest keys, so many at most. */
export class RecentKeys {
  readonly #capacity: number
  readonly #keys = new Set<string>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  add(key: string): void {
    this.#keys.add(key)
    if (this.#keys.size <= this.#capacity) return
    const [oldest] = this.#keys
    if (oldest !== undefined) this.#keys.delete(oldest)
  }
}
