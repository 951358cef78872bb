import {
  asyncScheduler,
  catchError,
  concat,
  connect,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  finalize,
  isObservable,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  ReplaySubject,
  take,
  takeUntil,
  tap,
  throwError,
  timer,
  toArray,
} from 'rxjs'
import type { ObservableInput, OperatorFunction, SchedulerLike } from 'rxjs'
import { ArgumentError } from '../src/protocol/argument-error.ts'
import { checkDuration, checkOptionalFunctions, checkOptions, checkScheduler } from '../src/protocol/check.ts'
import type { ResearchEvent } from '../src/protocol/event.ts'
import type { TaskRun } from '../src/protocol/task.ts'
import type { WebhookDelivery } from '../src/protocol/webhook.ts'
import { Deduplicator } from './merge-webhooks/deduplicator.ts'
import type { HeldEvent } from './merge-webhooks/deduplicator.ts'
import { expandInOrder } from './merge-webhooks/expand-in-order.ts'
import { Gate, gateOf, withGate } from '../src/protocol/gate.ts'
import { checkMemory, MEMORY_OPTIONS, RecentIds } from './dedupe/recent-ids.ts'
import type { DedupeMemory } from './dedupe/recent-ids.ts'
import { ofType } from './of-type.ts'
import { underGate } from './under-gate.ts'
import { detection, isPartial, webhookEvent } from '../src/protocol/webhook-event.ts'
import type { Detection } from '../src/protocol/webhook-event.ts'

/** Settings of {@link mergeWebhooks}. */
export interface MergeWebhooksOptions extends DedupeMemory {
  /**
   * Fetches the events that a thin webhook announces (§6.2), oldest first, and completes. Default: none, and the webhook
   * becomes an `unknown` event.
   */
  readonly expandMonitor?: (monitorId: string, eventGroupId: string) => ObservableInput<ResearchEvent>
  /**
   * Fetches the complete event of a run whose webhook lacks its output, if the stream does not emit it within `hold`, and
   * completes. Default: none, and the partial event is emitted.
   */
  readonly expandRun?: (run: TaskRun) => ObservableInput<ResearchEvent>
  /** How long a partial event of a run is held for the stream's complete one, in ms. Default 2,000. */
  readonly hold?: number
  /**
   * Called when an expansion failed, with the error and the webhook's own event, which is emitted instead. An error that it throws errors
   * the result: rethrow an error that concerns more than this webhook. Default: none.
   */
  readonly onError?: (error: unknown, event: ResearchEvent) => void
  /** Called with each dropped duplicate. An error that it throws errors the result. Default: none. */
  readonly onDuplicate?: (event: ResearchEvent) => void
  /** Schedules `hold`, and is the clock for `timeToLive`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

const OPTIONS = Object.keys({
  ...MEMORY_OPTIONS,
  expandMonitor: true,
  expandRun: true,
  hold: true,
  onError: true,
  onDuplicate: true,
  scheduler: true,
} satisfies Record<keyof MergeWebhooksOptions, true>)

/** Number of held events at which deliveries are paused. */
const MAX_HELD = 1_000

/** Maximum number of concurrent expansions, of runs and of monitors each. */
const MAX_EXPANSIONS = 4

/**
 * Merges webhooks into a stream of events, and emits each event once, in its most complete form.
 *
 *     stream:      --a-------R-----c--|
 *     deliveries:  ----A-r-----[d]----      A: also a; r: run R without its output; [d]: a thin webhook of d
 *                  mergeWebhooks(deliveries, { expandMonitor })
 *     result:      --a-------R--d--c--|
 *
 * - A duplicate is dropped, whether the webhook or the stream's event came first.
 * - A completed run's webhook lacks the output. This partial event is held for `hold` ms; if the stream does not emit the
 *   complete one, it is expanded with `expandRun` or emitted as it is. A failed run's webhook with its error is not held.
 * - A thin webhook of a monitor (§6.2) is expanded into its events with `expandMonitor`, several at a time, in order.
 * - A webhook of an unknown kind becomes an `unknown` event.
 *
 * Completes when the stream has completed and the events of earlier webhooks are emitted. `deliveries` need not complete.
 *
 * ```ts
 * import { EMPTY, of } from 'rxjs'
 * import type { Observable } from 'rxjs'
 * import type { ResearchEvent } from 'rivulet'
 * import type { WebhookDelivery } from 'rivulet/webhooks'
 * import { mergeWebhooks } from 'rivulet/operators'
 *
 * const stream: Observable<ResearchEvent> = EMPTY
 * const deliveries = of<WebhookDelivery>({
 *   id: 'msg_1',
 *   timestamp: 1_767_225_600,
 *   payload: { type: 'task_run.status', data: { run_id: 'run_1', status: 'failed', error: { message: 'No source' } } },
 * })
 *
 * stream
 *   .pipe(mergeWebhooks(deliveries, { expandMonitor: () => EMPTY }))
 *   .subscribe((event) => console.log(event.id))
 * ```
 *
 * An error of the stream or of the deliveries passes through, after the held events.
 *
 * When an expansion fails, `onError` is called and the webhook's own event is emitted, which is `unknown` for a monitor; an
 * empty expansion is the same without `onError`. Unsubscribing unsubscribes from both sources and ends delays and expansions.
 *
 * @throws ArgumentError at the call, for `deliveries` that are not an Observable, and for an unknown option or an invalid one.
 */
export function mergeWebhooks(
  deliveries: Observable<WebhookDelivery>,
  options: MergeWebhooksOptions = {},
): OperatorFunction<ResearchEvent, ResearchEvent> {
  checkOptions('options', options, OPTIONS)
  const { expandMonitor, expandRun, hold = 2_000, onDuplicate, onError, scheduler = asyncScheduler } = options
  if (!isObservable(deliveries)) throw new ArgumentError('deliveries', 'an Observable', deliveries)
  checkDuration('hold', hold)
  checkOptionalFunctions({ expandMonitor, expandRun, onDuplicate, onError })
  checkScheduler('scheduler', scheduler)
  checkMemory(options)
  const settings = { expandMonitor, expandRun, hold, onDuplicate, onError, scheduler, memory: options }
  return (stream) =>
    new Observable((subscriber) => {
      const gate = gateOf(subscriber)
      const merged = new WebhookMerger(settings, gate).merge(stream, deliveries)
      return withGate(gate, () => merged.subscribe(subscriber))
    })
}

/** The options with their defaults, read at the call. */
interface MergeSettings {
  readonly expandMonitor: MergeWebhooksOptions['expandMonitor']
  readonly expandRun: MergeWebhooksOptions['expandRun']
  readonly hold: number
  readonly onError: MergeWebhooksOptions['onError']
  readonly onDuplicate: MergeWebhooksOptions['onDuplicate']
  readonly scheduler: SchedulerLike
  readonly memory: DedupeMemory
}

interface HeldRun {
  readonly type: 'run'
  readonly held: HeldEvent
  readonly run: TaskRun
}

interface HeldDetection {
  readonly type: 'detection'
  readonly held: HeldEvent
  readonly detected: Detection
}

/** How a webhook is processed: emitted at once, held for a complete event, or expanded. */
type Action = { readonly type: 'event'; readonly event: ResearchEvent } | HeldRun | HeldDetection

/** One subscription of `mergeWebhooks`. */
class WebhookMerger {
  readonly #settings: MergeSettings
  readonly #gate: Gate | undefined
  /** Pauses deliveries while the subscriber is paused or too many events are held. */
  readonly #deliveriesGate = new Gate()
  readonly #deduplicator: Deduplicator
  readonly #streamEnded = new ReplaySubject<void>(1)
  #heldCount = 0

  constructor(settings: MergeSettings, gate: Gate | undefined) {
    const { memory, scheduler, onDuplicate } = settings
    this.#settings = settings
    this.#gate = gate
    this.#deduplicator = new Deduplicator(new RecentIds(memory, () => scheduler.now()), {
      onDuplicate,
      onHeld: (count) => {
        this.#heldCount = count
        this.#updateGate()
      },
    })
  }

  merge(
    stream: Observable<ResearchEvent>,
    deliveries: Observable<WebhookDelivery>,
  ): Observable<ResearchEvent> {
    const unlisten = this.#gate?.onChange(() => this.#updateGate())
    this.#updateGate()
    const deduplicator = this.#deduplicator
    const streamEvents = stream.pipe(
      tap({ next: (event) => deduplicator.supersede(event), complete: () => this.#streamEnded.next() }),
    )
    // Subscribes to webhooks first, so that none is missed while the stream emits synchronously.
    return merge(this.#webhookEvents(deliveries), streamEvents).pipe(
      catchError((error: unknown) =>
        concat(
          deduplicator.held,
          throwError(() => error),
        ),
      ),
      filter((event) => deduplicator.admit(event)),
      finalize(() => unlisten?.()),
    )
  }

  #updateGate(): void {
    if (this.#gate?.closed === true || this.#heldCount >= MAX_HELD) this.#deliveriesGate.close()
    else this.#deliveriesGate.open()
  }

  #webhookEvents(deliveries: Observable<WebhookDelivery>): Observable<ResearchEvent> {
    return deliveries.pipe(
      underGate(this.#deliveriesGate),
      takeUntil(this.#streamEnded),
      map((delivery) => this.#actionFor(delivery)),
      filter((action) => action !== undefined),
      connect((actions) =>
        merge(
          actions.pipe(
            ofType('event'),
            map(({ event }) => event),
          ),
          actions.pipe(
            ofType('run'),
            mergeMap((run) => this.#holdTimeout(run).pipe(map(() => run))),
            mergeMap((run) => this.#expandRun(run), MAX_EXPANSIONS),
          ),
          actions.pipe(
            ofType('detection'),
            expandInOrder((held: HeldDetection) => this.#expandDetection(held), MAX_EXPANSIONS),
            mergeMap(({ held, events }) => {
              this.#deduplicator.release(held)
              return events
            }),
          ),
        ),
      ),
    )
  }

  #actionFor({ payload }: WebhookDelivery): Action | undefined {
    const deduplicator = this.#deduplicator
    const event = webhookEvent(payload, this.#settings.scheduler.now())
    const detected = this.#settings.expandMonitor && detection(payload)
    if (detected !== undefined) {
      const held = deduplicator.hold(event)
      // Otherwise another delivery of the same detection is being expanded, and has the events.
      return held && { type: 'detection', held, detected }
    }
    if (isPartial(event) && !deduplicator.wasEmitted(event)) {
      const held = deduplicator.hold(event)
      return held && { type: 'run', held, run: event.data.run }
    }
    deduplicator.supersede(event)
    return { type: 'event', event }
  }

  #holdTimeout({ held }: HeldRun): Observable<unknown> {
    const { hold, scheduler } = this.#settings
    return merge(timer(hold, scheduler), this.#streamEnded).pipe(take(1), takeUntil(held.superseded))
  }

  /**
   * Emits the events of an expansion, then the partial event, which is dropped if the expansion emitted one that is at least as complete.
   * Events of the expansion do not call `supersede`, which would unsubscribe from the expansion before they are emitted.
   */
  #expandRun({ held, run }: HeldRun): Observable<ResearchEvent> {
    return concat(
      this.#expand(held, () => this.#settings.expandRun?.(run) ?? EMPTY, []),
      defer(() => {
        this.#deduplicator.release(held)
        return of(held.event)
      }),
    ).pipe(takeUntil(held.superseded))
  }

  /** The webhook's event stays held until its events are emitted in order: an error of the stream does not lose it. */
  #expandDetection({ held, detected: { monitorId, eventGroupId } }: HeldDetection) {
    const fetch = () => this.#settings.expandMonitor?.(monitorId, eventGroupId) ?? EMPTY
    return this.#expand(held, fetch, [held.event]).pipe(
      defaultIfEmpty(held.event),
      toArray(),
      map((events) => ({ held, events })),
    )
  }

  #expand(
    held: HeldEvent,
    fetch: () => ObservableInput<ResearchEvent>,
    fallback: ResearchEvent[],
  ): Observable<ResearchEvent> {
    return defer(fetch).pipe(
      underGate(this.#gate),
      catchError((error: unknown) => {
        this.#settings.onError?.(error, held.event)
        return fallback
      }),
    )
  }
}
