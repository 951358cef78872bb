import { catchError, concat, defer, EMPTY, isObservable, merge, NEVER, tap, throwError } from 'rxjs'
import type { MonoTypeOperatorFunction, Observable } from 'rxjs'
import { dedupe } from '../../operators/dedupe.ts'
import { mergeWebhooks } from '../../operators/merge-webhooks.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkObject, checkOptions } from '../protocol/check.ts'
import { monitorSource, runSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { WebhookDelivery } from '../protocol/webhook.ts'
import { NotFoundError, RivuletError } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { withReconnect } from './shapes/with-reconnect.ts'
import { sourceOf } from './shapes/source.ts'
import type { Source, SourceOptions } from './shapes/source.ts'
import { executionEvents, runResult } from './webhook-expansion.ts'
import { affectsAllSources, areEmpty, watchedStreams } from './watched-streams.ts'
import type {
  OpenMember,
  Watched,
  WatchedFindAll,
  WatchedGroup,
  WatchedMonitor,
  WatchedRun,
  WatchedStreams,
} from './watched-streams.ts'

/** The source of webhooks. */
export interface WatchedWebhooks {
  readonly deliveries: Observable<WebhookDelivery>
}

/** Options of `client.watch`. At least one of `monitors`, `taskGroups`, `runs`, `findAlls` and `webhooks` is required. */
export interface WatchOptions extends SourceOptions {
  readonly monitors?: Watched<WatchedMonitor>
  /** Runs come with their output unless `include_output` is false. */
  readonly taskGroups?: Watched<WatchedGroup>
  /** Ids of single runs. Each comes with its progress, which the service has for runs with `enable_events`. */
  readonly runs?: Watched<WatchedRun>
  /** Ids of FindAll runs. */
  readonly findAlls?: Watched<WatchedFindAll>
  /** A receiver of `rivulet/webhooks`, or another source of verified deliveries. */
  readonly webhooks?: WatchedWebhooks
  /** How long a run's webhook is held for the stream's event with the output, in ms. Default 2,000. */
  readonly hold?: number
}

/** Every source of a `client.watch` has failed for good. `cause` is the error of the first one. */
export class AllSourcesFailedError extends RivuletError {
  override readonly name = 'AllSourcesFailedError'
  readonly retryable = false
  /** The error of each source, by its path, such as `/v1/monitors/monitor_1`. */
  readonly failures: ReadonlyMap<string, Error>

  constructor(failures: ReadonlyMap<string, Error>) {
    const [[source, cause] = ['', undefined]] = failures
    const request = cause instanceof RivuletError ? cause : { method: 'GET', path: source }
    super(`all ${failures.size} sources of watch have failed, this one first`, request, { cause })
    this.failures = failures
  }
}

/**
 * Merges monitors, task groups, single and FindAll runs and webhooks into one typed stream, each event once in its most complete form.
 * Completes when the lists have completed, every group and run is done and every monitor is cancelled; with only webhooks, never.
 *
 * A monitor, group or run that fails permanently, such as one with a wrong id, emits `source.failed` and the others continue. It is
 * subscribed to again after it was removed from its list and added, and by the next subscription. An error that affects all
 * errors the result: a rejected key (401). So does an `IncompleteStreamError`. If every source has failed, the result errors with an {@link
 * AllSourcesFailedError} instead of completing.
 */
export function watch(context: Context, options: WatchOptions): Source<ResearchEvent> {
  checkOptions('options', options ?? null, WATCH_OPTIONS)
  const { monitors = [], taskGroups = [], runs = [], findAlls = [], webhooks, hold, signal } = options
  const watched = { monitors, taskGroups, runs, findAlls }
  const hasStreams = !areEmpty(watched)
  if (!hasStreams && webhooks === undefined) {
    const message = 'watch has nothing to watch: give it monitors, taskGroups, runs, findAlls or webhooks'
    throw new ArgumentError('options', { message }, options)
  }
  if (webhooks !== undefined) {
    checkObject('webhooks', webhooks)
    if (!isObservable(webhooks.deliveries))
      throw new ArgumentError('webhooks.deliveries', 'an Observable', webhooks.deliveries)
  }
  // With webhooks only, it never completes.
  const streams = merge(notAllFailing(context, watched), hasStreams ? EMPTY : NEVER)
  const { scheduler } = context
  const onDuplicate = (event: ResearchEvent) => context.report({ kind: 'duplicate', event })
  const merged =
    webhooks === undefined
      ? streams.pipe(dedupe({ scheduler, onDuplicate }))
      : streams.pipe(
          mergeWebhooks(webhooks.deliveries, {
            scheduler,
            onDuplicate,
            // Retried while the service is down: otherwise the webhook's own event would be emitted, and the fetched one later.
            expandMonitor: (monitorId, eventGroupId) =>
              executionEvents(context, monitorId, eventGroupId).pipe(
                withReconnect(context, monitorSource(monitorId)),
                emptyOnNotFound(),
              ),
            expandRun: (run) =>
              runResult(context, run).pipe(withReconnect(context, runSource(run.run_id)), emptyOnNotFound()),
            ...(hold !== undefined && { hold }),
            onError(error, event) {
              context.report({ kind: 'expansion', error, event })
              if (affectsAllSources(error)) throw error
            },
          }),
        )
  return sourceOf(merged, signal)
}

/** Errors instead of completing if every source has failed. */
function notAllFailing(context: Context, watched: WatchedStreams): Observable<ResearchEvent> {
  const untracked: OpenMember = (_, project) => project(() => undefined)
  // Checks arrays at the call.
  watchedStreams(context, watched, untracked)
  return defer(() => {
    const sources = new Set<string>()
    const failures = new Map<string, Error>()
    const streams = watchedStreams(context, watched, (member, project) =>
      defer(() => {
        sources.add(member.source)
        // It may have failed before it was removed from its list.
        failures.delete(member.source)
        return untracked(member, project)
      }),
    )
    const noted = tap<ResearchEvent>((event) => {
      if (event.type === 'source.failed') failures.set(event.source, event.data.error)
    })
    const end = defer(() => {
      const haveAllFailed = failures.size > 0 && failures.size === sources.size
      return haveAllFailed ? throwError(() => new AllSourcesFailedError(failures)) : EMPTY
    })
    return concat(streams.pipe(noted), end)
  })
}

const WATCH_OPTIONS = ['monitors', 'taskGroups', 'runs', 'findAlls', 'webhooks', 'hold', 'signal']

/** On 404, emits nothing, and the webhook's own event is emitted. */
function emptyOnNotFound<T>(): MonoTypeOperatorFunction<T> {
  return catchError((error: unknown) => {
    if (error instanceof NotFoundError) return EMPTY
    throw error
  })
}
