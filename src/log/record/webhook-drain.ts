import {
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  finalize,
  ignoreElements,
  map,
  of,
  ReplaySubject,
  Subject,
  Subscription,
  takeUntil,
  tap,
  timer,
  toArray,
} from 'rxjs'
import type { Observable } from 'rxjs'
import type { PendingDelivery } from '../store/inbox-store.ts'
import { macrotask } from '../../protocol/macrotask.ts'
import type { Pauses } from './pauses.ts'
import type { ClockedPart } from './clock.ts'
import { moveProgress, throughOf } from './progress-registry.ts'
import type { ProgressRegistry } from './progress-registry.ts'
import type { RecordedStream, Recorder } from './recorder.ts'
import type { EventOf, ResearchEvent } from '../../protocol/event.ts'
import { runSource } from '../../protocol/event.ts'
import { detection, isPartial, webhookEvent } from '../../protocol/webhook-event.ts'
import type { Detection } from '../../protocol/webhook-event.ts'
import { NotFoundError, RequestError } from '../../transport/errors.ts'
import type { Context } from '../../sources/context.ts'
import { openOrAborted } from '../../sources/shapes/backpressure.ts'
import { affectsAllSources } from '../../sources/watched-streams.ts'
import { executionEvents, retriedExpansion, runResult } from '../../sources/webhook-expansion.ts'
import { eventKey, FollowedMonitor, groupKey } from './followed-monitor.ts'
import { RecentKeys } from './recent-keys.ts'
import { RequestSlots } from './request-slots.ts'

/** The stream under whose claim a recorder takes deliveries from the inbox. */
const STREAM = 'webhooks'

/** How long a run's webhook without its output is held for the stream's event with it, in ms. */
const HOLD = 2_000

/** How long the news of a webhook that another process has stored is on its way, at most, in ms. */
const NOTICED = 2_000

/** Maximum number of requests at the same time. */
const MAX_REQUESTS = 4

/** Limits of the deliveries in work: at this number or this length, no more are read. */
const MAX_DELIVERIES = 10_000
const MAX_LENGTH = 32 * 1024 * 1024

/** Maximum number of deliveries in one read. */
const PAGE = 100

/** How many complete runs and expanded groups are remembered, for webhooks that arrive after them. */
const MAX_REMEMBERED = 10_000

/**
 * Records the webhooks of a log's inbox. A delivery is done in the append of its events, or after the append of the stream that has brought
 * them. Each is handled independently: a delivery that waits for a run's output, for a poll or for the service does not delay the others.
 */
export class WebhookDrain implements ClockedPart {
  readonly name = STREAM
  readonly #registry: ProgressRegistry | undefined
  readonly #pauses: Pauses
  readonly #context: Context
  readonly #recorder: Recorder
  readonly #onEvent: () => void
  /** The monitors, by source. */
  readonly #monitors = new Map<string, FollowedMonitor>()
  /** Partial runs that are held, and what drops each. */
  readonly #held = new Map<string, Subject<void>>()
  /** The deliveries that are being expanded or held, by key. Another delivery with the same key waits. */
  readonly #current = new Map<string, ReplaySubject<void>>()
  #remembered = new RecentKeys(MAX_REMEMBERED)
  readonly #slots = new RequestSlots(MAX_REQUESTS)
  #count = 0
  #length = 0
  /** The stream of the inbox, while this recording has it. */
  #stream: RecordedStream | undefined
  /** When each delivery in work was received, in the order of arrival. */
  readonly #receivedAt = new Set<{ readonly at: number }>()
  /** Up to when the deliveries were read; undefined if all of them were when they were looked for last. */
  #readUntil: number | undefined = -Infinity
  /** When they were looked for last. */
  #readAt = -Infinity
  /** Aborted to look for deliveries again. */
  #waiting = new AbortController()
  #through = -Infinity
  /** Resolves when a delivery is no longer in work. */
  #left = Promise.withResolvers<void>()

  /**
   * @param registry The log's list of progress. Undefined if nothing is said of how far the inbox is.
   * @param pauses The same as for the streams of the recording.
   * @param onEvent Called when an event is passed to the recorder.
   */
  constructor(
    context: Context,
    recorder: Recorder,
    registry: ProgressRegistry | undefined,
    pauses: Pauses,
    onEvent: () => void,
  ) {
    this.#registry = registry
    this.#pauses = pauses
    this.#context = withoutRetries(context)
    this.#recorder = recorder
    this.#onEvent = onEvent
  }

  /** A monitor that is polled from now on, until it ends. */
  follow(source: string): FollowedMonitor {
    const monitor = new FollowedMonitor()
    this.#monitors.set(source, monitor)
    return monitor
  }

  /** The monitor is no longer polled. */
  unfollow(source: string, monitor: FollowedMonitor): void {
    if (this.#monitors.get(source) === monitor) this.#monitors.delete(source)
    monitor.end()
  }

  /** Emits when a webhook of this source arrives; undefined if its monitor is not polled. */
  wakeOf(source: string): Observable<void> | undefined {
    return this.#monitors.get(source)?.wake
  }

  look(now: number): number | undefined {
    const stream = this.#stream
    if (stream === undefined) return undefined
    const [oldest] = this.#receivedAt
    const through = oldest?.at ?? this.#readUntil ?? this.#throughWhenEmpty(now)
    if (through > this.#through) {
      this.#through = through
      moveProgress(stream, through)
    }
    return this.#through
  }

  /** The news of deliveries that were stored during a pause may come late, so the inbox is read again after it. */
  #throughWhenEmpty(now: number): number {
    if (this.#pauses.last(now).end <= this.#readAt) return now - NOTICED
    this.#waiting.abort()
    return this.#readAt - NOTICED
  }

  /** Called after an event of another stream of this recording was passed to the recorder. */
  saw(event: ResearchEvent): void {
    if (event.type === 'task_run.state' && !isPartial(event)) {
      const key = runKey(event)
      this.#remembered.add(key)
      this.#held.get(key)?.next()
    }
    this.#monitors.get(event.source)?.saw(event)
  }

  /**
   * Records deliveries until the signal is aborted, once no other recorder does. Deliveries that are still being handled then stay in the
   * inbox. Rejects with errors of the log, and with an AuthenticationError.
   */
  async run(signal: AbortSignal): Promise<void> {
    const failed = Promise.withResolvers<never>()
    // Only awaited once the stream is open.
    failed.promise.catch(() => {})
    const stream = await this.#recorder.openInTurn(STREAM, signal, failed.reject)
    await this.#registry?.set(this.name, [STREAM], signal)
    this.#readUntil = this.#through = throughOf(stream.position)
    this.#stream = stream
    // Entries that were passed to the recorder in an earlier turn may not have been appended.
    this.#remembered = new RecentKeys(MAX_REMEMBERED)
    const work = new Subscription()
    const end = () => {
      work.unsubscribe()
      this.#left.resolve()
    }
    signal.addEventListener('abort', end, { once: true })
    try {
      signal.throwIfAborted()
      await Promise.race([this.#read(stream, work, failed.reject, signal), failed.promise])
    } finally {
      this.#stream = undefined
      end()
    }
  }

  async #read(
    stream: RecordedStream,
    work: Subscription,
    fail: (error: unknown) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { gate, inbox } = this.#recorder
    const { scheduler } = this.#context
    let place: string | null = null
    for (;;) {
      await openOrAborted(gate, signal)
      signal.throwIfAborted()
      const readAt = scheduler.now()
      this.#waiting = new AbortController()
      const page = await inbox.pending(place, PAGE)
      // A long backlog must not keep other work of the process waiting, such as the receiver.
      await macrotask()
      signal.throwIfAborted()
      if (page.length === 0) {
        this.#readUntil = undefined
        this.#readAt = readAt
        const waiting = this.#waiting.signal
        await inbox.wait(place, AbortSignal.any([signal, waiting])).catch((error: unknown) => {
          if (!waiting.aborted) throw error
        })
      }
      for (const delivery of page) {
        this.#readUntil = delivery.received
        signal.throwIfAborted()
        if (work.closed) return
        this.#begin(stream, delivery, work, fail)
        place = delivery.place
        while (this.#count >= MAX_DELIVERIES || this.#length >= MAX_LENGTH) {
          await this.#left.promise
          signal.throwIfAborted()
        }
      }
    }
  }

  #begin(
    stream: RecordedStream,
    delivery: PendingDelivery,
    work: Subscription,
    fail: (error: unknown) => void,
  ): void {
    const { id, payload, received, length } = delivery
    this.#count += 1
    this.#length += length
    const pending = { at: received }
    this.#receivedAt.add(pending)
    const recorded = defer(() => this.#eventsOf(payload, webhookEvent(payload, received))).pipe(
      tap((events) => {
        for (const event of events) stream.add(event)
        stream.done(id)
        if (events.length > 0) this.#onEvent()
      }),
      finalize(() => {
        this.#count -= 1
        this.#length -= length
        this.#receivedAt.delete(pending)
        this.#left.resolve()
        this.#left = Promise.withResolvers()
      }),
    )
    work.add(recorded.subscribe({ error: fail }))
  }

  /** Emits once: the events that are to be recorded for a delivery. */
  #eventsOf(payload: unknown, event: ResearchEvent): Observable<readonly ResearchEvent[]> {
    const detected = detection(payload)
    if (detected !== undefined) {
      return this.#once(`${event.source} ${detected.eventGroupId}`, (key) =>
        this.#detection(key, detected, event),
      )
    }
    if (isPartial(event)) return this.#once(runKey(event), (key) => this.#partialRun(key, event))
    const monitor = this.#monitors.get(event.source)
    if (monitor === undefined) return of([event])
    return monitor.brings(eventKey(event.id)).pipe(map((isRecorded) => (isRecorded ? [] : [event])))
  }

  /** Does the work for the first of several deliveries with the same key. The others are done after it, without events. */
  #once(
    key: string,
    work: (key: string) => Observable<readonly ResearchEvent[]>,
  ): Observable<readonly ResearchEvent[]> {
    if (this.#remembered.has(key)) return of([])
    const current = this.#current.get(key)
    if (current !== undefined) return current.pipe(map(() => []))
    const done = new ReplaySubject<void>(1)
    this.#current.set(key, done)
    return work(key).pipe(
      // Its events were passed to the recorder by then.
      tap({ complete: () => done.next() }),
      finalize(() => {
        this.#current.delete(key)
        done.complete()
      }),
    )
  }

  /** A monitor's own stream brings the group in order. Otherwise its events are fetched. */
  #detection(
    key: string,
    { monitorId, eventGroupId }: Detection,
    event: ResearchEvent,
  ): Observable<readonly ResearchEvent[]> {
    const expanded = defer(() => {
      const requests = executionEvents(this.#context, monitorId, eventGroupId, (each) =>
        this.#slots.run(each),
      )
      return this.#fetched(event.source, requests, event)
    }).pipe(tap(() => this.#remembered.add(key)))
    const monitor = this.#monitors.get(event.source)
    if (monitor === undefined) return expanded
    return monitor
      .brings(groupKey(eventGroupId))
      .pipe(concatMap((isRecorded) => (isRecorded ? of([]) : expanded)))
  }

  /** Held for the stream's event with the output; then the run's result is fetched. */
  #partialRun(key: string, event: EventOf<'task_run.state'>): Observable<readonly ResearchEvent[]> {
    const { scheduler } = this.#context
    const { run } = event.data
    const superseded = new Subject<void>()
    this.#held.set(key, superseded)
    const fetched = defer(() =>
      this.#fetched(runSource(run.run_id), this.#slots.run(runResult(this.#context, run)), event),
    )
    return concat(timer(HOLD, scheduler).pipe(ignoreElements()), fetched).pipe(
      takeUntil(superseded),
      defaultIfEmpty([]),
      finalize(() => this.#held.delete(key)),
    )
  }

  /**
   * The fetched events, or the webhook's own event if there are none, or if the service refuses them permanently; a transient failure is
   * retried with backoff.
   */
  #fetched(
    source: string,
    requests: Observable<ResearchEvent>,
    event: ResearchEvent,
  ): Observable<readonly ResearchEvent[]> {
    return requests.pipe(
      retriedExpansion(this.#context, source),
      toArray(),
      catchError((error: unknown) => {
        if (!(error instanceof RequestError) || affectsAllSources(error)) throw error
        if (!(error instanceof NotFoundError)) this.#context.report({ kind: 'expansion', error, event })
        return of([])
      }),
      map((events) => (events.length === 0 ? [event] : events)),
    )
  }
}

/** A request that fails frees its slot for others, and is retried by `retriedExpansion`. */
function withoutRetries(context: Context): Context {
  const { transport } = context
  const request: typeof transport.request = (given, signal) =>
    transport.request({ ...given, retries: 0 }, signal)
  return { ...context, transport: { ...transport, request } }
}

function runKey({ source, id }: ResearchEvent): string {
  return `${source} ${id}`
}
