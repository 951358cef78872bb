import type { SchedulerLike, Subscription } from 'rxjs'
import type { QuotaLimit } from '../protocol/quotas.ts'

/** A request that waits for its quota. */
export interface QuotaEntry {
  /** Whether an earlier attempt has started. Such requests come before those that have not. */
  readonly isRetry: boolean
  /** Sends the request. `startedAt` is the time of the queue. Must not throw. */
  readonly start: (startedAt: number) => void
}

/** The requests of one quota, started in the order of their entry. */
export class QuotaQueue {
  readonly #limit: QuotaLimit
  readonly #scheduler: SchedulerLike
  readonly #onWait: (delay: number) => void
  readonly #window: SlidingWindow
  readonly #retries = new Set<QuotaEntry>()
  readonly #waiting = new Set<QuotaEntry>()
  #timer: Subscription | undefined
  #pausedUntil = 0
  /** Number of 429s in a row. Simultaneous ones count once. */
  #refusals = 0
  /** The learned limit; set after a 429. */
  #learned: LearnedLimit | undefined
  #time = 0
  #readAt: number

  /** @param onWait Called when a queue forms, with the delay of its first request in ms. */
  constructor(limit: QuotaLimit, scheduler: SchedulerLike, onWait: (delay: number) => void) {
    this.#limit = limit
    this.#scheduler = scheduler
    this.#onWait = onWait
    this.#window = new SlidingWindow(limit)
    this.#readAt = scheduler.now()
  }

  /** Starts the request, at once or when the quota allows. Returns a function that removes it while it waits. */
  enter(entry: QuotaEntry): () => void {
    const queue = entry.isRetry ? this.#retries : this.#waiting
    const wasEmpty = this.#isEmpty
    queue.add(entry)
    this.#startAllowed()
    // Not for each request: a long queue would give thousands of reports.
    if (wasEmpty && !this.#isEmpty) this.#onWait(this.#delay(this.#now()))
    return () => {
      queue.delete(entry)
      if (this.#isEmpty) this.#stopTimer()
    }
  }

  /** The service accepted a request. */
  accepted(): void {
    this.#refusals = 0
  }

  /**
   * The service answered with 429: no request starts within the delay in ms, which it returns.
   *
   * @param delayAfter The delay after this number of refusals in a row, of any requests: if each request had its own count, each would
   * begin with the shortest delay.
   */
  refused(startedAt: number, delayAfter: (refusals: number) => number): number {
    const now = this.#now()
    if (startedAt >= this.#pausedUntil) this.#refusals += 1
    const delay = delayAfter(this.#refusals)
    this.#pausedUntil = Math.max(this.#pausedUntil, now + delay)
    this.#learned ??= new LearnedLimit(this.#limit, this.#window)
    this.#learned.refused(startedAt, now, this.#pausedUntil)
    this.#stopTimer()
    this.#startAllowed()
    return delay
  }

  get #isEmpty(): boolean {
    return this.#retries.size + this.#waiting.size === 0
  }

  /** The scheduler's time without its steps back, which would make requests wait for the length of the step. */
  #now(): number {
    const read = this.#scheduler.now()
    this.#time += Math.max(0, read - this.#readAt)
    this.#readAt = read
    return this.#time
  }

  /** How long no request may start, in ms. */
  #delay(now: number): number {
    return Math.max(this.#pausedUntil, this.#window.freeAt(now), this.#learned?.freeAt(now) ?? 0) - now
  }

  #startAllowed(): void {
    while (this.#timer === undefined) {
      const queue = this.#retries.size > 0 ? this.#retries : this.#waiting
      const [entry] = queue
      if (entry === undefined) return
      const now = this.#now()
      const delay = this.#delay(now)
      if (delay > 0) return this.#wait(delay)
      queue.delete(entry)
      this.#window.add(now)
      if (this.#learned?.add(now) === false) this.#learned = undefined
      entry.start(now)
    }
  }

  #wait(delay: number): void {
    const work = () => {
      this.#timer = undefined
      this.#startAllowed()
    }
    // Rounded up: a timer with a fraction of a millisecond fires too early, again and again.
    this.#timer = this.#scheduler.schedule(work, Math.ceil(delay))
  }

  #stopTimer(): void {
    this.#timer?.unsubscribe()
    this.#timer = undefined
  }
}

/**
 * The limit that a service showed by a 429: the number of requests that it had accepted within the window. It grows by a
 * twentieth of the known limit with each window without a 429, since another user of the key may have caused it.
 */
class LearnedLimit {
  readonly #known: QuotaLimit
  #requests: number
  /** The starts since the last pause. */
  #window: SlidingWindow
  #refused = 0
  #resumesAt = 0
  #grownAt = 0

  /** @param starts The starts up to now. */
  constructor(known: QuotaLimit, starts: SlidingWindow) {
    this.#known = known
    this.#requests = known.requests
    this.#window = starts
  }

  /** The service refused the request that started at `startedAt`, and asks to continue at `resumesAt`. */
  refused(startedAt: number, now: number, resumesAt: number): void {
    // A late response to a request from before the pause says nothing about the limit since then.
    const isLate = now >= this.#resumesAt && startedAt < this.#resumesAt
    this.#resumesAt = resumesAt
    if (isLate) return
    this.#refused += 1
    this.#requests = Math.min(this.#requests, Math.max(1, this.#window.count(now) - this.#refused))
  }

  /** When the next request may start. */
  freeAt(now: number): number {
    // The service decides when to continue after a 429: the starts before it no longer count.
    return this.#refused > 0 ? now : this.#window.freeAt(now)
  }

  /** Counts a start. Returns whether the limit is still lower than the known one. */
  add(now: number): boolean {
    const { requests, window } = this.#known
    if (this.#refused > 0) {
      this.#refused = 0
      this.#grownAt = now
      this.#window = new SlidingWindow(this.#known, this.#requests)
    } else if (now - this.#grownAt >= window) {
      this.#grownAt = now
      this.#requests += Math.ceil(requests / 20)
      this.#window.allow(this.#requests)
    }
    this.#window.add(now)
    return this.#requests < requests
  }
}

/** The most times that a window remembers. Beyond it, several starts share the time of the last of them. */
const MAX_TIMES = 600

/** The starts within the last window, of which none ever has more than the limit. Times are in ms and must not decrease. */
export class SlidingWindow {
  readonly #length: number
  readonly #startsPerTime: number
  #requests: number
  /** Oldest first. */
  readonly #times: { time: number; starts: number }[] = []
  #starts = 0

  /** @param requests A lower limit than the known one. */
  constructor(known: QuotaLimit, requests = known.requests) {
    this.#length = known.window
    this.#startsPerTime = Math.ceil(known.requests / MAX_TIMES)
    this.#requests = requests
  }

  /** The number of starts that count now. */
  count(now: number): number {
    for (;;) {
      const [oldest] = this.#times
      if (oldest === undefined || oldest.time + this.#length > now) return this.#starts
      this.#starts -= oldest.starts
      this.#times.shift()
    }
  }

  /** When the next request may start. */
  freeAt(now: number): number {
    if (this.count(now) < this.#requests) return now
    const [oldest] = this.#times
    return oldest === undefined ? now : oldest.time + this.#length
  }

  add(now: number): void {
    const last = this.#times.at(-1)
    this.#starts += 1
    if (last === undefined || last.starts >= this.#startsPerTime) this.#times.push({ time: now, starts: 1 })
    else Object.assign(last, { time: now, starts: last.starts + 1 })
  }

  /** Raises the limit. */
  allow(requests: number): void {
    this.#requests = requests
  }
}
