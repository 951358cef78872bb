import type { StreamItem } from '../../sources/shapes/stream-item.ts'
import { parsedTime } from '../../streams/clocks.ts'
import type { Pause } from './pauses.ts'

/** How long a new connection brings no event once everything before it has come, in ms. */
const QUIET = 5_000

/** How long what has happened is on its way, at most, in ms. */
const ON_ITS_WAY = 1_000

/**
 * The time up to which one stream has brought everything: a poll up to its start, once it has ended; a connection up to what it has
 * brought, once it has caught up.
 */
export class StreamProgress {
  /** Unix ms; -Infinity until that is known, and Infinity for a stream that holds nothing yet. */
  through: number
  readonly #isPolled: boolean
  /** When the poll or the connection began, or the last pause of the connection ended; undefined while there is none. */
  #since: number | undefined
  /** When the connection has brought something last. */
  #receivedAt = -Infinity
  /** When it has brought an event last. */
  #eventAt = -Infinity
  /** The end of the last pause. */
  #pausedUntil = -Infinity
  #hasCaughtUp = false
  /** How long it brings no event once it has caught up, in ms. */
  #quiet = QUIET

  /** @param through The time up to which the stream is known to be complete. Default: it is not known. */
  constructor(isPolled: boolean, through = -Infinity) {
    this.#isPolled = isPolled
    this.through = through
  }

  /**
   * The stream has emitted an item.
   *
   * @param pause The last time in which the recording read nothing.
   */
  took(item: StreamItem, now: number, pause: Pause): void {
    if (this.#isPolled) return this.#tookOfPoll(item, now)
    this.#resume(pause)
    this.#tookOfConnection(item, now)
  }

  /** @param pause As for {@link took}. */
  look(now: number, pause: Pause): void {
    if (this.#isPolled) return
    this.#resume(pause)
    if (this.#hasCaughtUp || this.#since === undefined) return
    if (now - Math.max(this.#eventAt, this.#since) >= this.#quiet) this.#catchUp(this.#since)
  }

  #tookOfPoll({ kind }: StreamItem, now: number): void {
    if (kind === 'polling') this.#since = now
    else if (kind === 'lost') this.#since = undefined
    else if (kind === 'caughtUp' && this.#since !== undefined) this.#move(this.#since)
  }

  #tookOfConnection(item: StreamItem, now: number): void {
    if (item.kind === 'reached') {
      this.#since = now
      this.#hasCaughtUp = false
      this.#quiet = QUIET
    } else if (item.kind === 'lost') this.#since = undefined
    else if (item.kind === 'event' || item.kind === 'alive') {
      // What happened before the last arrival has come with it, or was on its way.
      if (this.#hasCaughtUp) this.#move(this.#receivedAt - ON_ITS_WAY)
      else if (item.kind === 'event' && this.#since !== undefined && isAfter(item.event.time, this.#since))
        this.#catchUp(this.#since)
    }
    if (item.kind === 'event') this.#eventAt = now
    this.#receivedAt = now
  }

  /** After a pause, the connection has to catch up again with what came meanwhile, which is little after a short one. */
  #resume({ end, duration }: Pause): void {
    if (end === this.#pausedUntil) return
    const quiet = Math.min(Math.max(duration, ON_ITS_WAY), QUIET)
    this.#quiet = this.#hasCaughtUp ? quiet : Math.max(quiet, this.#quiet)
    this.#pausedUntil = end
    this.#receivedAt = this.#eventAt = -Infinity
    this.#hasCaughtUp = false
    if (this.#since !== undefined) this.#since = end
  }

  #catchUp(since: number): void {
    this.#hasCaughtUp = true
    this.#move(since)
  }

  #move(through: number): void {
    this.through = this.through === Infinity ? through : Math.max(this.through, through)
  }
}

function isAfter(time: string | null, since: number): boolean {
  const at = parsedTime(time)
  return at !== undefined && at > since
}
