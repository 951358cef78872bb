import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkId, checkInteger, checkOneOf, checkText } from '../protocol/check.ts'

/** What every fault may say. */
interface Sometimes {
  /** How often it strikes before it is spent. Default: without end. */
  readonly times?: number
}

/** A fault of requests. */
interface OnPath extends Sometimes {
  /** Only requests whose path begins with this, `/v1/search` for instance. Default: all. */
  readonly path?: string
}

/** A fault of a group's event streams, on any connection that comes so far. */
interface InStream extends OnPath {
  /** How many events of one connection pass before it strikes. Default 0. */
  readonly after?: number
}

/**
 * What the service can be told to do wrong, so that users can try their pipelines. None of it is left to chance: the same
 * faults and the same requests, in the same order, give the same failures.
 */
export type Fault =
  // Event streams.
  /**
   * Cuts a stream by destroying its socket: right after `after` events, or in the midst of the next one: within its line,
   * within the first character of it that takes several bytes (within its line where there is none), or within a chunk
   * of the transfer coding, of which more was announced. Default `event`.
   */
  | ({ readonly kind: 'cut'; readonly at?: CutPoint } & InStream)
  /** Sends nothing more, no comment either, and keeps the socket open until the reader gives up. */
  | ({ readonly kind: 'stall' } & InStream)
  /** Ends a stream in good order, as if all were told: with `after` 0 it accepts, and closes. */
  | ({ readonly kind: 'close' } & InStream)
  /**
   * Sends the next event in pieces of `bytes` bytes (default 1), one each `interval` ms of real time (default 1). What is
   * left after 1,000 pieces comes at once. Strikes once an event.
   */
  | ({ readonly kind: 'slow'; readonly bytes?: number; readonly interval?: number } & InStream)
  /**
   * Begins a stream that is resumed `count` events (default 1) before its position, so that those are told again: as a
   * service does that keeps its place now and then. Strikes once a connection that has a position.
   */
  | ({ readonly kind: 'repeat-events'; readonly count?: number } & OnPath)
  /** Deletes a group, `group` or whichever it meets: see {@link DeletedGroup}. */
  | DeletedGroup
  // Event streams and JSON answers.
  /** Breaks off the JSON of the next event, or of an answer, in the middle, and goes on as if nothing were wrong with it. */
  | ({ readonly kind: 'malformed' } & InStream)
  /** Compresses with gzip, although nobody asked for it. */
  | ({ readonly kind: 'gzip' } & OnPath)
  /** Answers 200 with a page of HTML, as a proxy does. The request does not take effect. */
  | ({ readonly kind: 'wrong-type' } & OnPath)
  // Answers and requests.
  /** Cuts a JSON answer halfway, short of its `content-length`, by destroying the socket. The request has taken effect. */
  | ({ readonly kind: 'truncated' } & OnPath)
  /**
   * Answers with this status (400 to 599), and with `Retry-After` where `retryAfter` says so: in s, written as `seconds`
   * (default) or as a `date`. The request does not take effect.
   */
  | ({
      readonly kind: 'status'
      readonly status: number
      readonly retryAfter?: number
      readonly retryAfterForm?: RetryAfterForm
    } & OnPath)
  /** Answers requests that have a `cursor` or a `last_event_id` with 422, as if it were valid no longer. */
  | ({ readonly kind: 'invalid-cursor' } & OnPath)
  // Webhooks.
  /** Delivers a webhook twice. */
  | ({ readonly kind: 'repeat' } & Sometimes)
  /** Holds a webhook back until the one after it has been delivered, for a minute of the clock at the most. */
  | ({ readonly kind: 'reorder' } & Sometimes)
  /** Delivers a webhook `by` ms of the clock later. */
  | ({ readonly kind: 'delay'; readonly by: number } & Sometimes)
  /** Loses a delivery on its way: the receiver never sees it, and a retry follows. */
  | ({ readonly kind: 'lose' } & Sometimes)
  /** Loses the receiver's 2xx: it has the webhook, and a retry follows nevertheless. */
  | ({ readonly kind: 'lose-answer' } & Sometimes)

/**
 * Deletes a group once one of its streams has sent `after` events; with 0, the default, at once. Its streams end in good
 * order, and `times` requests about it (default: all) are answered with 404. Without `group` and with `after` 0 that goes
 * for every group, else for the first one that comes so far.
 */
export interface DeletedGroup extends Sometimes {
  readonly kind: 'deleted-group'
  readonly group?: string
  readonly after?: number
}

const CUT_POINTS = ['event', 'line', 'character', 'chunk'] as const
const RETRY_AFTER_FORMS = ['seconds', 'date'] as const

/** Where the fault `cut` breaks a stream. */
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

const sometimes = { times: optional(integer(1)) }
const onPath = { ...sometimes, path: optional(checkText) }
const inStream = { ...onPath, after: optional(integer(0)) }

/** Every option of every kind. */
const CHECKS: {
  readonly [Kind in FaultKind]: { readonly [Option in Exclude<keyof FaultOf<Kind>, 'kind'>]-?: Check }
} = {
  cut: { ...inStream, at: optional(oneOf(CUT_POINTS)) },
  stall: inStream,
  close: inStream,
  slow: { ...inStream, bytes: optional(integer(1)), interval: optional(checkDuration) },
  'repeat-events': { ...onPath, count: optional(integer(1)) },
  'deleted-group': { ...sometimes, group: optional(checkId), after: optional(integer(0)) },
  malformed: inStream,
  gzip: onPath,
  'wrong-type': onPath,
  truncated: onPath,
  status: {
    ...onPath,
    status: integer(400, 599),
    retryAfter: optional(integer(0)),
    retryAfterForm: optional(oneOf(RETRY_AFTER_FORMS)),
  },
  'invalid-cursor': onPath,
  repeat: sometimes,
  reorder: sometimes,
  delay: { ...sometimes, by: checkDuration },
  lose: sometimes,
  'lose-answer': sometimes,
}

interface Armed {
  readonly fault: Fault
  left: number
}

/** The faults that are armed, in the order in which they were. */
export class Faults {
  #armed: readonly Armed[] = []
  readonly #struck = new Map<FaultKind, number>()
  readonly #listeners = new Set<() => void>()

  /**
   * Arms a fault. Streams that are open obey it too.
   *
   * @throws ArgumentError for one that the service cannot produce.
   */
  add(fault: Fault): void {
    checkFault(fault)
    this.#armed = [...this.#armed, { fault: { ...fault }, left: fault.times ?? Infinity }]
    this.#changed()
  }

  /** Disarms every fault. */
  clear(): void {
    this.#armed = []
    this.#changed()
  }

  /**
   * The faults that are armed, in order, each with the `times` that are left to it. Given to the service that is created
   * after this one, they outlast a restart.
   */
  get armed(): readonly Fault[] {
    return this.#armed.map(({ fault, left }) =>
      left === Infinity ? { ...fault } : { ...fault, times: left },
    )
  }

  /** How often each kind has struck so far; a kind that never has is not there. */
  get struck(): { readonly [Kind in FaultKind]?: number } {
    return Object.fromEntries(this.#struck)
  }

  /** The first armed fault of these kinds that fits; it strikes, and is counted. */
  take<Kind extends FaultKind>(
    kinds: Kind | readonly Kind[],
    fits?: (fault: FaultOf<Kind>) => boolean,
  ): FaultOf<Kind> | undefined {
    const fault = this.find(kinds, fits)
    const armed = this.#armed.find((entry) => entry.fault === fault)
    if (fault === undefined || armed === undefined) return undefined
    this.#struck.set(fault.kind, (this.#struck.get(fault.kind) ?? 0) + 1)
    armed.left -= 1
    if (armed.left === 0) this.#armed = this.#armed.filter((entry) => entry !== armed)
    return fault
  }

  /** The first armed fault of these kinds that fits; it does not strike. */
  find<Kind extends FaultKind>(
    kinds: Kind | readonly Kind[],
    fits: (fault: FaultOf<Kind>) => boolean = () => true,
  ): FaultOf<Kind> | undefined {
    for (const { fault } of this.#armed) {
      if (isOf(fault, kinds) && fits(fault)) return fault
    }
    return undefined
  }

  /** Puts a fault in the place of one that is armed. */
  replace(former: Fault, fault: Fault): void {
    this.#armed = this.#armed.map((entry) => (entry.fault === former ? { ...entry, fault } : entry))
    this.#changed()
  }

  /** Calls the listener when faults were armed, replaced or disarmed, until the function that it returns is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** Whether a fault is about requests to this path. */
export function concerns({ path }: OnPath, requested: string): boolean {
  return path === undefined || requested.startsWith(path)
}

function isOf<Kind extends FaultKind>(fault: Fault, kinds: Kind | readonly Kind[]): fault is FaultOf<Kind> {
  const wanted: FaultKind | readonly FaultKind[] = kinds
  return typeof wanted === 'string' ? fault.kind === wanted : wanted.includes(fault.kind)
}

function checkFault(fault: Fault): void {
  checkOneOf('fault.kind', fault.kind, Object.keys(CHECKS))
  const checks: Readonly<Record<string, Check>> = CHECKS[fault.kind]
  const { kind, ...options } = fault
  const given: Readonly<Record<string, unknown>> = options
  for (const [name, checkOption] of Object.entries(checks)) checkOption(`fault.${name}`, given[name])
  const unknown = Object.keys(given).find((name) => checks[name] === undefined)
  if (unknown === undefined) return
  throw new ArgumentError(`fault.${unknown}`, `left out, as ${kind} has no such option`, given[unknown])
}
