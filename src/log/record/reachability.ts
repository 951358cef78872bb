import { liveEvent, lostEvent } from '../../protocol/log-event.ts'
import type { RecordedStream } from './recorder.ts'

/**
 * Records when a source was reached and lost. A source may have several streams: it is lost while one of them is, and live when
 * all that were lost are reached again.
 */
export class Reachability {
  readonly #source: string
  readonly #now: () => number
  readonly #lost = new Set<RecordedStream>()
  #state: 'unknown' | 'live' | 'lost' = 'unknown'
  #lostAt: number | undefined
  #changes = 0

  constructor(source: string, now: () => number) {
    this.#source = source
    this.#now = now
  }

  /** Called for each answer. */
  reached(stream: RecordedStream): void {
    if (this.#state === 'live') return
    this.#lost.delete(stream)
    if (this.#lost.size > 0) return
    this.#state = 'live'
    stream.add(liveEvent(this.#source, this.#key(stream), this.#lostAt, this.#now()))
  }

  /** Called for each failed attempt. */
  lost(stream: RecordedStream, error: unknown): void {
    this.#lost.add(stream)
    if (this.#state === 'lost') return
    this.#state = 'lost'
    this.#lostAt = this.#now()
    // Only the message: an error object may have fields that must not be stored.
    const message = error instanceof Error ? error.message : String(error)
    stream.add(lostEvent(this.#source, this.#key(stream), message, this.#lostAt))
  }

  /** Unique in the log, since no other recording has the same claim. */
  #key(stream: RecordedStream): string {
    this.#changes += 1
    return `${stream.name}:${stream.claim}:${this.#changes}`
  }
}
