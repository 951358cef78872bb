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

/** The progress of a part of this recording. */
export interface ClockedPart {
  /** The name of the stream whose position is its progress. */
  readonly name: string
  /**
   * Stores up to which time it is complete, and returns it, in Unix ms. Undefined while another recording has the part.
   *
   * @param next When the next call is expected.
   */
  look(now: number, next: number): number | undefined
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
  /** Whether it ends once the log has a recording. Default false. */
  readonly yields?: boolean
}

/** A tick. */
interface Tick {
  readonly number: number
  /** Unix ms; -Infinity if it is not known. */
  readonly through: number
  readonly complete: boolean
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
  #last: Tick = { number: 0, through: -Infinity, complete: true }
  /** When the last tick was. */
  #tickedAt: number
  /** The least progress of all recordings at the last tick, and since when it is that. */
  #least = -Infinity
  #heldSince: number
  /** The progress of other recordings at the last look. */
  #others: readonly number[] = []
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
    signal.addEventListener('abort', stop, { once: true })
    this.#schedule(interval)
    try {
      const stream = await recorder.openInTurn(CLOCK_STREAM, signal, ended.reject)
      if (signal.aborted) return
      signal.addEventListener('abort', () => ended.resolve(), { once: true })
      this.#last = tickOf(stream.position)
      this.#heldSince = scheduler.now()
      this.#stream = stream
      await ended.promise
    } finally {
      this.#stream = undefined
      stop()
    }
  }

  /** Ticks for the last time. */
  async finish(): Promise<void> {
    this.#isActive = true
    if (!this.#isOver) await this.#look()
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
        .then(() => {
          this.#isLooking = false
          this.#schedule(
            this.#isActive || this.#others.length > 0 ? this.#activeInterval : this.#settings.interval,
          )
        })
        .catch((error: unknown) => {
          this.#isLooking = false
          this.#ended.reject(error)
        })
    }, delay)
  }

  async #look(): Promise<void> {
    const { recorder, registry, scheduler, interval, parts, yields = false } = this.#settings
    const now = scheduler.now()
    const own = new Map<string, number>()
    for (const part of parts()) {
      const through = part.look(now, now + this.#activeInterval)
      if (through !== undefined) own.set(part.name, through)
    }
    // Retention has paused the recorder, or the log is behind.
    if (this.#stream === undefined || recorder.gate.closed) return
    const streams = (await registry.streams()).filter((name) => !own.has(name))
    if (yields && streams.length > 0) return this.#ended.resolve()
    const others = streams.length === 0 ? [] : await registry.through(streams)
    if (others.some((through, n) => through !== this.#others[n])) this.#isActive = true
    this.#others = others
    // A wall clock that was set back does not make the wait longer.
    this.#tickedAt = Math.min(this.#tickedAt, now)
    if (!this.#isActive && now - this.#tickedAt < interval) return
    this.#isActive = false
    this.#tick(this.#stream, now, Math.min(now, ...own.values(), ...others))
  }

  #tick(stream: RecordedStream, now: number, least: number): void {
    const { recorder, maxHold } = this.#settings
    if (least !== this.#least || now < this.#heldSince) {
      this.#least = least
      this.#heldSince = now
    }
    const isHeldTooLong = now - this.#heldSince >= maxHold
    const reached = isHeldTooLong ? now - maxHold : least
    const through = Math.max(this.#last.through, reached - recorder.ahead)
    const tick: Tick = { number: this.#last.number + 1, through, complete: !isHeldTooLong }
    this.#last = tick
    this.#tickedAt = now
    const event = tickEvent(tick.number, now - recorder.ahead, {
      through: Number.isFinite(through) ? through : null,
      complete: tick.complete,
    })
    stream.tick(event, { text: () => JSON.stringify(tick) })
  }
}

/** The last tick, by the position of the stream of the ticks. */
export function tickOf(position: string | null | undefined): Tick {
  const parsed = parseJson(position ?? '')
  const { number, through, complete }: Record<string, unknown> = isObject(parsed) ? parsed : {}
  return {
    number: typeof number === 'number' ? number : 0,
    through: typeof through === 'number' ? through : -Infinity,
    complete: complete !== false,
  }
}

/** Throws an ArgumentError for what is no time between ticks, or for which they may wait. */
export function checkTick(argument: string, time: number): void {
  checkWait(argument, time, true)
  if (time < 1) throw new ArgumentError(argument, 'a number of milliseconds of at least 1', time)
}
