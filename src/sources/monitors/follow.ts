import { defer, EMPTY, isObservable, merge, Observable, repeat, Subject, take, timer } from 'rxjs'
import type { Subscriber } from 'rxjs'
import type { Reconnection } from '../../../operators/reconnect.ts'
import { gateOf } from '../../protocol/gate.ts'
import type { Gate } from '../../protocol/gate.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { isRetryable } from '../../protocol/backoff.ts'
import { checkId, checkOptions, checkText, checkWait } from '../../protocol/check.ts'
import { cancelledEvent, gapEvent, monitorSource } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import type { FollowedMonitorEvent, ListedMonitorEvent } from '../../protocol/event.ts'
import { MAX_PAGE_LIMIT } from '../../protocol/limits.ts'
import { MAX_TIMER_DELAY } from '../../protocol/timer-limit.ts'
import type { Monitor, MonitorEventsQuery } from '../../protocol/monitor.ts'
import { checkRequest } from '../../protocol/requests/check.ts'
import { monitorEventsQuery } from '../../protocol/requests/monitors.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import type { Context } from '../context.ts'
import { fromAsync } from '../shapes/from-async.ts'
import { MonitorBacklog } from './backlog.ts'
import { MonitorPosition, timeOf } from './position.ts'
import { openOrAborted } from '../shapes/backpressure.ts'
import { withReconnect } from '../shapes/with-reconnect.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import { eventsOf, isProgress, StreamPositionError } from '../shapes/stream-item.ts'
import type { SourceStream, StreamItem } from '../shapes/stream-item.ts'
import { ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'

/** Options of `monitors.follow`. */
export interface FollowMonitorOptions extends Pick<MonitorEventsQuery, 'include_completions'>, SourceOptions {
  /** Events per page, 1 to 100. Default 100. */
  readonly limit?: number
  /** The `cursor` of the last handled event: emits only newer ones. Default: all events that the service has. */
  readonly after?: string
  /**
   * Time between polls, in ms, with a jitter of ±10 % so that clients do not poll in sync. `Infinity` polls once, and then
   * only when `wake` emits. Default 60,000.
   */
  readonly pollInterval?: number
  /** Each emission triggers a poll. Default: none. */
  readonly wake?: Observable<unknown>
}

/** The names of {@link FollowMonitorOptions}. */
export const FOLLOW_OPTIONS = ['after', 'pollInterval', 'wake', 'limit', 'include_completions', 'signal']

/** The least time between two requests for the monitor's status, in ms. */
const STATUS_INTERVAL = 600_000

/**
 * Emits the events of a monitor by polling, oldest first, each once. Failed polls are retried with backoff; the fifth response
 * in a row that is not a page of events is an error. If the service no longer lists the last event, emits `stream.gap` first.
 *
 * Completes only if the monitor is cancelled: with `monitor.cancelled` after its last event. Requests the monitor's status
 * after a poll without events, at most every ten minutes.
 */
export function followMonitor(
  context: Context,
  monitorId: string,
  options: FollowMonitorOptions = {},
): Source<FollowedMonitorEvent> {
  return sourceOf(eventsOf(followedItems(context, monitorId, options)), options.signal)
}

/** The stream of a monitor. */
export function monitorStreamOf(monitorId: string): SourceStream {
  return { name: `monitors/${monitorId}`, source: monitorSource(monitorId) }
}

/** The same with the position after each event. Resumes from a saved one. */
export function followedItems(
  context: Context,
  monitorId: string,
  options: FollowMonitorOptions,
  saved?: string,
): Observable<StreamItem<FollowedMonitorEvent>> {
  checkOptions('options', options, FOLLOW_OPTIONS)
  const { after, pollInterval = 60_000, wake = EMPTY } = options
  const { limit = MAX_PAGE_LIMIT, include_completions } = options
  const query = { limit, include_completions }
  checkId('monitorId', monitorId)
  checkRequest(monitorEventsQuery, query)
  checkWait('pollInterval', pollInterval, true)
  if (!isObservable(wake)) throw new ArgumentError('wake', 'an Observable', wake)
  if (after !== undefined) checkText('after', after)

  return new Observable((subscriber) => {
    const stream = monitorStreamOf(monitorId)
    const position = saved === undefined ? new MonitorPosition(after) : MonitorPosition.parse(saved)
    if (position === undefined) throw new StreamPositionError(stream)
    const poller = new Poller(context, monitorId, query, position)
    const wakes = new Wakes(wake, subscriber)
    const pause = () => {
      if (poller.isDone) return EMPTY
      if (wakes.isPending) return timer(0, context.scheduler)
      if (pollInterval === Infinity) return wakes.next
      const delay = Math.min(pollInterval * (0.9 + 0.2 * context.random()), MAX_TIMER_DELAY)
      return merge(timer(delay, context.scheduler), wakes.next).pipe(take(1))
    }
    const poll = defer(() => {
      // A walk that is resumed does not list events that came after its beginning.
      if (poller.isAtStart) {
        wakes.isPending = false
        subscriber.next({ kind: 'polling', stream })
      }
      return fromAsync<StreamItem<FollowedMonitorEvent>>((polled, ended) => poller.poll(polled, ended))
    })
    const onReconnect = ({ cause, attempt }: Reconnection) => {
      // The request was retried already. A single malformed answer, such as a broken pagination, is no outage.
      if (!(cause instanceof ProtocolError) || attempt > 1)
        subscriber.next({ kind: 'lost', stream, error: cause })
    }
    poll
      .pipe(
        withReconnect<StreamItem<FollowedMonitorEvent>>(context, stream.source, {
          retryable: (error) => poller.isRetryable(error),
          onReconnect,
          progress: isProgress,
        }),
        repeat({ delay: pause }),
      )
      .subscribe(subscriber)
  })
}

/** The calls for a poll by the option `wake`. Its error ends the subscription. */
class Wakes {
  readonly #wakes = new Subject<void>()
  /** Emits at the next call, and completes. */
  readonly next = this.#wakes.pipe(take(1))
  /** Whether there was a call since the begin of a poll: it may announce an event that this poll has missed. */
  isPending = false

  constructor(wake: Observable<unknown>, subscriber: Subscriber<unknown>) {
    subscriber.add(
      wake.subscribe({
        next: () => {
          this.isPending = true
          this.#wakes.next()
        },
        error: (error: unknown) => subscriber.error(error),
      }),
    )
  }
}

/** The polls of one subscription. */
class Poller {
  readonly #context: Context
  readonly #monitorId: string
  readonly #stream: SourceStream
  readonly #position: MonitorPosition
  readonly #backlog: MonitorBacklog
  readonly #errorLimit = new ProtocolErrorLimit()
  /** When the monitor's status was last requested. */
  #statusRequestedAt = -Infinity
  /** The monitor, if it is cancelled. */
  #cancelled: Monitor | undefined
  #isDone = false

  constructor(context: Context, monitorId: string, query: MonitorEventsQuery, position: MonitorPosition) {
    this.#context = context
    this.#monitorId = monitorId
    this.#stream = monitorStreamOf(monitorId)
    this.#position = position
    this.#backlog = new MonitorBacklog(context, { monitorId, query }, position, this.#errorLimit)
  }

  /** Whether `monitor.cancelled` was emitted. */
  get isDone(): boolean {
    return this.#isDone
  }

  /** Whether the next poll begins at the newest event. */
  get isAtStart(): boolean {
    return this.#backlog.isAtStart
  }

  isRetryable(error: unknown): boolean {
    return this.#errorLimit.permitsRetry(error) && isRetryable(error)
  }

  /** Emits the events since the last one. */
  async poll(subscriber: Subscriber<StreamItem<FollowedMonitorEvent>>, signal: AbortSignal): Promise<void> {
    const gate = gateOf(subscriber)
    if ((await this.#catchUp(subscriber, gate, signal)) || signal.aborted) return
    if (this.#cancelled === undefined) {
      this.#cancelled = await this.#getIfCancelled(signal)
      if (this.#cancelled === undefined || signal.aborted) return
      // Events may have come between the poll and the cancellation.
      if ((await this.#catchUp(subscriber, gate, signal)) || signal.aborted) return
    }
    const { scheduler } = this.#context
    this.#isDone = true
    this.#emit(
      subscriber,
      cancelledEvent(this.#monitorId, this.#cancelled, 'poll', scheduler.now()),
      undefined,
    )
  }

  /** Emits the backlog. Returns whether there was any event. */
  async #catchUp(
    subscriber: Subscriber<StreamItem<FollowedMonitorEvent>>,
    gate: Gate | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const position = this.#position
    let isEmpty = true
    this.#backlog.resume()
    for (;;) {
      const batch = await this.#backlog.next(signal, gate)
      if (signal.aborted) return !isEmpty
      subscriber.next({ kind: 'reached', stream: this.#stream })
      if (batch === undefined) {
        this.#caughtUp(subscriber)
        return !isEmpty
      }
      const { events, afterGap } = batch
      if (afterGap) {
        isEmpty = false
        const gap = this.#gapBefore(events[0])
        position.forgetLast()
        this.#emit(subscriber, gap, undefined)
      }
      for (const event of events) {
        // New events may have moved this event from a page that was emitted already.
        if (position.has(event.id)) continue
        if (gate?.closed === true) await openOrAborted(gate, signal)
        if (signal.aborted) return true
        isEmpty = false
        position.advance(event)
        this.#emit(subscriber, event, position.snapshot)
      }
    }
  }

  #caughtUp(subscriber: Subscriber<StreamItem<FollowedMonitorEvent>>): void {
    const position = this.#position
    const wasFirstWalk = position.isFirstWalk
    position.isFirstWalk = false
    subscriber.next({
      kind: 'caughtUp',
      stream: this.#stream,
      position: wasFirstWalk ? position.snapshot : undefined,
    })
  }

  #emit(
    subscriber: Subscriber<StreamItem<FollowedMonitorEvent>>,
    event: FollowedMonitorEvent,
    position: StreamPosition | undefined,
  ): void {
    const isBackfill = this.#position.isFirstWalk
    subscriber.next({ kind: 'event', stream: this.#stream, event, position, isNew: true, isBackfill })
  }

  #gapBefore(oldest: ListedMonitorEvent | undefined): FollowedMonitorEvent {
    const { lastId, time } = this.#position
    const reason = 'the service no longer lists the last event that was received'
    return gapEvent(
      monitorSource(this.#monitorId),
      { from: time, to: timeOf(oldest), reason },
      'poll',
      `${lastId} ${oldest?.id}`,
      this.#context.scheduler.now(),
    )
  }

  /** Returns the monitor if it was cancelled. Rarely requested, since few monitors are. */
  async #getIfCancelled(signal: AbortSignal): Promise<Monitor | undefined> {
    const { scheduler, transport } = this.#context
    // A wall clock that was set back does not make the wait longer.
    this.#statusRequestedAt = Math.min(this.#statusRequestedAt, scheduler.now())
    if (scheduler.now() - this.#statusRequestedAt < STATUS_INTERVAL) return undefined
    this.#statusRequestedAt = scheduler.now()
    const request = { method: 'GET', path: monitorSource(this.#monitorId), idempotent: true } as const
    try {
      const { body } = await transport.request(request, signal)
      return isObject(body) && body['status'] === 'cancelled' ? (body as unknown as Monitor) : undefined
    } catch {
      // The service may lack this endpoint. A permanent error is raised by the list of events.
      return undefined
    }
  }
}
