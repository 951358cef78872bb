import {
  defer,
  EMPTY,
  isObservable,
  merge,
  Observable,
  repeat,
  retry,
  Subject,
  take,
  throwError,
  timer,
} from 'rxjs'
import { currentGate } from '../../operators/gate.ts'
import { underGate } from '../../operators/under-gate.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkId, checkText, checkWait, LONGEST_WAIT } from '../protocol/check.ts'
import { gapEvent, isObject, monitorEvent, monitorSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { MAX_PAGE_LIMIT } from '../protocol/limits.ts'
import type { MonitorEventsQuery } from '../protocol/monitor.ts'
import { ValidationError } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { checkMonitorEventsQuery } from './monitor-events.ts'
import { monitorPages } from './monitor-pages.ts'
import { opened } from './opened.ts'
import { persisting } from './persisting.ts'
import { sourceOf } from './source.ts'
import type { Source, SourceOptions } from './source.ts'
import type { Tracking } from './tracking.ts'

/** Options of `monitors.follow`. */
export interface FollowMonitorOptions
  extends Pick<MonitorEventsQuery, 'limit' | 'include_completions'>, SourceOptions {
  /** The `cursor` of the last event that was handled: only what came after it. Default: all that the service has. */
  readonly after?: string
  /**
   * Time between polls, in ms; each is up to a tenth shorter or longer, so that clients do not march in step. `Infinity`
   * polls once, and then only when woken. Default 60,000.
   */
  readonly pollInterval?: number
  /** Each emission makes it poll now. */
  readonly wake?: Observable<unknown>
}

/** Newest ids that are remembered to recognise where the last poll ended; the last one alone may be pruned away. */
const REMEMBERED = 1_000
/** As many of them outlive a restart. */
const KEPT = 20

/** Walks in a row that may break on a page that the service no longer knows. */
const WALKS = 3

/**
 * Everything that a monitor reports, oldest first, each event once; never completes. A poll that fails is backed off
 * from and made again. Where the service no longer reaches back to the last event, a `stream.gap` comes in its place.
 */
export function followMonitor(
  context: Context,
  monitorId: string,
  options: FollowMonitorOptions = {},
  tracking?: Tracking,
): Source<ResearchEvent> {
  const { signal, after, pollInterval = 60_000, wake = EMPTY } = options
  const { limit = MAX_PAGE_LIMIT, include_completions } = options
  const query = { limit, include_completions }
  checkId('monitorId', monitorId)
  checkMonitorEventsQuery(query)
  checkWait('pollInterval', pollInterval, true)
  if (!isObservable(wake)) throw new ArgumentError('wake', 'an Observable', wake)
  if (after !== undefined) checkText('after', after)

  const follow = new Observable<ResearchEvent>((subscriber) => {
    const gate = currentGate()
    const progress =
      tracking?.position === undefined ? new Progress(after) : Progress.parse(tracking.position)
    // A signal that comes while a poll is under way may be about something that this poll was too early for.
    let woken = false
    const wakes = new Subject<void>()
    subscriber.add(
      wake.subscribe({
        next: () => {
          woken = true
          wakes.next()
        },
        error: (error: unknown) => subscriber.error(error),
      }),
    )
    const pause = () => {
      if (woken) return timer(0, context.scheduler)
      if (pollInterval === Infinity) return wakes.pipe(take(1))
      const delay = Math.min(pollInterval * (0.9 + 0.2 * context.random()), LONGEST_WAIT)
      return merge(timer(delay, context.scheduler), wakes).pipe(take(1))
    }
    const poll = defer(() => {
      woken = false
      return underGate(gate, catchUp(context, monitorId, query, progress, tracking))
    })
    poll.pipe(persisting(context, monitorSource(monitorId)), repeat({ delay: pause })).subscribe(subscriber)
  })
  return sourceOf(follow, signal)
}

/** What has been given out so far; as text, what a restart needs of it. */
class Progress {
  /** Id of the newest event that was given out. */
  mark: string | undefined
  /** When that was, where it is known. */
  time: string | null = null
  readonly #recent = new Set<string>()

  constructor(after: string | undefined) {
    this.mark = after
    if (after !== undefined) this.#recent.add(after)
  }

  /** The progress that was written as text before. */
  static parse(text: string): Progress {
    const parsed: unknown = JSON.parse(text)
    const { mark, time, before } = isObject(parsed) ? parsed : {}
    const progress = new Progress(typeof mark === 'string' ? mark : undefined)
    progress.time = typeof time === 'string' ? time : null
    for (const id of Array.isArray(before) ? before : []) progress.#recent.add(String(id))
    return progress
  }

  /** The progress as text, for {@link parse}. */
  toString(): string {
    // The mark alone may be one that the next start does not ask for: a completion.
    return JSON.stringify({ mark: this.mark, time: this.time, before: [...this.#recent].slice(-KEPT) })
  }

  has(id: string): boolean {
    return this.#recent.has(id)
  }

  /** The mark is gone for good: its loss has been told, and is not told again. */
  forget(): void {
    this.mark = undefined
  }

  advance(event: ResearchEvent): void {
    this.mark = event.id
    this.time = whenOf(event)
    this.#recent.add(event.id)
    if (this.#recent.size <= REMEMBERED) return
    const [oldest] = this.#recent
    if (oldest !== undefined) this.#recent.delete(oldest)
  }
}

/** When an event was: a change has a date, the rest a time. */
function whenOf(event: ResearchEvent | undefined): string | null {
  if (event?.type === 'monitor.event_stream' || event?.type === 'monitor.snapshot')
    return event.data.event_date
  return event?.time ?? null
}

/** One poll: pages back to what has been given out, then gives out the rest, oldest first. */
function catchUp(
  context: Context,
  monitorId: string,
  query: MonitorEventsQuery,
  progress: Progress,
  tracking: Tracking | undefined,
): Observable<ResearchEvent> {
  return new Observable((subscriber) => {
    const gate = currentGate()
    const controller = new AbortController()
    let fresh: ResearchEvent[] = []
    const ids = new Set<string>()
    let reached = false

    const emit = async (): Promise<void> => {
      fresh.reverse()
      if (!reached && progress.mark !== undefined) {
        const reason = 'the service no longer lists the last event that was received'
        const data = { from: progress.time, to: whenOf(fresh[0]), reason }
        const gap = gapEvent(monitorSource(monitorId), data, 'poll', `${progress.mark} ${fresh[0]?.id}`)
        tracking?.entered(gap, undefined)
        progress.forget()
        subscriber.next(gap)
      }
      for (const event of fresh) {
        if (gate?.closed === true) await opened(gate, controller.signal)
        if (subscriber.closed) return
        progress.advance(event)
        tracking?.entered(event, progress.toString())
        subscriber.next(event)
      }
      subscriber.complete()
    }

    // Nothing was given out yet, so a walk whose next page the service no longer knows can begin again.
    const beginAgain = (error: unknown) => {
      if (!(error instanceof ValidationError) || ids.size === 0) return throwError(() => error)
      fresh = []
      ids.clear()
      return timer(0, context.scheduler)
    }
    const walk = monitorPages(context, monitorId, query).pipe(retry({ count: WALKS, delay: beginAgain }))
    const pages = walk.subscribe({
      next: (page) => {
        for (const wire of page.events) {
          const event = monitorEvent(monitorId, wire, 'poll')
          if (progress.has(event.id)) {
            // What is not known has an id made of its content, and the same content may come twice.
            if (event.type === 'unknown') continue
            reached = true
            break
          }
          // An event that appears while paging pushes others onto the next page, where they come again.
          if (ids.has(event.id)) continue
          ids.add(event.id)
          fresh.push(event)
        }
        if (!reached) return
        pages.unsubscribe()
        void emit().catch((error: unknown) => subscriber.error(error))
      },
      error: (error: unknown) => subscriber.error(error),
      complete: () => void emit().catch((error: unknown) => subscriber.error(error)),
    })
    return () => {
      pages.unsubscribe()
      controller.abort()
    }
  })
}
