import { ArgumentError } from '../../protocol/argument-error.ts'
import {
  checkDuration,
  checkId,
  checkInteger,
  checkObject,
  checkOneOf,
  checkText,
} from '../../protocol/check.ts'

/** Options of every fault. */
interface FaultOptions {
  /** How often it strikes. Default: without a limit. */
  readonly times?: number
}

/** Options of faults of requests. */
interface RequestFaultOptions extends FaultOptions {
  /** Only requests whose path begins with this, `/v1/search` for instance. Default: all. */
  readonly path?: string
}

/** Options of faults of event streams: of groups, runs, FindAll, chats and responses. */
interface StreamFaultOptions extends RequestFaultOptions {
  /** Number of events that a connection sends before the fault strikes. Default 0. */
  readonly after?: number
}

/**
 * A fault that the service injects, so that users can test their pipelines. Faults are deterministic: the same faults and
 * the same requests, in the same order, give the same failures.
 */
export type Fault =
  // Event streams.
  /**
   * Destroys the socket of a stream, after `after` events or within the next one: within its line, within its first
   * multi-byte character (within its line if there is none), or within a chunk of the chunked transfer coding. Default
   * `event`.
   */
  | ({ readonly kind: 'cut'; readonly at?: CutPoint } & StreamFaultOptions)
  /** Sends nothing more, not even a comment, and keeps the socket open until the client closes it. */
  | ({ readonly kind: 'stall' } & StreamFaultOptions)
  /** Closes a stream cleanly, as if it were complete; with `after` 0 without any event. */
  | ({ readonly kind: 'close' } & StreamFaultOptions)
  /**
   * Sends the next event in pieces of `bytes` bytes (default 1), one every `interval` ms of real time (default 1). After
   * 1,000 pieces it sends the rest at once. Strikes once per event.
   */
  | ({ readonly kind: 'slow'; readonly bytes?: number; readonly interval?: number } & StreamFaultOptions)
  /**
   * Resumes a stream `count` events (default 1) before its position, so that they are repeated, as by a service that only
   * stores its position from time to time. Strikes once per connection that has a position.
   */
  | ({ readonly kind: 'repeat-events'; readonly count?: number } & RequestFaultOptions)
  /**
   * Deletes a group once one of its streams has sent `after` events. Its streams close cleanly, and `times` requests for it
   * (default: all) get a 404.
   */
  | DeletedGroup
  // Event streams and JSON responses.
  /** Truncates the JSON of the next event or response in the middle, and otherwise continues normally. */
  | ({ readonly kind: 'malformed' } & StreamFaultOptions)
  /** Compresses with gzip, even if the request does not accept it. */
  | ({ readonly kind: 'gzip' } & RequestFaultOptions)
  /** Responds with 200 and an HTML page, as a proxy may. The request does not take effect. */
  | ({ readonly kind: 'wrong-type' } & RequestFaultOptions)
  // JSON responses and requests.
  /** Destroys the socket in the middle of a JSON response, short of its `content-length`. The request has taken effect. */
  | ({ readonly kind: 'truncated' } & RequestFaultOptions)
  /**
   * Responds with this status (400 to 599), and with a `Retry-After` of `retryAfter` seconds, written as `seconds` (default)
   * or as a `date`. The request does not take effect.
   */
  | ({
      readonly kind: 'status'
      readonly status: number
      readonly retryAfter?: number
      readonly retryAfterForm?: RetryAfterForm
    } & RequestFaultOptions)
  /** Responds with 422 to requests with a `cursor` or a `last_event_id`, as if it were no longer valid. */
  | ({ readonly kind: 'invalid-cursor' } & RequestFaultOptions)
  // Webhooks.
  /** Delivers a webhook twice. */
  | ({ readonly kind: 'repeat' } & FaultOptions)
  /** Delays a webhook until the next one to the same URL is delivered, for at most a minute of the clock. */
  | ({ readonly kind: 'reorder' } & FaultOptions)
  /** Delivers a webhook `by` ms of the clock later. */
  | ({ readonly kind: 'delay'; readonly by: number } & FaultOptions)
  /** Drops a delivery: the receiver never gets it, and a retry follows. */
  | ({ readonly kind: 'lose' } & FaultOptions)
  /** Drops the receiver's 2xx: the receiver has the webhook, and a retry follows nevertheless. */
  | ({ readonly kind: 'lose-answer' } & FaultOptions)

/** The fault that deletes a group. */
export interface DeletedGroup extends FaultOptions {
  readonly kind: 'deleted-group'
  /** Id of the group. Default: each group if `after` is 0, else the first one whose stream sends `after` events. */
  readonly group?: string
  /** Number of events that a stream of the group sends before. Default 0: the group is deleted at once. */
  readonly after?: number
}

const CUT_POINTS = ['event', 'line', 'character', 'chunk'] as const
const RETRY_AFTER_FORMS = ['seconds', 'date'] as const

/** Where the fault `cut` interrupts a stream. */
export type CutPoint = (typeof CUT_POINTS)[number]

/** How `Retry-After` is written. */
type RetryAfterForm = (typeof RETRY_AFTER_FORMS)[number]

/** The name of a kind of fault. */
export type FaultKind = Fault['kind']

/** The faults of these kinds. */
export type FaultOf<Kind extends FaultKind> = Extract<Fault, { readonly kind: Kind }>

type Check = (argument: string, value: unknown) => void

const optional =
  (check: Check): Check =>
  (argument, value) => {
    if (value !== undefined) check(argument, value)
  }
const integer =
  (min: number, max?: number): Check =>
  (argument, value) =>
    checkInteger(argument, value, min, max)
const oneOf =
  (allowed: readonly string[]): Check =>
  (argument, value) =>
    checkOneOf(argument, value, allowed)

const faultOptions = { times: optional(integer(1)) }
const requestOptions = { ...faultOptions, path: optional(checkText) }
const streamOptions = { ...requestOptions, after: optional(integer(0)) }

/** The options of each kind. */
const CHECKS: {
  readonly [Kind in FaultKind]: { readonly [Option in Exclude<keyof FaultOf<Kind>, 'kind'>]-?: Check }
} = {
  cut: { ...streamOptions, at: optional(oneOf(CUT_POINTS)) },
  stall: streamOptions,
  close: streamOptions,
  slow: { ...streamOptions, bytes: optional(integer(1)), interval: optional(checkDuration) },
  'repeat-events': { ...requestOptions, count: optional(integer(1)) },
  'deleted-group': { ...faultOptions, group: optional(checkId), after: optional(integer(0)) },
  malformed: streamOptions,
  gzip: requestOptions,
  'wrong-type': requestOptions,
  truncated: requestOptions,
  status: {
    ...requestOptions,
    status: integer(400, 599),
    retryAfter: optional(integer(0)),
    retryAfterForm: optional(oneOf(RETRY_AFTER_FORMS)),
  },
  'invalid-cursor': requestOptions,
  repeat: faultOptions,
  reorder: faultOptions,
  delay: { ...faultOptions, by: checkDuration },
  lose: faultOptions,
  'lose-answer': faultOptions,
}

interface Armed {
  readonly fault: Fault
  timesLeft: number
}

/** The armed faults, in the order in which they were added. */
export class Faults {
  #armed: readonly Armed[] = []
  readonly #struck = new Map<FaultKind, number>()
  readonly #listeners = new Set<() => void>()

  /**
   * Arms a fault, for open streams too.
   *
   * @throws ArgumentError for an unknown kind or option, or an invalid value.
   */
  add(fault: Fault): void {
    checkFault(fault)
    this.#armed = [...this.#armed, { fault: { ...fault }, timesLeft: fault.times ?? Infinity }]
    this.#changed()
  }

  /** Disarms every fault. */
  clear(): void {
    this.#armed = []
    this.#changed()
  }

  /**
   * The armed faults, in order, each with its remaining `times`. Pass them to a new service to keep them over a restart.
   */
  get armed(): readonly Fault[] {
    return this.#armed.map(({ fault, timesLeft }) =>
      timesLeft === Infinity ? { ...fault } : { ...fault, times: timesLeft },
    )
  }

  /** How often each kind has struck; kinds that never struck are absent. */
  get struck(): { readonly [Kind in FaultKind]?: number } {
    return Object.fromEntries(this.#struck)
  }

  /** Returns the first armed fault of these kinds that matches, and counts it as struck. */
  take<Kind extends FaultKind>(
    kinds: Kind | readonly Kind[],
    matches?: (fault: FaultOf<Kind>) => boolean,
  ): FaultOf<Kind> | undefined {
    const fault = this.find(kinds, matches)
    const armed = this.#armed.find((entry) => entry.fault === fault)
    if (fault === undefined || armed === undefined) return undefined
    this.#struck.set(fault.kind, (this.#struck.get(fault.kind) ?? 0) + 1)
    armed.timesLeft -= 1
    if (armed.timesLeft === 0) this.#armed = this.#armed.filter((entry) => entry !== armed)
    return fault
  }

  /** Returns the first armed fault of these kinds that matches, without counting it. */
  find<Kind extends FaultKind>(
    kinds: Kind | readonly Kind[],
    matches: (fault: FaultOf<Kind>) => boolean = () => true,
  ): FaultOf<Kind> | undefined {
    for (const { fault } of this.#armed) {
      if (isOf(fault, kinds) && matches(fault)) return fault
    }
    return undefined
  }

  /** Replaces an armed fault. */
  replace(previous: Fault, fault: Fault): void {
    this.#armed = this.#armed.map((entry) => (entry.fault === previous ? { ...entry, fault } : entry))
    this.#changed()
  }

  /** Calls the listener when faults are armed, replaced or disarmed. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** Whether a fault applies to requests to this path. */
export function concerns({ path }: RequestFaultOptions, requested: string): boolean {
  return path === undefined || requested.startsWith(path)
}

function isOf<Kind extends FaultKind>(fault: Fault, kinds: Kind | readonly Kind[]): fault is FaultOf<Kind> {
  const wanted: FaultKind | readonly FaultKind[] = kinds
  return typeof wanted === 'string' ? fault.kind === wanted : wanted.includes(fault.kind)
}

function checkFault(fault: Fault): void {
  checkObject('fault', fault)
  checkOneOf('fault.kind', fault.kind, Object.keys(CHECKS))
  const checks: Readonly<Record<string, Check>> = CHECKS[fault.kind]
  const { kind, ...options } = fault
  const given: Readonly<Record<string, unknown>> = options
  for (const [name, checkOption] of Object.entries(checks)) checkOption(`fault.${name}`, given[name])
  const unknown = Object.keys(given).find((name) => checks[name] === undefined)
  if (unknown === undefined) return
  throw new ArgumentError(`fault.${unknown}`, `left out, as ${kind} has no such option`, given[unknown])
}
