import { defer, EMPTY, isObservable, merge, Observable, repeat, Subject, take, timer } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { gateOf } from '../../protocol/gate.ts'
import type { Gate } from '../../protocol/gate.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { isRetryable } from '../../protocol/backoff.ts'
import { checkId, checkOptions, checkText, checkWait } from '../../protocol/check.ts'
import { cancelledEvent, gapEvent, isObject, monitorSource } from '../../protocol/event.ts'
import type { FollowedMonitorEvent, ListedMonitorEvent } from '../../protocol/event.ts'
import { MAX_PAGE_LIMIT } from '../../protocol/limits.ts'
import { MAX_TIMER_DELAY } from '../../protocol/timer-limit.ts'
import type { Monitor, MonitorEventsQuery } from '../../protocol/monitor.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { monitorEventsQuery } from '../../protocol/requests/monitors.ts'
import type { Place } from '../../state/progress-log.ts'
import type { Context } from '../context.ts'
import { fedBy } from '../shapes/fed-by.ts'
import { MonitorBacklog } from './backlog.ts'
import { MonitorPosition, whenOf } from './position.ts'
import { openOrAborted } from '../shapes/backpressure.ts'
import { persisting } from '../shapes/persisting.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import type { Tracking } from '../shapes/tracking.ts'
import { ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'

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

const FOLLOW_OPTIONS = ['after', 'pollInterval', 'wake', 'limit', 'include_completions', 'signal']

/** The least time between two looks at whether the monitor was cancelled, in ms. */
const STATUS_INTERVAL = 600_000

/**
 * Everything that a monitor reports, oldest first, each event once. A poll that fails is backed off from and made again; the
 * fifth answer in a row that is no page of events is an error.
 * Where the service no longer reaches back to the last event, a `stream.gap` comes in its place.
 *
 * Completes after `monitor.cancelled`, once all that a cancelled monitor reported was emitted; otherwise it never does. It asks for
 * the monitor after a poll that brought nothing, at most every ten minutes.
 */
export function followMonitor(
  context: Context,
  monitorId: string,
  options: FollowMonitorOptions = {},
  tracking?: Tracking,
): Source<FollowedMonitorEvent> {
  checkOptions('options', options, FOLLOW_OPTIONS)
  const { signal, after, pollInterval = 60_000, wake = EMPTY } = options
  const { limit = MAX_PAGE_LIMIT, include_completions } = options
  const query = { limit, include_completions }
  checkId('monitorId', monitorId)
  checkRequest(monitorEventsQuery, query)
  checkWait('pollInterval', pollInterval, true)
  if (!isObservable(wake)) throw new ArgumentError('wake', 'an Observable', wake)
  if (after !== undefined) checkText('after', after)

  const follow = new Observable<FollowedMonitorEvent>((subscriber) => {
    const polls = new Polls(context, monitorId, query, positionOf(after, tracking), tracking)
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
      if (polls.over) return EMPTY
      if (woken) return timer(0, context.scheduler)
      if (pollInterval === Infinity) return wakes.pipe(take(1))
      const delay = Math.min(pollInterval * (0.9 + 0.2 * context.random()), MAX_TIMER_DELAY)
      return merge(timer(delay, context.scheduler), wakes).pipe(take(1))
    }
    const poll = defer(() => {
      woken = false
      return fedBy<FollowedMonitorEvent>((poller, ended) => polls.poll(poller, ended))
    })
    const retryable = (error: unknown) => polls.mayPollAgain(error)
    poll
      .pipe(persisting(context, monitorSource(monitorId), { retryable }), repeat({ delay: pause }))
      .subscribe(subscriber)
  })
  return sourceOf(follow, signal)
}

/** The polls of one subscription. */
class Polls {
  readonly #context: Context
  readonly #monitorId: string
  readonly #position: MonitorPosition
  readonly #tracking: Tracking | undefined
  readonly #backlog: MonitorBacklog
  readonly #answers = new ProtocolErrorLimit()
  /** When it was looked last whether the monitor was cancelled. */
  #lookedAt = -Infinity
  /** The monitor, once it is known to be cancelled. */
  #cancelled: Monitor | undefined
  #over = false

  constructor(
    context: Context,
    monitorId: string,
    query: MonitorEventsQuery,
    position: MonitorPosition,
    tracking: Tracking | undefined,
  ) {
    this.#context = context
    this.#monitorId = monitorId
    this.#position = position
    this.#tracking = tracking
    this.#backlog = new MonitorBacklog(context, monitorId, query, position, this.#answers)
  }

  /** Whether the monitor reports nothing any more, and that was emitted. */
  get over(): boolean {
    return this.#over
  }

  mayPollAgain(error: unknown): boolean {
    return this.#answers.permitsRetry(error) && isRetryable(error)
  }

  /** Emits what was reported since the last event. */
  async poll(subscriber: Subscriber<FollowedMonitorEvent>, signal: AbortSignal): Promise<void> {
    const gate = gateOf(subscriber)
    if ((await this.#catchUp(subscriber, gate, signal)) || signal.aborted) return
    if (this.#cancelled === undefined) {
      this.#cancelled = await this.#ifCancelled(signal)
      if (this.#cancelled === undefined || signal.aborted) return
      // It may have reported something between the poll and its end.
      if ((await this.#catchUp(subscriber, gate, signal)) || signal.aborted) return
    }
    const { scheduler } = this.#context
    this.#over = true
    this.#emit(
      subscriber,
      cancelledEvent(this.#monitorId, this.#cancelled, 'poll', scheduler.now()),
      undefined,
    )
  }

  /** Returns whether there was anything. */
  async #catchUp(
    subscriber: Subscriber<FollowedMonitorEvent>,
    gate: Gate | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const position = this.#position
    let isEmpty = true
    this.#backlog.resume()
    for (;;) {
      const portion = await this.#backlog.next(signal, gate)
      if (portion === undefined || signal.aborted) return !isEmpty
      const { events, afterGap } = portion
      if (afterGap) {
        isEmpty = false
        const gap = this.#gapBefore(events[0])
        position.forget()
        this.#emit(subscriber, gap, undefined)
      }
      for (const event of events) {
        // A page that was fetched later than the next newer one may have the same events.
        if (position.has(event.id)) continue
        if (gate?.closed === true) await openOrAborted(gate, signal)
        if (signal.aborted) return true
        isEmpty = false
        position.advance(event)
        this.#emit(subscriber, event, position.place)
      }
    }
  }

  #emit(
    subscriber: Subscriber<FollowedMonitorEvent>,
    event: FollowedMonitorEvent,
    place: Place | undefined,
  ): void {
    this.#tracking?.entered(event, place)
    subscriber.next(event)
  }

  #gapBefore(oldest: ListedMonitorEvent | undefined): FollowedMonitorEvent {
    const { mark, time } = this.#position
    const reason = 'the service no longer lists the last event that was received'
    return gapEvent(
      monitorSource(this.#monitorId),
      { from: time, to: whenOf(oldest), reason },
      'poll',
      `${mark} ${oldest?.id}`,
      this.#context.scheduler.now(),
    )
  }

  /** The monitor, if it was cancelled; asked for seldom, since hardly one ever is. */
  async #ifCancelled(signal: AbortSignal): Promise<Monitor | undefined> {
    const { scheduler, transport } = this.#context
    if (scheduler.now() - this.#lookedAt < STATUS_INTERVAL) return undefined
    this.#lookedAt = scheduler.now()
    const request = { method: 'GET', path: monitorSource(this.#monitorId), idempotent: true } as const
    try {
      const { body } = await transport.request(request, signal)
      return isObject(body) && body['status'] === 'cancelled' ? (body as unknown as Monitor) : undefined
    } catch {
      // A service need not have this endpoint, and the list of events refuses what is refused for good.
      return undefined
    }
  }
}

/** Where the monitor's events go on: at the position that was kept, else behind `after`. */
function positionOf(after: string | undefined, tracking: Tracking | undefined): MonitorPosition {
  if (tracking?.position === undefined) return new MonitorPosition(after)
  const position = MonitorPosition.parse(tracking.position)
  if (position === undefined) throw tracking.unreadable()
  return position
}
