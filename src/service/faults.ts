import { checkInteger, checkOneOf, checkText } from '../protocol/check.ts'

/** What the service can be told to do wrong, so that users can try their pipelines. Each `times` times, default without end. */
export type Fault =
  /** Cuts a group's stream after `after` events of one connection, by destroying its socket. */
  | { readonly kind: 'cut'; readonly after: number; readonly times?: number }
  /** Answers requests whose path begins with `path` (default all) with this status (4xx, 5xx) and `Retry-After`, in s. */
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

const KINDS = ['cut', 'status', 'repeat', 'reorder'] as const satisfies readonly FaultKind[]

type Armed = { readonly fault: Fault; left: number }

/** The faults that are armed, in the order in which they were. */
export class Faults {
  #armed: Armed[] = []

  /**
   * Arms a fault.
   *
   * @throws ArgumentError for one that the service cannot produce.
   */
  add(fault: Fault): void {
    check(fault)
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
        entry.fault.kind === kind && fits(entry.fault as Extract<Fault, { kind: Kind }>),
    )
    if (armed === undefined) return undefined
    armed.left -= 1
    if (armed.left === 0) this.#armed = this.#armed.filter((entry) => entry !== armed)
    return armed.fault
  }
}

function check(fault: Fault): void {
  checkOneOf('fault.kind', fault.kind, KINDS)
  if (fault.times !== undefined) checkInteger('fault.times', fault.times, 1)
  if (fault.kind === 'cut') checkInteger('fault.after', fault.after, 0)
  if (fault.kind !== 'status') return
  checkInteger('fault.status', fault.status, 400, 599)
  if (fault.retryAfter !== undefined) checkInteger('fault.retryAfter', fault.retryAfter, 0)
  if (fault.path !== undefined) checkText('fault.path', fault.path)
}
