import type { SchedulerLike, Subscription } from 'rxjs'
import type { Position } from '../store/contract.ts'
import type { RecordedStream, Recorder } from './recorder.ts'
import { tickEvent } from '../../protocol/log-event.ts'

/** The stream of the ticks. Its position is the number of the last one. */
const STREAM = 'clock'

/**
 * Appends `log.tick` while nothing else is recorded, so that time passes for the readers of the log. One clock of a log runs; the
 * others wait for its end.
 */
export class Clock {
  readonly #recorder: Recorder
  readonly #scheduler: SchedulerLike
  readonly #interval: number
  /** When this recording has added something last. */
  #addedAt: number
  /** The end of the log at the last check; undefined if this recording has added something since. */
  #end: Position | undefined

  /** @param interval How long nothing must be recorded before a tick, in ms. */
  constructor(recorder: Recorder, scheduler: SchedulerLike, interval: number) {
    this.#recorder = recorder
    this.#scheduler = scheduler
    this.#interval = interval
    this.#addedAt = scheduler.now()
  }

  /** Called when this recording adds an event. */
  touch(): void {
    this.#addedAt = this.#scheduler.now()
    this.#end = undefined
  }

  /** Ticks until the signal is aborted. Rejects with an error of the log. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = Promise.withResolvers<never>()
    // Only awaited once the stream is open.
    failed.promise.catch(() => {})
    const stream = await this.#recorder.openInTurn(STREAM, signal, failed.reject)
    if (signal.aborted) return
    let number = Number(stream.position ?? 0)
    let timer: Subscription | undefined
    let isOver = false
    const schedule = (delay: number) => {
      if (!isOver) timer = this.#scheduler.schedule(onTimer, delay)
    }
    const stop = () => {
      isOver = true
      timer?.unsubscribe()
    }
    signal.addEventListener('abort', stop, { once: true })
    const look = async () => {
      // A wall clock that was set back does not make the wait longer.
      this.#addedAt = Math.min(this.#addedAt, this.#scheduler.now())
      const addedAt = this.#addedAt
      const quiet = this.#scheduler.now() - addedAt
      // Retention has paused the recorder, or the log is behind.
      if (this.#recorder.gate.closed) return schedule(this.#interval)
      // A fraction of a ms may be too small to change a virtual time, which would be a hot loop.
      if (quiet < this.#interval) return schedule(Math.max(1, this.#interval - quiet))
      const end = await this.#recorder.end()
      // An event was added meanwhile.
      if (this.#addedAt !== addedAt) return schedule(this.#interval)
      if (this.#end !== undefined && this.#end !== end) {
        // Another recording has appended something.
        this.#end = end
        return schedule(this.#interval)
      }
      number += 1
      this.#add(stream, number)
      await this.#recorder.flushed(stream)
      this.#end = await this.#recorder.end()
      schedule(this.#interval)
    }
    const onTimer = () => void look().catch(failed.reject)
    this.#end = await this.#recorder.end()
    schedule(this.#interval)
    try {
      await failed.promise
    } finally {
      stop()
    }
  }

  #add(stream: RecordedStream, number: number): void {
    const now = this.#scheduler.now() - this.#recorder.ahead
    stream.add(tickEvent(number, now), { text: () => String(number) })
  }
}
