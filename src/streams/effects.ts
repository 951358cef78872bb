import type { Cause, ResearchEvent } from '../protocol/event.ts'
import { hash, hashString } from '../protocol/identity-hash.ts'
import { processSource } from '../protocol/log-event.ts'
import { rfc3339 } from '../protocol/timestamp.ts'
import { clocksOf } from './clocks.ts'
import type { Clocks } from './clocks.ts'
import { isAwaited } from './holds.ts'
import type { OutputEvent, ProcessContext, WaitingTimer } from './process-functions.ts'
import { RefusedEffect } from './refused-effect.ts'
import { timerBytes } from './sizes.ts'
import { storedJson } from './stored-json.ts'
import type { Timer, TimerChange, TimerClock } from './timers.ts'

/** Maximum length of a key and of a timer's name, in characters. */
export const MAX_NAME_LENGTH = 1_024

/** The greatest time that a Date has, in Unix ms. */
const MAX_TIME = 8.64e15

/** Maximum number of processes between an event and one that came from elsewhere. */
const MAX_HOPS = 16

/** The name of the timer that removes a state after `timeToLive`. Users cannot name a timer like that. */
export const EXPIRY = ''

/** An entry or a timer for which functions are called. */
export class Occasion {
  /** The entry, or the one that set the timer, and the timer. */
  readonly cause: Cause
  /** Time of the output, RFC 3339. */
  readonly time: string | null
  /** The watermark, and when the entry that is processed was recorded, in Unix ms. */
  readonly clocks: Clocks
  /** The chain of the timer that fires, see {@link chainOf}; null at an entry. */
  readonly chain: string | null
  #timerCause: string | undefined

  constructor(cause: Cause, time: string | null, clocks: Clocks, chain: string | null) {
    this.cause = cause
    this.time = time
    this.clocks = clocks
    this.chain = chain
  }

  /** The cause of a timer that is set now. */
  get timerCause(): string {
    // Once for all keys of an entry.
    this.#timerCause ??= this.expiryCause(null)
    return this.#timerCause
  }

  /** The cause of the timer that ends a state. @param set When the state was set, in Unix ms. */
  expiryCause(set: number | null): string {
    const { source, id, revision, hops, origin = null } = this.cause
    const cause: TimerCause = [source, id, revision, hops, origin, set, this.chain]
    return JSON.stringify(cause)
  }
}

/** How a process keeps what its functions give: as JSON, as a log does, or as it is. */
export interface Representation<State, Stored, Output> {
  /** The state as it is kept. @throws {RefusedEffect} for one that cannot be kept, or is larger than `maxBytes`. */
  stored(state: State, maxBytes: number): Stored
  /** The state for one call: what a function does to it without `set` has no effect. */
  state(stored: Stored): State
  /** The state of a key that has none, for one call. */
  initial(state: State): State
  /** The event as it is kept, and its size in a commit, in bytes. Undefined for one that cannot be kept. */
  output(event: ResearchEvent): { readonly output: Output; readonly bytes: number } | undefined
  /** The size of a state in a commit, in bytes. */
  stateBytes(key: string, stored: Stored | null): number
  /** Maximum size of the effects of one call, in bytes. */
  readonly maxEffectBytes: number
}

/** The settings of a process that limit the effects of its functions. */
export interface EffectSettings {
  readonly process: string
  readonly maxStateBytes: number
  readonly timeToLive: number | undefined
  readonly hasTimers: boolean
  readonly lateness: number
}

/** The changes by one call of a callback. They are kept if the callback returns, and dropped if it throws. */
export class CallbackEffects<State, Stored, Output> implements ProcessContext<State> {
  readonly key: string
  /** The new state; undefined if it stays. */
  state: Stored | null | undefined
  readonly outputs: Output[] = []
  readonly #running: readonly Timer[]
  readonly #settings: EffectSettings
  readonly #representation: Representation<State, Stored, Output>
  readonly #occasion: Occasion
  #timers: Map<string, TimerChange> | undefined
  #outputBytes = 0
  #isOver = false

  constructor(
    settings: EffectSettings,
    representation: Representation<State, Stored, Output>,
    occasion: Occasion,
    key: string,
    running: readonly Timer[] = [],
  ) {
    this.#running = running
    this.#settings = settings
    this.#representation = representation
    this.#occasion = occasion
    this.key = key
  }

  /** The last change of each timer. */
  get timers(): Iterable<TimerChange> {
    return this.#timers?.values() ?? NO_TIMERS
  }

  /** Size of all changes in a commit, in bytes. */
  get bytes(): number {
    let bytes = this.#outputBytes
    if (this.state !== undefined) bytes += this.#representation.stateBytes(this.key, this.state)
    for (const change of this.timers) bytes += timerBytes(change)
    return bytes
  }

  set(state: State | null): void {
    this.#checkRunning()
    const { maxStateBytes, timeToLive } = this.#settings
    this.state = state === null ? null : this.#representation.stored(state, maxStateBytes)
    if (timeToLive === undefined) return
    const { recorded } = this.#occasion.clocks
    if (state === null) this.endTimer(EXPIRY)
    else this.#startExpiry(recorded + timeToLive, recorded)
  }

  /**
   * Removes the state, unless `timeToLive` is longer now than when the state was set.
   *
   * @param timer The timer that fires.
   */
  expire({ cause, due }: Timer): void {
    const { timeToLive } = this.#settings
    if (timeToLive === undefined) return
    const [, , , , , set]: TimerCause = JSON.parse(cause)
    const began = set ?? due
    if (began + timeToLive > due) this.#startExpiry(began + timeToLive, began)
    else this.set(null)
  }

  get complete(): boolean {
    return this.#clocks.complete
  }

  get behindUntil(): number | undefined {
    const { holds, recorded } = this.#occasion.clocks
    let first: number | undefined
    for (const hold of holds.values())
      if (isAwaited(hold, recorded)) first = Math.min(first ?? Infinity, hold.until)
    return first
  }

  get waiting(): readonly WaitingTimer[] {
    return this.#running.map(({ name, due, data }) => ({
      name,
      due,
      data: data === null ? undefined : JSON.parse(data),
    }))
  }

  now(clock: TimerClock = 'recorded'): number {
    return this.#clocks[clock]
  }

  timer(
    name: string,
    due: number,
    options: { readonly clock?: TimerClock; readonly data?: unknown } = {},
  ): void {
    this.#checkRunning()
    checkTimerName(name)
    if (!this.#settings.hasTimers) throw new RefusedEffect('it sets a timer, and has no function `timer`')
    const { clock = 'recorded', data } = options
    // The caller may be JavaScript.
    const given: unknown = clock
    if (given !== 'event' && given !== 'recorded') {
      throw new RefusedEffect(`the clock of its timer must be "event" or "recorded", not ${String(given)}`)
    }
    if (typeof due !== 'number' || !(Math.abs(due) <= MAX_TIME)) {
      throw new RefusedEffect(`its timer must be due at a Unix time in ms, not ${String(due)}`)
    }
    const at = Math.ceil(due)
    const { due: firing } = this.#occasion.cause
    if (firing !== undefined && at <= firing) {
      throw new RefusedEffect(`a timer that is due at ${firing} sets one that is not due later (${at})`)
    }
    const json = data === undefined ? null : storedJson(data, this.#settings.maxStateBytes, 'data')
    this.#setTimer({ key: this.key, name, clock, due: at, cause: this.#occasion.timerCause, data: json })
  }

  cancel(name: string): void {
    this.#checkRunning()
    checkTimerName(name)
    this.endTimer(name)
  }

  append({ type, data, source }: OutputEvent): void {
    this.#checkRunning()
    const { cause, chain, time, clocks } = this.#occasion
    if (cause.hops > MAX_HOPS) {
      throw new RefusedEffect(
        `its event would be the ${cause.hops}th in a row that a process appends because of another one: at most ${MAX_HOPS} ` +
          'are appended, since processes may feed each other without an end',
      )
    }
    // The caller may be JavaScript.
    const given: unknown = type
    if (typeof given !== 'string' || given === '')
      throw new RefusedEffect('it appends an event without a type')
    const event: Record<Exclude<keyof ResearchEvent, 'cursor'>, unknown> = {
      id: outputId(cause, chain, this.key, this.outputs.length),
      source: source ?? processSource(this.#settings.process),
      type,
      time,
      data,
      received: rfc3339(clocks.recorded),
      via: 'process',
      cause,
    }
    // `type` and `data` belong together by the type of the argument.
    const made = data === undefined ? undefined : this.#representation.output(event as ResearchEvent)
    if (made === undefined) throw new RefusedEffect('the event that it appends is not JSON')
    this.outputs.push(made.output)
    this.#outputBytes += made.bytes
  }

  /** Removes a timer. */
  endTimer(name: string): void {
    this.#setTimer({ key: this.key, name, due: null })
  }

  /** Refuses further changes, since the callback has returned: they would be lost. */
  end(): void {
    this.#isOver = true
  }

  get #clocks(): Clocks {
    const { cause, clocks } = this.#occasion
    if (clocks.holds.size === 0) return clocks
    const { source, origin = source } = cause
    return clocksOf(clocks, [source, origin, this.key], this.#settings.lateness)
  }

  #startExpiry(due: number, set: number): void {
    const cause = this.#occasion.expiryCause(set)
    this.#setTimer({ key: this.key, name: EXPIRY, clock: 'recorded', due, cause, data: null })
  }

  #setTimer(change: TimerChange): void {
    this.#timers ??= new Map()
    this.#timers.set(change.name, change)
  }

  #checkRunning(): void {
    if (this.#isOver) {
      throw new RefusedEffect(
        'its context was used after the function had returned: functions of a process are synchronous',
      )
    }
  }
}

const NO_TIMERS: readonly TimerChange[] = []

/** The cause of a timer as it is stored. `set`: when the state was set, for the timer that ends a state. */
type TimerCause = readonly [
  source: string,
  id: string,
  revision: number,
  hops: number,
  origin: string | null,
  set: number | null,
  chain: string | null,
]

/** An entry, for the functions of this process. */
export function entryOccasion(
  process: string,
  { source, id, revision = 1, cause, time }: ResearchEvent & { readonly revision?: number },
  clocks: Clocks,
): Occasion {
  const own = { process, source, id, revision }
  const whole =
    cause == null
      ? { ...own, hops: 1 }
      : { ...own, origin: cause.origin ?? cause.source, hops: cause.hops + 1 }
  return new Occasion(whole, time, clocks, null)
}

/** The source of the entry because of which a timer was set, and that of the entry from elsewhere behind it. */
export function timerSources({ cause }: Timer): readonly string[] {
  const [source, , , , origin]: TimerCause = JSON.parse(cause)
  return origin === null ? [source] : [source, origin]
}

/** A timer that fires, for the functions of this process. */
export function timerOccasion(process: string, timer: Timer, clocks: Clocks): Occasion {
  const { name, due } = timer
  const [source, id, revision, hops, origin, , setBy]: TimerCause = JSON.parse(timer.cause)
  const own = { process, source, id, revision, timer: name, due }
  const cause = { ...own, ...(origin !== null && { origin }), hops }
  return new Occasion(cause, rfc3339(due), clocks, chainOf(timer, setBy))
}

/**
 * A hash of a timer that fires, and of those that have set it, one after the other, since the entry. Two timers that are set because of one
 * entry may set a third one twice to the same time, if their clocks differ: the chains differ then.
 *
 * @param setBy The chain of the timer that set it; null if an entry set it.
 */
function chainOf({ name, clock, due }: Timer, setBy: string | null): string {
  return hashOf([name, clock, due, setBy])
}

/** The id of an event that a process appends: the same for each run over the same entries, so that the log skips what it has. */
function outputId(
  { process, source, id, revision }: Cause,
  chain: string | null,
  key: string,
  index: number,
): string {
  return hashOf([process, source, id, revision, chain, key, index])
}

/** A hash of JSON values, as a text. */
export function hashOf(parts: readonly unknown[]): string {
  hashString(JSON.stringify(parts))
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

function checkTimerName(name: unknown): void {
  if (typeof name === 'string' && name !== '' && name.length <= MAX_NAME_LENGTH) return
  throw new RefusedEffect(`the name of a timer must be a text of 1 to ${MAX_NAME_LENGTH} characters`)
}
