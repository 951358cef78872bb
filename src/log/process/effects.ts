import type { ResearchEvent } from '../../protocol/event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { Cause } from '../../protocol/event.ts'
import type { Entry, NewEntry } from '../store/contract.ts'
import { entryBytes, stateBytes, timerBytes, utf8Length } from '../store/commit-size.ts'
import { LogValueError } from '../errors.ts'
import { newEntry } from '../store/new-entry.ts'
import type { Timer, TimerChange, TimerClock } from '../store/process-store.ts'
import { chainOf, outputId } from './output-id.ts'
import type { OutputEvent, ProcessContext } from './process.ts'
import type { Clocks } from './progress.ts'

/** Maximum length of a key and of a timer's name, in characters. */
export const MAX_NAME_LENGTH = 1_024

/** The greatest time that a Date has, in Unix ms. */
const MAX_TIME = 8.64e15

/** Maximum number of processes between an event and one that came from elsewhere. */
const MAX_HOPS = 16

/** The name of the timer that removes a state after `timeToLive`. Users cannot name a timer like that. */
export const EXPIRY = ''

/** An effect of a callback that is refused. Its text becomes the message of a `ProcessError`. */
export class RefusedEffect extends Error {
  override readonly name = 'RefusedEffect'
}

/** The input of one call of a callback. */
export interface Call {
  readonly process: string
  readonly key: string
  /** The entry that is processed, or that set the timer, and the timer. */
  readonly cause: Cause
  /** The chain of the timer that fires, see {@link chainOfTimer}; undefined without a timer. */
  readonly chain: string | undefined
  /** Time of the output, RFC 3339. */
  readonly time: string | null
  /** The watermark, and when the entry that is processed was recorded, in Unix ms. */
  readonly clocks: Clocks
  readonly maxStateBytes: number
  readonly timeToLive: number | undefined
  readonly hasTimers: boolean
}

/** The changes by one call of a callback. They are kept if the callback returns, and dropped if it throws. */
export class CallbackEffects<State> implements ProcessContext<State> {
  /** The new state; undefined if it stays. */
  state: string | null | undefined
  readonly timers = new Map<string, TimerChange>()
  readonly entries: NewEntry[] = []
  readonly #call: Call
  #entryBytes = 0
  #isOver = false

  constructor(call: Call) {
    this.#call = call
  }

  /** Size of all changes in a commit, in bytes. */
  get bytes(): number {
    let bytes = this.#entryBytes
    if (this.state !== undefined) bytes += stateBytes({ key: this.key, state: this.state })
    for (const change of this.timers.values()) bytes += timerBytes(change)
    return bytes
  }

  get key(): string {
    return this.#call.key
  }

  set(state: State | null): void {
    this.#checkRunning()
    const { key, maxStateBytes, timeToLive, clocks } = this.#call
    const json = state === null ? null : jsonOf(state)
    if (json !== null && json.length * 3 > maxStateBytes) {
      const bytes = utf8Length(json)
      if (bytes > maxStateBytes) {
        throw new RefusedEffect(
          `its state of ${bytes} bytes is over the limit of ${maxStateBytes} (maxStateBytes)`,
        )
      }
    }
    this.state = json
    if (timeToLive === undefined) return
    if (json === null) this.#setTimer({ key, name: EXPIRY, due: null })
    else this.#startTimer(EXPIRY, 'recorded', clocks.recorded + timeToLive, clocks.recorded)
  }

  /**
   * Removes the state, unless `timeToLive` is longer now than when the state was set.
   *
   * @param set When the state was set, in Unix ms.
   */
  expire(set: number): void {
    const { timeToLive, cause } = this.#call
    if (timeToLive === undefined) return
    const due = set + timeToLive
    if (due > (cause.due ?? due)) this.#startTimer(EXPIRY, 'recorded', due, set)
    else this.set(null)
  }

  now(clock: TimerClock = 'recorded'): number {
    return this.#call.clocks[clock]
  }

  timer(name: string, due: number, options: { readonly clock?: TimerClock } = {}): void {
    this.#checkRunning()
    checkTimerName(name)
    if (!this.#call.hasTimers) throw new RefusedEffect('it sets a timer, and has no function `timer`')
    const { clock = 'recorded' } = options
    // The caller may be JavaScript.
    const given: unknown = clock
    if (given !== 'event' && given !== 'recorded') {
      throw new RefusedEffect(`the clock of its timer must be "event" or "recorded", not ${String(given)}`)
    }
    if (typeof due !== 'number' || !(Math.abs(due) <= MAX_TIME)) {
      throw new RefusedEffect(`its timer must be due at a Unix time in ms, not ${String(due)}`)
    }
    const at = Math.ceil(due)
    const { due: firing } = this.#call.cause
    if (firing !== undefined && at <= firing) {
      throw new RefusedEffect(`a timer that is due at ${firing} sets one that is not due later (${at})`)
    }
    this.#startTimer(name, clock, at)
  }

  cancel(name: string): void {
    this.#checkRunning()
    checkTimerName(name)
    this.#setTimer({ key: this.#call.key, name, due: null })
  }

  append({ type, data, source }: OutputEvent): void {
    this.#checkRunning()
    const { process, key, cause, chain, time, clocks } = this.#call
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
    const event: Record<keyof ResearchEvent, unknown> = {
      id: outputId(cause, chain, key, this.entries.length),
      source: source ?? `/processes/${process}`,
      type,
      time,
      data,
      received: rfc3339(clocks.recorded),
      via: 'process',
      cause,
      cursor: undefined,
    }
    // `type` and `data` belong together by the type of the argument.
    const made = data === undefined ? undefined : entryOf(event as ResearchEvent)
    if (made === undefined) throw new RefusedEffect('the event that it appends is not JSON')
    this.entries.push(made)
    this.#entryBytes += entryBytes(made)
  }

  /** Refuses further changes, since the callback has returned: they would be lost. */
  end(): void {
    this.#isOver = true
  }

  #startTimer(name: string, clock: TimerClock, due: number, set?: number): void {
    const { key, cause, chain } = this.#call
    const { source, id, revision, hops, origin } = cause
    const stored = JSON.stringify([source, id, revision, hops, origin, set, chain])
    this.#setTimer({ key, name, clock, due, cause: stored })
  }

  #setTimer(change: TimerChange): void {
    this.timers.set(change.name, change)
  }

  #checkRunning(): void {
    if (this.#isOver) {
      throw new RefusedEffect(
        'its context was used after the function had returned: functions of a process are synchronous',
      )
    }
  }
}

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

/** The cause of what a process does at an entry. */
export function causeOfEntry(process: string, { source, id, revision, cause }: Entry): Cause {
  const own = { process, source, id, revision }
  if (cause === undefined) return { ...own, hops: 1 }
  return { ...own, origin: cause.origin ?? cause.source, hops: cause.hops + 1 }
}

/** Reads the cause of a stored timer. */
export function causeOfTimer(process: string, { cause, name, due }: Timer): Cause {
  const [source, id, revision, hops, origin]: TimerCause = JSON.parse(cause)
  return { process, source, id, revision, timer: name, due, ...(origin !== null && { origin }), hops }
}

/** The chain of a stored timer that fires, see {@link chainOf}. */
export function chainOfTimer(timer: Timer): string {
  const [, , , , , , chain]: TimerCause = JSON.parse(timer.cause)
  return chainOf(timer, chain)
}

/** When the state was set that a timer ends, in Unix ms. */
export function setTimeOf({ cause, due }: Timer): number {
  const [, , , , , set]: TimerCause = JSON.parse(cause)
  return set ?? due
}

/** @throws {RefusedEffect} for a value that is not JSON. */
export function jsonOf(state: unknown): string {
  let json: string | undefined
  try {
    json = JSON.stringify(state)
  } catch (cause) {
    throw new RefusedEffect('its state is not JSON', { cause })
  }
  // A function or a symbol. Null would be no state.
  if (json === undefined || json === 'null') throw new RefusedEffect('its state is not JSON')
  return json
}

function checkTimerName(name: unknown): void {
  if (typeof name === 'string' && name !== '' && name.length <= MAX_NAME_LENGTH) return
  throw new RefusedEffect(`the name of a timer must be a text of 1 to ${MAX_NAME_LENGTH} characters`)
}

/** The entry of an output; undefined if its event is not JSON. */
function entryOf(event: ResearchEvent): NewEntry | undefined {
  try {
    return newEntry(event)
  } catch (error) {
    if (error instanceof LogValueError) return undefined
    throw error
  }
}
