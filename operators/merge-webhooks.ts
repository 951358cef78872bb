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
import { isRetryable } from '../src/protocol/backoff.ts'
import { checkDuration } from '../src/protocol/check.ts'
import type { EventOf, ResearchEvent } from '../src/protocol/event.ts'
import type { TaskRun } from '../src/protocol/task.ts'
import type { WebhookDelivery } from '../src/protocol/webhook.ts'
import { expandInOrder } from './merge-webhooks/expand-in-order.ts'
import { Facts } from './merge-webhooks/facts.ts'
import type { Held } from './merge-webhooks/facts.ts'
import { Gate, gateOf, throughGate } from '../src/protocol/gate.ts'
import { checkMemory, RecentIds } from './dedupe/recent-ids.ts'
import type { Memory } from './dedupe/recent-ids.ts'
import { ofType } from './of-type.ts'
import { underGate } from './under-gate.ts'
import { detection, webhookEvent } from '../src/protocol/webhook-event.ts'
import type { Detection } from '../src/protocol/webhook-event.ts'

/** Settings of {@link mergeWebhooks}. */
export interface MergeWebhooksConfig extends Memory {
  /**
   * Fetches the events that a thin webhook announces (§6.2), oldest first, and completes. Default: none, and the
   * webhook is passed on as an `unknown` event.
   */
  readonly expandMonitor?: (monitorId: string, eventGroupId: string) => ObservableInput<ResearchEvent>
  /**
   * Fetches the full copy of a run whose webhook lacks its output, when the stream did not bring it in time, and
   * completes. Default: none, and the webhook's copy is passed on.
   */
  readonly expandRun?: (run: TaskRun) => ObservableInput<ResearchEvent>
  /** How long a run's webhook that lacks something waits for the stream's fuller copy, in ms. Default 2,000. */
  readonly hold?: number
  /**
   * Called when an expansion failed, with the error and the webhook's own event, which is passed on instead. What it
   * throws goes to the subscriber: for an error that concerns more than this webhook.
   */
  readonly onError?: (error: unknown, event: ResearchEvent) => void
  /** Called with each copy that is dropped, because the fact was told. What it throws goes to the subscriber. */
  readonly onDuplicate?: (event: ResearchEvent) => void
  /**
   * Called with each delivery and the events that it stands for, as soon as they are known and before they are told.
   * Once they are handled, so is the delivery.
   */
  readonly onDelivery?: (delivery: WebhookDelivery, events: readonly ResearchEvent[]) => void
  /** Called with those of the dropped copies whose fact was told before, rather than by the copy that comes next. */
  readonly onDrop?: (event: ResearchEvent) => void
  /** Holds, and tells the time for `timeToLive`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

/** Webhooks that may wait for their expansion before no more are taken in. */
const MAX_HELD = 1_000

/** Expansions of runs that go on at once, and as many of monitors. */
const EXPANSIONS = 4

/**
 * Joins webhooks with the stream of events, so that each fact is told once and by the copy that says most.
 *
 *     stream:      --a-------R-----c--|
 *     deliveries:  ----A-r-----[d]----      A: about a; r: run R without its output; [d]: a thin webhook about d
 *                  mergeWebhooks(deliveries, { expandMonitor })
 *     result:      --a-------R--d--c--|
 *
 * - A webhook about something that was told is dropped; so is the stream's copy of what a webhook told.
 * - A completed run's webhook lacks the output. It waits `hold` ms for the stream's fuller copy; if none comes, it is
 *   expanded with `expandRun` or passed on as it is. A failed run's webhook with its error does not wait.
 * - A thin webhook of a monitor (§6.2) is expanded into its events with `expandMonitor`, several at a time, in order.
 * - A webhook of an unknown kind becomes an `unknown` event.
 *
 * Completes when the stream has completed and what its webhooks had announced by then is told. Webhooks never end, so
 * they do not keep a finished stream alive.
 *
 * ```ts
 * import { EMPTY, of } from 'rxjs'
 * import type { Observable } from 'rxjs'
 * import type { ResearchEvent, WebhookDelivery } from 'rivulet'
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
 * An error of the stream or of the deliveries passes through, after the webhooks that still wait, each as it came, unless
 * `onDelivery` keeps account of them. A
 * failed expansion ends nothing: it is told to `onError`, and the webhook's own event takes its place, an `unknown` one
 * for a monitor. So does it when an expansion finds nothing. With `onDelivery`, a failure that says of itself that it is
 * `retryable` is an error: the delivery is not handled, and comes again.
 * Unsubscribing unsubscribes from both and ends waits and expansions.
 *
 * @throws ArgumentError at the call, for `deliveries` that are no Observable, a negative `hold`, a `capacity` below 1 or
 * a negative `timeToLive`.
 */
export function mergeWebhooks(
  deliveries: Observable<WebhookDelivery>,
  config: MergeWebhooksConfig = {},
): OperatorFunction<ResearchEvent, ResearchEvent> {
  const { expandMonitor, expandRun, hold = 2_000, onError, scheduler = asyncScheduler } = config
  const { onDelivery, onDuplicate, onDrop } = config
  if (!isObservable(deliveries)) throw new ArgumentError('deliveries', 'an Observable', deliveries)
  checkDuration('hold', hold)
  checkMemory(config)

  return (stream) =>
    new Observable((subscriber) => {
      const gate = gateOf(subscriber)
      // Deliveries are held back by whoever holds the stream back, and while too many wait to be expanded.
      const intake = new Gate()
      let waiting = 0
      const regulate = () => {
        if (gate?.closed === true || waiting >= MAX_HELD) intake.close()
        else intake.open()
      }
      const unlisten = gate?.onChange(regulate)
      regulate()
      const facts = new Facts(new RecentIds(config, () => scheduler.now()), {
        onDuplicate,
        onDrop,
        onHeld(count) {
          waiting = count
          regulate()
        },
      })
      const streamEnded = new ReplaySubject<void>(1)

      const arrive = (delivery: WebhookDelivery): Arrival | undefined => {
        const { payload } = delivery
        const event = webhookEvent(payload, scheduler.now())
        const found = expandMonitor && detection(payload)
        if (found !== undefined) {
          const held = facts.hold(event)
          if (held !== undefined) return { type: 'detection', delivery, held, found }
          // The delivery whose expansion is under way stands for the events.
          onDelivery?.(delivery, [])
          return undefined
        }
        onDelivery?.(delivery, [event])
        if (awaitsMore(event) && !facts.isTold(event)) {
          const held = facts.hold(event)
          return held && { type: 'run', held, run: event.data.run }
        }
        facts.settle(event)
        return { type: 'event', event }
      }

      const untilHeldEnough = ({ held }: HeldRun) =>
        merge(timer(hold, scheduler), streamEnded).pipe(take(1), takeUntil(held.settled))

      const expand = (held: Held, ask: () => ObservableInput<ResearchEvent>, otherwise: ResearchEvent[]) =>
        defer(ask).pipe(
          underGate(gate),
          catchError((error: unknown) => {
            onError?.(error, held.event)
            // A delivery counts as handled once its events are. They may still become known after a failure that passes.
            return onDelivery !== undefined && isRetryable(error) ? throwError(() => error) : otherwise
          }),
        )

      // The held copy comes last, and is dropped as a duplicate where the expansion brought one that says as much. Only
      // the stream and other webhooks end the expansion: if its own event did, that event could not pass any more.
      const expandHeldRun = ({ held, run }: HeldRun) =>
        concat(
          expand(held, () => expandRun?.(run) ?? EMPTY, []),
          defer(() => {
            facts.release(held)
            return of(held.event)
          }),
        ).pipe(takeUntil(held.settled))

      // What is found is held until its turn, so that an error of the stream meanwhile does not lose the webhook.
      const expandDetection = ({ delivery, held, found }: HeldDetection) =>
        expand(held, () => expandMonitor?.(found.monitorId, found.eventGroupId) ?? EMPTY, [held.event]).pipe(
          defaultIfEmpty(held.event),
          toArray(),
          map((events) => ({ delivery, held, events })),
        )

      const webhookEvents = deliveries.pipe(
        underGate(intake),
        takeUntil(streamEnded),
        map(arrive),
        filter((arrival) => arrival !== undefined),
        connect((arrivals) =>
          merge(
            arrivals.pipe(
              ofType('event'),
              map(({ event }) => event),
            ),
            arrivals.pipe(
              ofType('run'),
              mergeMap((copy) => untilHeldEnough(copy).pipe(map(() => copy))),
              mergeMap(expandHeldRun, EXPANSIONS),
            ),
            arrivals.pipe(
              ofType('detection'),
              expandInOrder(expandDetection, EXPANSIONS),
              mergeMap(({ delivery, held, events }) => {
                facts.release(held)
                onDelivery?.(delivery, events)
                return events
              }),
            ),
          ),
        ),
      )
      const streamEvents = stream.pipe(
        tap({ next: (event) => facts.settle(event), complete: () => streamEnded.next() }),
      )

      // Webhooks first, so that none is missed while a stream emits within its subscription.
      const events = merge(webhookEvents, streamEvents).pipe(
        // Whoever keeps account of the deliveries gets those again that were not handled, when there is a fuller copy.
        catchError((error: unknown) =>
          concat(
            onDelivery === undefined ? facts.held : EMPTY,
            throwError(() => error),
          ),
        ),
        filter((event) => facts.admit(event)),
        finalize(() => unlisten?.()),
      )
      return throughGate(gate, () => events.subscribe(subscriber))
    })
}

interface HeldRun {
  readonly type: 'run'
  readonly held: Held
  readonly run: TaskRun
}

interface HeldDetection {
  readonly type: 'detection'
  readonly delivery: WebhookDelivery
  readonly held: Held
  readonly found: Detection
}

/** What becomes of a webhook: told at once, held for a fuller copy, or expanded. */
type Arrival = { readonly type: 'event'; readonly event: ResearchEvent } | HeldRun | HeldDetection

/** Whether another copy of the run will say what this one should but does not: an output, or why it failed. */
function awaitsMore(event: ResearchEvent): event is EventOf<'task_run.state'> {
  if (event.type !== 'task_run.state') return false
  const { run, output } = event.data
  if (run.status === 'completed') return output == null
  return run.status === 'failed' && run.error == null
}
