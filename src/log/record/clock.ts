import type { Subscription } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkWait } from '../../protocol/check.ts'
import { tickEvent } from '../../protocol/log-event.ts'
import { isObject, parseJson } from '../../protocol/json.ts'
import type { ProgressRegistry } from './progress-registry.ts'
import type { RecordedStream, Recorder } from './recorder.ts'

/** The stream of the ticks. Its position is the last one. */
export const CLOCK_STREAM = 'clock'

/** The time between two ticks while events come, in ms. */
export const ACTIVE_INTERVAL = 1_000

/** Default of `maxHold`, in ms. */
export const MAX_HOLD = 900_000

/** The progress of a part of this recording. */
export interface ClockedPart {
  /** The name of the stream whose position is its progress. */
  readonly name: string
  /** Stores up to which time it is complete, and returns it, in Unix ms. Undefined while this recording does not have the part. */
  look(now: number): number | undefined
}

/** A clock of the machine, and timers by it. */
export interface ClockTimers {
  /** Unix ms. */
  now(): number
  schedule(work: () => void, delay: number): Subscription
}

/** Settings of a {@link Clock}. */
interface ClockSettings {
  readonly recorder: Recorder
  readonly registry: ProgressRegistry
  readonly scheduler: ClockTimers
  /** The time between two ticks while no events come, in ms. */
  readonly interval: number
  /** How long ticks wait for a stream that is behind, in ms. */
  readonly maxHold: number
  /** The parts of this recording. */
  readonly parts: () => Iterable<ClockedPart>
  /** Whether it ends once the progress of a recording changes, so that one runs. Default false. */
  readonly yields?: boolean
}

/** A tick. */
interface Tick {
  readonly number: number
  /** Unix ms; -Infinity if it is not known. */
  readonly through: number
  readonly complete: boolean
  /** How long it has waited for streams that are behind, in ms. */
  readonly held: number
}

/**
 * Stores how far a recording is, and lets time pass for the readers of the log: appends `log.tick`, each second while events come. One clock
 * of a log does that; the others wait for its end.
 */
export class Clock {
  readonly #settings: ClockSettings
  /** The end of the run. */
  #ended = Promise.withResolvers<void>()
  /** The stream of the ticks, while this clock appends them. */
  #stream: RecordedStream | undefined
  #last = tickOf(null)
  /** When the last tick was. */
  #tickedAt: number
  /** Since when the ticks have waited for streams that are behind. */
  #heldSince: number
  /** The progress of other recordings at the last look, by the names of their streams; undefined before the first one. */
  #others: ReadonlyMap<string, number> | undefined
  /** Whether something was recorded since the last look. */
  #isActive = false
  #timer: Subscription | undefined
  /** When the timer is due. */
  #due = Infinity
  #isOver = false
  #isLooking = false

  constructor(settings: ClockSettings) {
    this.#settings = settings
    this.#tickedAt = settings.scheduler.now()
    this.#heldSince = this.#tickedAt
  }

  /** Called when this recording adds an event. */
  touch(): void {
    if (this.#isActive) return
    this.#isActive = true
    this.#schedule(this.#activeInterval)
  }

  /** Ticks until the signal is aborted. Rejects with an error of the log. */
  async run(signal: AbortSignal): Promise<void> {
    const { recorder, scheduler, interval } = this.#settings
    const ended = Promise.withResolvers<void>()
    // Only awaited once the stream is open.
    ended.promise.catch(() => {})
    this.#ended = ended
    const stop = () => {
      this.#isOver = true
      this.#timer?.unsubscribe()
    }
    this.#isOver = false
    this.#due = Infinity
    this.#others = undefined
    signal.addEventListener('abort', stop, { once: true })
    this.#schedule(interval)
    try {
      const stream = await recorder.openInTurn(CLOCK_STREAM, signal, ended.reject)
      if (signal.aborted) return
      signal.addEventListener('abort', () => ended.resolve(), { once: true })
      this.#last = tickOf(stream.position)
      this.#heldSince = scheduler.now() - this.#last.held
      this.#stream = stream
      await ended.promise
    } finally {
      this.#stream = undefined
      stop()
    }
  }

  /** Ticks for the last time. */
  async finish(): Promise<void> {
    if (!this.#isOver) await this.#look(true)
  }

  get #activeInterval(): number {
    return Math.min(this.#settings.interval, ACTIVE_INTERVAL)
  }

  /** Looks after this delay, in ms, unless it looks earlier. */
  #schedule(delay: number): void {
    const { scheduler } = this.#settings
    const due = scheduler.now() + delay
    if (this.#isOver || this.#isLooking || this.#due <= due) return
    this.#timer?.unsubscribe()
    this.#due = due
    this.#timer = scheduler.schedule(() => {
      this.#due = Infinity
      this.#isLooking = true
      this.#look()
        .catch((error: unknown) => this.#ended.reject(error))
        .then(() => {
          this.#isLooking = false
          const isActive = this.#isActive || (this.#others?.size ?? 0) > 0
          this.#schedule(isActive ? this.#activeInterval : this.#settings.interval)
        })
    }, delay)
  }

  async #look(isLast = false): Promise<void> {
    const { recorder, registry, scheduler, interval, parts, yields = false } = this.#settings
    const now = scheduler.now()
    const own = new Map<string, number>()
    for (const part of parts()) {
      const through = part.look(now)
      if (through !== undefined) own.set(part.name, through)
    }
    // Retention has paused the recorder, or the log is behind.
    if (this.#stream === undefined || (recorder.gate.closed && !isLast)) return
    const streams = (await registry.streams()).filter((name) => !own.has(name))
    const others = await registry.through(streams)
    const hasMoved = Array.from(others).some(([name, through]) => through !== this.#others?.get(name))
    if (yields && hasMoved && this.#others !== undefined) return this.#ended.resolve()
    if (hasMoved) this.#isActive = true
    this.#others = others
    // A wall clock that was set back does not make the wait longer.
    this.#tickedAt = Math.min(this.#tickedAt, now)
    if (!this.#isActive && !isLast && now - this.#tickedAt < interval) return
    this.#isActive = false
    this.#tick(this.#stream, now, Math.min(now, ...own.values(), ...others.values()))
  }

  #tick(stream: RecordedStream, now: number, least: number): void {
    const { recorder, maxHold } = this.#settings
    const { ahead } = recorder
    const last = this.#last
    // A wall clock that was set back does not make the wait longer.
    if (least - ahead > last.through || now < this.#heldSince) this.#heldSince = now
    const held = now - this.#heldSince
    const reached = held >= maxHold ? now - maxHold : least
    const through = Math.max(last.through, reached - ahead)
    // A recording that is new holds time, and what was complete before it stays complete.
    const complete = through <= least - ahead || (last.complete && through === last.through)
    const tick: Tick = { number: last.number + 1, through, complete, held }
    this.#last = tick
    this.#tickedAt = now
    const event = tickEvent(tick.number, now - ahead, {
      through: Number.isFinite(through) ? through : null,
      complete,
    })
    stream.tick(event, { text: () => JSON.stringify(tick) })
  }
}

/** The last tick, by the position of the stream of the ticks. */
export function tickOf(position: string | null | undefined): Tick {
  const parsed = parseJson(position ?? '')
  const { number, through, complete, held }: Record<string, unknown> = isObject(parsed) ? parsed : {}
  return {
    number: typeof number === 'number' ? number : 0,
    through: typeof through === 'number' ? through : -Infinity,
    complete: complete !== false,
    held: typeof held === 'number' && held > 0 ? held : 0,
  }
}

/** Throws an ArgumentError for what is no time between ticks, or for which they may wait. */
export function checkTick(argument: string, time: number): void {
  checkWait(argument, time, true)
  if (time < 1) throw new ArgumentError(argument, 'a number of milliseconds of at least 1', time)
}
