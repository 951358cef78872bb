import {
  concat,
  defer,
  EMPTY,
  ignoreElements,
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
import { gateOf } from '../../operators/gate.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkId, checkText, checkWait, LONGEST_WAIT } from '../protocol/check.ts'
import { gapEvent, monitorEvent, monitorSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { MAX_PAGE_LIMIT } from '../protocol/limits.ts'
import type { MonitorEventsQuery, PaginatedMonitorEvents } from '../protocol/monitor.ts'
import { ValidationError } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { checkMonitorEventsQuery } from './monitor-events.ts'
import { fedBy } from './fed-by.ts'
import { monitorPages } from './monitor-pages.ts'
import { MonitorPosition, whenOf } from './monitor-position.ts'
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
    const position = positionOf(after, tracking)
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
      return catchUp(context, monitorId, query, position, tracking)
    })
    poll.pipe(persisting(context, monitorSource(monitorId)), repeat({ delay: pause })).subscribe(subscriber)
  })
  return sourceOf(follow, signal)
}

/** One poll: pages back to what has been given out, then gives out the rest, oldest first. */
function catchUp(
  context: Context,
  monitorId: string,
  query: MonitorEventsQuery,
  position: MonitorPosition,
  tracking: Tracking | undefined,
): Observable<ResearchEvent> {
  return defer(() => {
    // In the order in which they were seen last: an event that appears while paging pushes others onto the next page,
    // where they come again, behind those that are newer.
    const fresh = new Map<string, ResearchEvent>()
    let pages = 0
    /** Whether the list still has something that was given out. */
    let reached = false

    /** Takes what is new of a page; returns whether there may be more of it on the next. */
    const collect = (page: PaginatedMonitorEvents): boolean => {
      pages += 1
      for (const wire of page.events) {
        const event = monitorEvent(monitorId, wire, 'poll', context.scheduler.now())
        if (position.has(event.id)) {
          reached = true
          // What is not known has an id made of its content, and the same content may come twice.
          if (event.type === 'unknown') continue
          return false
        }
        fresh.delete(event.id)
        fresh.set(event.id, event)
      }
      return true
    }
    // Nothing was given out yet, so a walk whose next page the service no longer knows can begin again.
    const beginAgain = (error: unknown) => {
      if (!(error instanceof ValidationError) || pages === 0) return throwError(() => error)
      fresh.clear()
      pages = 0
      reached = false
      return timer(0, context.scheduler)
    }
    const walk = monitorPages(context, monitorId, query, collect).pipe(
      retry({ count: WALKS, delay: beginAgain }),
      ignoreElements(),
    )

    const gap = (oldest: ResearchEvent | undefined) => {
      const reason = 'the service no longer lists the last event that was received'
      const data = { from: position.time, to: whenOf(oldest), reason }
      return gapEvent(
        monitorSource(monitorId),
        data,
        'poll',
        `${position.mark} ${oldest?.id}`,
        context.scheduler.now(),
      )
    }
    const told = fedBy<ResearchEvent>(async (subscriber, signal) => {
      const gate = gateOf(subscriber)
      const events = [...fresh.values()].toReversed()
      if (!reached && position.mark !== undefined) {
        const event = gap(events[0])
        tracking?.entered(event, undefined)
        position.forget()
        subscriber.next(event)
      }
      for (const event of events) {
        if (gate?.closed === true) await opened(gate, signal)
        if (subscriber.closed) return
        position.advance(event)
        tracking?.entered(event, position.place)
        subscriber.next(event)
      }
    })
    return concat(walk, told)
  })
}

/** Where the monitor's events go on: at the position that was kept, else behind `after`. */
function positionOf(after: string | undefined, tracking: Tracking | undefined): MonitorPosition {
  if (tracking?.position === undefined) return new MonitorPosition(after)
  const position = MonitorPosition.parse(tracking.position)
  if (position === undefined) throw tracking.unreadable()
  return position
}
