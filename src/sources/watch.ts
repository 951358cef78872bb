import { catchError, concat, defer, EMPTY, filter, isObservable, merge, NEVER, tap, throwError } from 'rxjs'
import type { MonoTypeOperatorFunction, Observable } from 'rxjs'
import { dedupe } from '../../operators/dedupe.ts'
import { mergeWebhooks } from '../../operators/merge-webhooks.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkObject, checkOptions } from '../protocol/check.ts'
import { monitorSource, runSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { WebhookDelivery } from '../protocol/webhook.ts'
import { NotFoundError, RequestError } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { eventsOf } from './shapes/stream-item.ts'
import type { StreamItem } from './shapes/stream-item.ts'
import { sourceOf } from './shapes/source.ts'
import type { Source, SourceOptions } from './shapes/source.ts'
import { executionEvents, retriedExpansion, runResult } from './webhook-expansion.ts'
import { affectsAllSources, areEmpty, watchedStreams } from './watched-streams.ts'
import type {
  OpenStream,
  Watched,
  WatchedFindAll,
  WatchedGroup,
  WatchedMonitor,
  WatchedRun,
  WatchedStreams,
} from './watched-streams.ts'

/** The source of webhooks. */
interface WatchedWebhooks {
  readonly deliveries: Observable<WebhookDelivery>
}

/** Options of `client.watch`. At least one of `monitors`, `taskGroups`, `runs`, `findAlls` and `webhooks` is required. */
export interface WatchOptions extends SourceOptions {
  /**
   * Ids of monitors, each alone or with options of `monitors.follow`: `{ id, after, pollInterval, limit, include_completions }`. `pollInterval`
   * is in ms, default 60,000. Default: none.
   */
  readonly monitors?: Watched<WatchedMonitor>
  /**
   * Ids of task groups, each alone or with options of `taskGroups.runs`: `{ id, include_input, include_output, until }`. Runs come with their
   * output unless `include_output` is false, and until the group is done unless `until` is `closed`. Default: none.
   */
  readonly taskGroups?: Watched<WatchedGroup>
  /** Ids of single runs. Each comes with its progress, which the service has for runs with `enable_events`. Default: none. */
  readonly runs?: Watched<WatchedRun>
  /** Ids of FindAll runs, each alone or as `{ id, until }`. Default: none. */
  readonly findAlls?: Watched<WatchedFindAll>
  /** A receiver of `rivulet/webhooks`, or another source of verified deliveries. Default: none. */
  readonly webhooks?: WatchedWebhooks
  /** How long a run's webhook is held for the stream's event with the output, in ms. Default 2,000. */
  readonly hold?: number
}

/** Every source of a `client.watch` has failed for good. `cause` is the error of the first one. */
export class AllSourcesFailedError extends RequestError {
  override readonly name = 'AllSourcesFailedError'
  override readonly code = 'all_sources_failed'
  /** The error of each source, by its path, such as `/v1/monitors/monitor_1`. */
  readonly failures: ReadonlyMap<string, Error>

  constructor(failures: ReadonlyMap<string, Error>) {
    const [[source, cause] = ['', undefined]] = failures
    const request = cause instanceof RequestError ? cause : { method: 'GET', path: source }
    super(`all ${failures.size} sources of watch have failed, this one first`, request, { cause })
    this.failures = failures
  }
}

function watch(context: Context, options: WatchOptions): Source<ResearchEvent> {
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
                retriedExpansion(context, monitorSource(monitorId)),
                emptyOnNotFound(),
              ),
            expandRun: (run) =>
              runResult(context, run).pipe(
                retriedExpansion(context, runSource(run.run_id)),
                emptyOnNotFound(),
              ),
            ...(hold !== undefined && { hold }),
            onError(error, event) {
              context.report({ kind: 'expansion', error, event })
              if (affectsAllSources(error)) throw error
            },
          }),
        )
  return sourceOf(merged, signal)
}

/** The events of the streams. Errors instead of completing if every source has failed. */
function notAllFailing(context: Context, watched: WatchedStreams): Observable<ResearchEvent> {
  const items = watchedStreams(context, watched)
  return defer(() => {
    /** The error of each source; undefined if it was reached since. */
    const states = new Map<string, Error | undefined>()
    const noted = tap<StreamItem>((item) => {
      const { source } = item.stream
      // It may have failed before it was removed from its list.
      if (item.kind === 'reached') states.set(source, undefined)
      if (item.kind === 'event' && item.event.type === 'source.failed')
        states.set(source, item.event.data.error)
    })
    const end = defer(() => {
      const failures = new Map<string, Error>()
      for (const [source, error] of states) if (error !== undefined) failures.set(source, error)
      const haveAllFailed = failures.size > 0 && failures.size === states.size
      return haveAllFailed ? throwError(() => new AllSourcesFailedError(failures)) : EMPTY
    })
    return concat(eventsOf(items.pipe(noted)), end)
  })
}

/** Options of `client.watch.positioned`. At least one of `monitors`, `taskGroups`, `runs` and `findAlls` is required. */
interface WatchPositionedOptions
  extends SourceOptions, Pick<WatchOptions, 'monitors' | 'taskGroups' | 'runs' | 'findAlls'> {
  /**
   * Returns the saved position of a stream, from which it resumes; null or undefined for its beginning. Called each time that a source of the lists is
   * subscribed to, for its streams one after the other, so that a stream may be claimed here. An error errors the result. Default: each stream
   * begins at its beginning.
   *
   * The `signal` is aborted when the source is unsubscribed from, or has ended: release the claim. `reopen` opens the streams of the source
   * again, as when the claim was lost.
   */
  readonly from?: OpenStream
}

function watchPositioned(context: Context, options: WatchPositionedOptions): Source<StreamItem> {
  checkOptions('options', options ?? null, POSITIONED_OPTIONS)
  const { monitors = [], taskGroups = [], runs = [], findAlls = [], from, signal } = options
  const watched = { monitors, taskGroups, runs, findAlls }
  if (areEmpty(watched)) {
    const message = 'watch.positioned has nothing to watch: give it monitors, taskGroups, runs or findAlls'
    throw new ArgumentError('options', { message }, options)
  }
  if (from !== undefined && typeof from !== 'function') throw new ArgumentError('from', 'a function', from)
  const items = watchedStreams(context, watched, { from })
  return sourceOf(items.pipe(filter((item) => item.event === undefined || item.isNew)), signal)
}

const POSITIONED_OPTIONS = Object.keys({
  monitors: true,
  taskGroups: true,
  runs: true,
  findAlls: true,
  from: true,
  signal: true,
} satisfies Record<keyof WatchPositionedOptions, true>)

/** `client.watch`. */
export interface WatchCalls {
  /**
   * Merges monitors, task groups, single and FindAll runs and webhooks into one typed stream, each event once in its most complete form.
   * Completes when the lists have completed, every group and run is done and every monitor is cancelled; with only webhooks, never.
   *
   * A monitor, group or run that fails permanently, such as one with a wrong id, emits `source.failed` and the others continue. It is
   * subscribed to again after it was removed from its list and added, and by the next subscription. An error that affects all
   * errors the result: a rejected key (401). So does an `IncompleteStreamError`. If every source has failed, the result errors with an {@link
   * AllSourcesFailedError} instead of completing.
   */
  (options: WatchOptions): Source<ResearchEvent>
  /**
   * Merges monitors, task groups, single runs and FindAll runs into one stream of items: events with the position of their stream after each, and
   * when a stream was reached, lost, and has caught up. It stores events elsewhere than in a log: save each event with its position in one
   * transaction, and each stream resumes exactly after what was saved.
   *
   * ```ts
   * import { createClient } from 'rivulet'
   *
   * const saved = new Map<string, string>()
   * const items = createClient().watch.positioned({
   *   monitors: ['monitor_1'],
   *   from: ({ name }) => saved.get(name),
   * })
   * for await (const item of items) {
   *   if (item.kind === 'event') console.log(item.event.id)
   *   if (item.position !== undefined) saved.set(item.stream.name, item.position.text())
   * }
   * ```
   *
   * Completes as `watch` does, and errors for a rejected key (401), with an `IncompleteStreamError`, with the errors of `from`, and with a
   * {@link StreamPositionError} for a position that cannot be read. It does not error when all sources have failed. Beyond the interface
   * document.
   */
  positioned(options: WatchPositionedOptions): Source<StreamItem>
}

/** Creates `client.watch`. */
export function watchCalls(context: Context): WatchCalls {
  return Object.assign((options: WatchOptions) => watch(context, options), {
    positioned: (options: WatchPositionedOptions) => watchPositioned(context, options),
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
