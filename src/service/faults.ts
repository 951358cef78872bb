/** What the service can be told to do wrong, so that users can try their pipelines. */
export type Fault =
  /** Cuts a group's stream after `after` events, by destroying its socket. */
  | { readonly kind: 'cut'; readonly after: number; readonly times?: number }
  /** Answers requests whose path begins with `path` (default all) with this status and, in seconds, `Retry-After`. */
  | {
      readonly kind: 'status'
      readonly status: number
      readonly retryAfter?: number
      readonly path?: string
      readonly times?: number
    }
  /** Delivers a webhook twice. */
  | { readonly kind: 'repeat'; readonly times?: number }
  /** Holds a webhook back until the one after it has been delivered. */
  | { readonly kind: 'reorder'; readonly times?: number }

/** The name of a kind of fault. */
export type FaultKind = Fault['kind']

type Armed = { readonly fault: Fault; left: number }

/** The faults that are armed, each for a number of times (default without end). */
export class Faults {
  #armed: Armed[] = []

  /** Arms a fault. */
  add(fault: Fault): void {
    this.#armed.push({ fault, left: fault.times ?? Infinity })
  }

  /** Disarms every fault. */
  clear(): void {
    this.#armed = []
  }

  /** The first armed fault of this kind that fits, counted as used. */
  take<Kind extends FaultKind>(
    kind: Kind,
    fits: (fault: Extract<Fault, { kind: Kind }>) => boolean = () => true,
  ): Extract<Fault, { kind: Kind }> | undefined {
    const armed = this.#armed.find(
      (entry): entry is Armed & { readonly fault: Extract<Fault, { kind: Kind }> } =>
        entry.left > 0 && entry.fault.kind === kind && fits(entry.fault as Extract<Fault, { kind: Kind }>),
    )
    if (armed === undefined) return undefined
    armed.left -= 1
    return armed.fault
  }
}
