import { catchError, EMPTY, isObservable, merge, NEVER, Observable } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { dedupe } from '../../operators/dedupe.ts'
import { mergeWebhooks } from '../../operators/merge-webhooks.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkObject, checkOptions } from '../protocol/check.ts'
import { monitorSource, runSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { WebhookDelivery } from '../protocol/webhook.ts'
import { NotFoundError, ProtocolError } from '../transport/errors.ts'
import type { Checkpoint } from '../state/checkpoint.ts'
import { CheckpointError } from '../state/errors.ts'
import { MAX_HANDLED } from '../state/handled-facts.ts'
import type { Context } from './context.ts'
import { persisting } from './shapes/persisting.ts'
import { sourceOf } from './shapes/source.ts'
import type { Source, SourceOptions } from './shapes/source.ts'
import type { Tracking } from './shapes/tracking.ts'
import { executionEvents, runResult } from './webhook-expansion.ts'
import { affectsAllSources, isEmpty, watchedStreams } from './watched-streams.ts'
import type { Watched, WatchedGroup, WatchedMonitor } from './watched-streams.ts'

/** The source of webhooks. */
export interface WatchedWebhooks {
  /**
   * Each subscription should emit again the earlier deliveries that are not done, since a failed subscription leaves events
   * unhandled. A receiver with a durable inbox does.
   */
  readonly deliveries: Observable<WebhookDelivery>
  /**
   * Hears of each delivery whose events were all handled: only asked with a checkpoint. Of a delivery that came before the
   * present subscription it hears only once it has come again.
   */
  readonly done?: (id: string) => void | PromiseLike<void>
}

/** Options of `client.watch`. At least one of `monitors`, `taskGroups` and `webhooks` is required. */
export interface WatchOptions extends SourceOptions {
  readonly monitors?: Watched<WatchedMonitor>
  /** Runs come with their output unless `include_output` is false. */
  readonly taskGroups?: Watched<WatchedGroup>
  /** A receiver of `rivulet/webhooks`, or another source of verified deliveries. */
  readonly webhooks?: WatchedWebhooks
  /**
   * Where the pipeline stood when it ended last: each stream goes on from there, and what was handled is not told again.
   * Give the same checkpoint to `deliver`, with none but synchronous operators between.
   */
  readonly checkpoint?: Checkpoint
  /** How long a run's webhook is held for the stream's event with the output, in ms. Default 2,000. */
  readonly hold?: number
}

/**
 * Merges monitors, task groups and webhooks into one typed stream, each event once in its most complete form. Completes when
 * the lists have completed, every group is done and every monitor is cancelled; with only webhooks, never.
 *
 * A monitor or group that fails permanently, such as one with a wrong id, emits `source.failed` and the others continue. It is
 * subscribed to again after it was removed from its list and added, and by the next subscription. An error that affects all
 * errors the result: a rejected key (401), a checkpoint that cannot be read; and so does an `IncompleteStreamError` of a group.
 */
export function watch(context: Context, options: WatchOptions): Source<ResearchEvent> {
  checkOptions('options', options ?? null, WATCH_OPTIONS)
  const { monitors = [], taskGroups = [], webhooks, hold, checkpoint, signal } = options
  if (isEmpty(monitors) && isEmpty(taskGroups) && webhooks === undefined) {
    const message = 'watch has nothing to watch: give it monitors, taskGroups or webhooks'
    throw new ArgumentError('options', { message }, options)
  }
  if (webhooks !== undefined) {
    checkObject('webhooks', webhooks)
    if (!isObservable(webhooks.deliveries))
      throw new ArgumentError('webhooks.deliveries', 'an Observable', webhooks.deliveries)
  }
  const streams = merge(
    watchedStreams(context, { monitors, taskGroups }, (_, project) =>
      project((stream, ignores) => tracked(checkpoint, stream, ignores)),
    ),
    // With webhooks only, it never completes.
    isEmpty(monitors) && isEmpty(taskGroups) ? NEVER : EMPTY,
  )
  const memory = {
    scheduler: context.scheduler,
    ...(checkpoint !== undefined && {
      known: checkpoint.handledBefore,
      capacity: Math.max(checkpoint.maxHandled, MAX_HANDLED),
    }),
  }
  const duplicate = (event: ResearchEvent) => context.report({ kind: 'duplicate', event })
  const drop = (event: ResearchEvent) => checkpoint?.passed(event)

  const merged =
    webhooks === undefined
      ? streams.pipe(
          dedupe({
            ...memory,
            onDuplicate(event) {
              duplicate(event)
              drop(event)
            },
          }),
        )
      : streams.pipe(
          mergeWebhooks(webhooks.deliveries, {
            ...memory,
            // Retried while the service is down: otherwise the webhook's own event would be emitted, and the fetched one later.
            expandMonitor: (monitorId, eventGroupId) =>
              executionEvents(context, monitorId, eventGroupId).pipe(
                persisting(context, monitorSource(monitorId)),
                emptyOnNotFound(),
                notRetryable(),
              ),
            expandRun: (run) =>
              runResult(context, run).pipe(
                persisting(context, runSource(run.run_id)),
                emptyOnNotFound(),
                notRetryable(),
              ),
            ...(hold !== undefined && { hold }),
            onDuplicate: duplicate,
            onDrop: drop,
            onDelivery: ({ id }, events) => checkpoint?.delivered(events, () => webhooks.done?.(id)),
            onError(error, event) {
              context.report({ kind: 'expansion', error, event })
              if (affectsAllSources(error)) throw error
            },
          }),
        )
  return sourceOf(checkpoint === undefined ? merged : passing(context, merged, checkpoint), signal)
}

const WATCH_OPTIONS = ['monitors', 'taskGroups', 'webhooks', 'checkpoint', 'hold', 'signal']
/** Where a stream stood, and where it comes to: what is left to another stream does not count. */
function tracked(
  checkpoint: Checkpoint | undefined,
  stream: string,
  ignores: (event: ResearchEvent) => boolean = () => false,
): Tracking | undefined {
  if (checkpoint === undefined) return undefined
  return {
    get position() {
      return checkpoint.position(stream)
    },
    entered(event, place) {
      if (!ignores(event)) checkpoint.entered(stream, place, event)
    },
    unreadable: () => checkpoint.unreadable(stream),
  }
}

/** Tells the checkpoint when a subscription begins, and when each event's emission has returned. */
function passing(
  { scheduler }: Context,
  events: Observable<ResearchEvent>,
  checkpoint: Checkpoint,
): Observable<ResearchEvent> {
  return new Observable((subscriber) => {
    subscriber.add(checkpoint.begin(scheduler))
    subscriber.add(
      events.subscribe({
        next(event) {
          if (subscriber.closed) return
          if (!checkpoint.attached) return subscriber.error(unattached())
          subscriber.next(event)
          // An operator that threw has closed the pipeline, and nobody has handled the event.
          checkpoint.passed(event, subscriber.closed)
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      }),
    )
  })
}

function unattached(): CheckpointError {
  return new CheckpointError(
    'nobody tells the checkpoint what was handled: give it to `deliver` as well, deliver(handler, { checkpoint })',
  )
}

/** On 404, emits nothing, and the webhook's own event is emitted. */
function emptyOnNotFound<T>(): MonoTypeOperatorFunction<T> {
  return catchError((error: unknown) => {
    if (error instanceof NotFoundError) return EMPTY
    throw error
  })
}

/**
 * Makes a ProtocolError that was retried too often not retryable. A retryable error would end the pipeline, which would fail
 * again at the same webhook after its restart.
 */
function notRetryable<T>(): MonoTypeOperatorFunction<T> {
  return catchError((cause: unknown) => {
    if (!(cause instanceof ProtocolError && cause.retryable)) throw cause
    throw new ProtocolError('every response was invalid', cause, { cause, retryable: false })
  })
}
