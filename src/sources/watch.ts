import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  filter,
  first,
  isObservable,
  map,
  merge,
  NEVER,
  Observable,
  of,
  reduce,
  repeat,
  timer,
} from 'rxjs'
import type { MonoTypeOperatorFunction, OperatorFunction } from 'rxjs'
import { dedupe } from '../../operators/dedupe.ts'
import { mergeWebhooks } from '../../operators/merge-webhooks.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { backoffDelay } from '../protocol/backoff.ts'
import { checkId, checkObject, checkOptions, malformedId } from '../protocol/check.ts'
import {
  failureEvent,
  groupSource,
  isObject,
  isRun,
  monitorEvent,
  monitorSource,
  runEvent,
  runSource,
} from '../protocol/event.ts'
import type { ResearchEvent, TaskRunState, Via } from '../protocol/event.ts'
import { isId } from '../protocol/id.ts'
import type { TaskRun } from '../protocol/task.ts'
import type { WebhookDelivery } from '../protocol/webhook.ts'
import { AuthenticationError, NotFoundError, ProtocolError, RivuletError } from '../transport/errors.ts'
import type { Checkpoint } from '../state/checkpoint.ts'
import { CheckpointError } from '../state/errors.ts'
import { MAX_HANDLED } from '../state/handled-facts.ts'
import type { Context } from './context.ts'
import { mergeMembers, setOf } from './merge-members.ts'
import type { Member } from './merge-members.ts'
import { followMonitor } from './monitors/follow.ts'
import type { FollowMonitorOptions } from './monitors/follow.ts'
import { groupEvents } from './task-groups/events.ts'
import { groupRuns } from './task-groups/runs.ts'
import type { GroupRunsOptions } from './task-groups/runs.ts'
import { IncompleteStreamError } from './task-groups/incomplete-stream-error.ts'
import { monitorPages } from './monitors/pages.ts'
import { requestShape } from './shapes/request.ts'
import { persisting } from './shapes/persisting.ts'
import { sourceOf } from './shapes/source.ts'
import type { Source, SourceOptions } from './shapes/source.ts'
import type { Tracking } from './shapes/tracking.ts'

/** A monitor to watch: an id, optionally with options of `monitors.follow`. */
export type WatchedMonitor =
  | string
  | ({ readonly id: string } & Omit<FollowMonitorOptions, 'signal' | 'wake'>)

/** A task group to watch: an id, optionally with options of `taskGroups.runs`. */
export type WatchedGroup =
  | string
  | ({ readonly id: string } & Pick<GroupRunsOptions, 'include_input' | 'include_output' | 'until'>)

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

/**
 * What is watched: a list, or an Observable of lists. Each list replaces the previous one: removed entries are unsubscribed
 * from, new ones subscribed to, and the others stay subscribed. An entry whose options change is resubscribed to.
 *
 * An invalid id (empty, `..`, longer than 512 characters) in a list is an ArgumentError at the call. In an Observable's list
 * it emits `source.failed` with the ArgumentError once while it stays in the list, and the others continue. Any other mistake
 * in an Observable's list, such as an unknown option, errors the result.
 */
export type Watched<Entry> = readonly Entry[] | Observable<readonly Entry[]>

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
    mergeEach('monitors', monitors, watchedMonitor, ({ id, ...follow }) => {
      const tracking = tracked(checkpoint, `monitors/${id}`)
      if (!isId(id)) return failed(context, monitorSource(id), malformedId('monitorId', id), 'poll', tracking)
      const events = followMonitor(context, id, follow, tracking)
      return events.pipe(reportFailure(context, monitorSource(id), 'poll', tracking))
    }),
    mergeEach('taskGroups', taskGroups, watchedGroup, ({ id, include_output = true, ...own }) => {
      const tracking = tracked(checkpoint, `groups/${id}/runs`)
      if (!isId(id)) return failed(context, groupSource(id), malformedId('groupId', id), 'stream', tracking)
      const runs = groupRuns(context, id, { include_output, ...own }, tracking)
      const statuses = groupEvents(
        context,
        id,
        { until: own.until },
        tracked(checkpoint, `groups/${id}/events`, isRunState),
      ).pipe(filter((event) => !isRunState(event)))
      return merge(runs, statuses).pipe(reportFailure(context, groupSource(id), 'stream', tracking))
    }),
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

function isEmpty(watched: Watched<unknown>): boolean {
  return Array.isArray(watched) && watched.length === 0
}

/** Merges the events of the members of a list, or of an Observable of lists. */
function mergeEach<Entry, M extends Member>(
  argument: string,
  watched: Watched<Entry>,
  memberAt: (argument: string, entry: Entry) => M,
  project: (member: M) => Observable<ResearchEvent>,
): Observable<ResearchEvent> {
  const membersOf = (entries: unknown): readonly M[] => {
    if (!Array.isArray(entries))
      throw new ArgumentError(argument, 'an array, or an Observable of arrays', entries)
    return entries.map((entry: Entry, index) => memberAt(`${argument}[${index}]`, entry))
  }
  if (isObservable(watched))
    return watched.pipe(
      map((entries) => setOf(argument, membersOf(entries))),
      mergeMembers(project),
    )
  const members = membersOf(watched)
  for (const [index, { id }] of members.entries()) checkId(`${argument}[${index}]`, id)
  const set = setOf(argument, members)
  // Checks the options of each member at the call. Nothing is requested before the subscription.
  for (const member of set.values()) project(member)
  return of(set).pipe(mergeMembers(project))
}

function watchedMonitor(argument: string, entry: WatchedMonitor): Exclude<WatchedMonitor, string> {
  return memberOf(argument, entry, MONITOR)
}

function watchedGroup(argument: string, entry: WatchedGroup): Exclude<WatchedGroup, string> {
  return memberOf(argument, entry, GROUP)
}

const WATCH_OPTIONS = ['monitors', 'taskGroups', 'webhooks', 'checkpoint', 'hold', 'signal']
const MONITOR = ['id', 'after', 'pollInterval', 'limit', 'include_completions']
const GROUP = Object.keys({
  id: true,
  include_input: true,
  include_output: true,
  until: true,
} satisfies Record<keyof Exclude<WatchedGroup, string>, true>)

/** Returns the member for an entry. The caller checks the syntax of its id. */
function memberOf<M extends Member>(
  argument: string,
  entry: string | M,
  names: readonly string[],
): M | Member {
  const member = typeof entry === 'string' ? { id: entry } : entry
  // An id that is not a string has no source for `source.failed`.
  const id: unknown = isObject(member) ? member.id : member
  if (typeof id !== 'string') throw malformedId(argument, id)
  checkOptions(argument, member, names)
  // Without options, so that a malformed id is reported once.
  return isId(id) ? member : { id }
}

/** Emits `source.failed` instead of an error, unless the error affects all sources. */
function reportFailure(
  context: Context,
  source: string,
  via: Via,
  tracking: Tracking | undefined,
): OperatorFunction<ResearchEvent, ResearchEvent> {
  return catchError((error: unknown) => {
    // An incomplete stream must not look complete to a subscriber that filters out `source.failed`.
    const isFatal = error instanceof IncompleteStreamError || affectsAllSources(error)
    if (!(error instanceof RivuletError) || isFatal) throw error
    return failed(context, source, error, via, tracking)
  })
}

/** Emits `source.failed`. */
function failed(
  { scheduler }: Context,
  source: string,
  error: Error,
  via: Via,
  tracking: Tracking | undefined,
): Observable<ResearchEvent> {
  return defer(() => {
    const event = failureEvent(source, { error }, via, scheduler.now())
    // The position does not advance.
    tracking?.entered(event, undefined)
    return of(event)
  })
}

/** Whether the event is the end of a run. Only the runs stream's event has the requested input and output. */
function isRunState({ type }: ResearchEvent): boolean {
  return type === 'task_run.state'
}

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

/** Whether the error affects every request: a rejected key (§5). Other errors affect one resource. */
function affectsAllSources(error: unknown): boolean {
  return error instanceof AuthenticationError
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

/** How many times an empty list of an execution is requested again. */
const EMPTY_LIST_RETRIES = 3

/**
 * Emits the events of one execution of a monitor (§4.1), oldest first, as a poll would. The webhook may be ahead of the list,
 * so an empty list is requested again with backoff.
 */
function executionEvents(
  context: Context,
  monitorId: string,
  event_group_id: string,
): Observable<ResearchEvent> {
  const { backoff, random, scheduler } = context
  return monitorPages(context, monitorId, { event_group_id }).pipe(
    map((page) => page.events.map((wire) => monitorEvent(monitorId, wire, 'webhook', scheduler.now()))),
    reduce((newer, older) => [...newer, ...older], [] as ResearchEvent[]),
    repeat({
      count: 1 + EMPTY_LIST_RETRIES,
      delay: (times) => timer(backoffDelay(times - 1, backoff, random), scheduler),
    }),
    first((events) => events.length > 0, []),
    concatMap((events) => events.toReversed()),
  )
}

/** Fetches the complete event of an ended run, with its output; beyond the interface document. */
function runResult(context: Context, run: TaskRun): Observable<ResearchEvent> {
  const { run_id } = run
  const expected = runEvent({ run }, 'webhook')
  const call = {
    method: 'GET',
    path: `${runSource(run_id)}/result`,
    query: { timeout: 1 },
    idempotent: true,
  } as const
  return requestShape<TaskRunState>(context, call).pipe(
    map((result) => {
      if (!isRun(result.run) || result.run.run_id !== run_id)
        throw new ProtocolError('the response does not have this run', call, { retryable: false })
      return runEvent(result, 'poll', undefined, context.scheduler.now())
    }),
    // The run may have reached another status meanwhile: that is another event, with its own stream or webhook.
    filter(({ id }) => id === expected.id),
  )
}
