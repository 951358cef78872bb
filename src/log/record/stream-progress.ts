import type { StreamItem } from '../../sources/shapes/stream-item.ts'
import { parsedTime } from '../../streams/clocks.ts'

/** How long a connection must bring nothing until everything before it has come, and what is on its way at most, in ms. */
const SETTLED = 1_000

/**
 * The time up to which one stream has brought everything: a poll up to its start, once it has ended; a connection up to what it has
 * brought, once it has caught up.
 */
export class StreamProgress {
  /** Unix ms; -Infinity until that is known, and Infinity for a stream that holds nothing yet. */
  through: number
  readonly #isPolled: boolean
  /** When the poll or the connection began; undefined while there is none. */
  #since: number | undefined
  /** When the connection has brought something last. */
  #receivedAt = -Infinity
  #hasCaughtUp = false

  /** @param through The time up to which the stream is known to be complete. Default: it is not known. */
  constructor(isPolled: boolean, through = -Infinity) {
    this.#isPolled = isPolled
    this.through = through
  }

  /** The stream has emitted an item. */
  took(item: StreamItem, now: number): void {
    if (this.#isPolled) this.#tookOfPoll(item, now)
    else this.#tookOfConnection(item, now)
  }

  /** @param awakeSince Since when the process reads all that comes without a pause. */
  look(now: number, awakeSince: number): void {
    if (this.#isPolled || this.#hasCaughtUp || this.#since === undefined) return
    if (now - Math.max(this.#receivedAt, awakeSince) >= SETTLED) this.#catchUp(this.#since)
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
    } else if (item.kind === 'lost') this.#since = undefined
    else if (item.kind === 'event' || item.kind === 'alive') {
      // What happened before the last arrival has come with it, or was on its way.
      if (this.#hasCaughtUp) this.#move(this.#receivedAt - SETTLED)
      else if (item.kind === 'event' && this.#since !== undefined && isAfter(item.event.time, this.#since))
        this.#catchUp(this.#since)
    }
    this.#receivedAt = now
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
