/** An event at the service, as the model knows it. */
export interface ExpectedEvent {
  /** Its resource, whose gap must report it where it was dropped before it was handled. */
  readonly source: string
  /** Its identities by {@link keyOf}; several where the service renumbers it. */
  readonly keys: Set<string>
  /** Its completeness in each stream that has it, by the stream's name in a log: see `completeness`. */
  readonly streams: Map<string, number>
  /** The streams that dropped it. */
  readonly lost: Set<string>
  /** Its completeness in the webhooks that were answered with 2xx, with what the client fetches for them. */
  accepted: number | undefined
  /** The same without what is fetched. */
  sent: number | undefined
  /** Whether the service has refused to return more for good. */
  isRefused: boolean
}

/** The identity of an event: its source and its id. */
export function keyOf({ source, id }: { readonly source: string; readonly id: string }): string {
  return `${source} ${id}`
}

/** All events at the service. */
export class ExpectedEvents {
  readonly events: ExpectedEvent[] = []
  /** Called when the last stream has dropped an event. */
  onForgotten: (expected: ExpectedEvent) => void = () => {}
  readonly #byKey = new Map<string, ExpectedEvent>()

  /** The event with this key, added if it is new. */
  add(key: string, source: string): ExpectedEvent {
    const known = this.#byKey.get(key)
    if (known !== undefined) return known
    const expected = {
      source,
      keys: new Set<string>(),
      streams: new Map(),
      lost: new Set<string>(),
      accepted: undefined,
      sent: undefined,
      isRefused: false,
    }
    this.events.push(expected)
    this.alias(expected, key)
    return expected
  }

  /** Adds a key of the event. */
  alias(expected: ExpectedEvent, key: string): void {
    expected.keys.add(key)
    this.#byKey.set(key, expected)
  }

  /** The stream drops the event. */
  forget(expected: ExpectedEvent, stream: string): void {
    if (!expected.streams.delete(stream)) return
    expected.lost.add(stream)
    if (expected.streams.size === 0) this.onForgotten(expected)
  }

  find(key: string): ExpectedEvent | undefined {
    return this.#byKey.get(key)
  }
}
