import type { ProcessStore } from '../store/process-store.ts'

/** Maximum number of states in memory, and their length together, in characters. */
const MAX_STATES = 10_000
const MAX_LENGTH = 16 * 1024 * 1024

/** The states of a process, as JSON: those of the last keys are in memory, the others in the store. */
export class States {
  readonly #store: ProcessStore
  readonly #name: string
  /** States by key, in the order of their last use. Null for a key without a state. */
  readonly #cached = new Map<string, string | null>()
  #length = 0

  constructor(store: ProcessStore, name: string) {
    this.#store = store
    this.#name = name
  }

  /** The state of a key that is in memory; undefined for another one. */
  peek(key: string): string | null | undefined {
    return this.#cached.get(key)
  }

  /** Reads those of these keys that are not in memory. */
  async load(keys: Iterable<string>): Promise<void> {
    const missing: string[] = []
    for (const key of new Set(keys)) {
      const state = this.#cached.get(key)
      if (state === undefined) missing.push(key)
      else this.set(key, state)
    }
    if (missing.length === 0) return
    const found = await this.#store.states(this.#name, missing)
    for (const [index, key] of missing.entries()) this.set(key, found[index] ?? null)
  }

  set(key: string, state: string | null): void {
    this.#remove(key)
    this.#cached.set(key, state)
    this.#length += state?.length ?? 0
  }

  /** Drops states that were not used for longest. Call it when the store has all of them. */
  trim(): void {
    for (const key of this.#cached.keys()) {
      if (this.#cached.size <= MAX_STATES && this.#length <= MAX_LENGTH) return
      this.#remove(key)
    }
  }

  #remove(key: string): void {
    this.#length -= this.#cached.get(key)?.length ?? 0
    this.#cached.delete(key)
  }
}
