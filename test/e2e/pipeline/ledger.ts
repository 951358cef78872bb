/** Something that happened at the service, as the model knows it. */
export interface Fact {
  /** The resource it is about, whose gap has to say so where it was forgotten before it was handled. */
  readonly source: string
  /** What the client may call it, by {@link keyOf}; several where the service gives it a new number. */
  readonly keys: Set<string>
  /** The streams that have it, by the names that a checkpoint gives them, and what they tell of it: see `completeness`. */
  readonly places: Map<string, number>
  /** The streams that had it. */
  readonly lost: Set<string>
  /** What webhooks tell of it that were answered with 2xx. */
  accepted: number | undefined
}

/** Whatever is told has an identity: its source and its id. */
export function keyOf({ source, id }: { readonly source: string; readonly id: string }): string {
  return `${source} ${id}`
}

/** All that happened at the service. */
export class Ledger {
  readonly facts: Fact[] = []
  /** Called when the last stream has forgotten a fact. */
  onForgotten: (fact: Fact) => void = () => {}
  readonly #byKey = new Map<string, Fact>()

  /** The fact with this key, noted if it is new. */
  note(key: string, source: string): Fact {
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const fact = {
      source,
      keys: new Set<string>(),
      places: new Map(),
      lost: new Set<string>(),
      accepted: undefined,
    }
    this.facts.push(fact)
    this.alias(fact, key)
    return fact
  }

  /** The fact is told by this key too. */
  alias(fact: Fact, key: string): void {
    fact.keys.add(key)
    this.#byKey.set(key, fact)
  }

  /** The stream forgets the fact. */
  forget(fact: Fact, stream: string): void {
    if (!fact.places.delete(stream)) return
    fact.lost.add(stream)
    if (fact.places.size === 0) this.onForgotten(fact)
  }

  find(key: string): Fact | undefined {
    return this.#byKey.get(key)
  }
}
