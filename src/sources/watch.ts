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
import { followEach, setOf } from './changing-set.ts'
import type { Member } from './changing-set.ts'
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

/** A monitor to watch: its id, or its id with options of `monitors.follow`. */
export type WatchedMonitor =
  | string
  | ({ readonly id: string } & Omit<FollowMonitorOptions, 'signal' | 'wake'>)

/** A task group to watch: its id, or its id with what its runs shall bring along and how long it is followed. */
export type WatchedGroup =
  | string
  | ({ readonly id: string } & Pick<GroupRunsOptions, 'include_input' | 'include_output' | 'until'>)

/** Where webhooks come from. */
export interface WatchedWebhooks {
  /**
   * At each subscription it should tell again what it told before and what is not done, since a subscription that failed
   * leaves events unhandled. A receiver with a durable inbox does.
   */
  readonly deliveries: Observable<WebhookDelivery>
  /**
   * Hears of each delivery whose events were all handled: only asked with a checkpoint. Of a delivery that came before the
   * present subscription it hears only once it has come again.
   */
  readonly done?: (id: string) => void | PromiseLike<void>
}

/**
 * What is watched: a list, or an Observable of lists, each of which takes the place of the one before. With a new list, what
 * is no more in it is unsubscribed from, what is new is subscribed to, and what stays goes on undisturbed; with other
 * options it is subscribed to anew.
 *
 * An id that can be none (empty, `..`, longer than 512 characters) is an ArgumentError at the call in a list that is given
 * there. In an Observable's list it emits `source.failed` with the ArgumentError, once as long as it stays in the list, and
 * the others go on. Anything else that is wrong with an Observable's list, such as an unknown option, is an error of all.
 */
export type Watched<Entry> = readonly Entry[] | Observable<readonly Entry[]>

/** What `client.watch` joins into one stream. At least one of the three. */
export interface WatchOptions extends SourceOptions {
  readonly monitors?: Watched<WatchedMonitor>
  /** Runs come with their output unless `include_output` is false. */
  readonly taskGroups?: Watched<WatchedGroup>
  /** A receiver of `rivulet/webhooks`, or whatever else has verified deliveries. */
  readonly webhooks?: WatchedWebhooks
  /**
   * Where the pipeline stood when it ended last: each stream goes on from there, and what was handled is not told again.
   * Give the same checkpoint to `deliver`, with none but synchronous operators between.
   */
  readonly checkpoint?: Checkpoint
  /** How long the webhook of a run waits for the copy with the output that a stream will bring, in ms. Default 2,000. */
  readonly hold?: number
}

/**
 * Monitors, task groups and webhooks as one typed stream: each fact once, in its fullest copy. Completes when every group
 * is done, if there is nothing else to watch: a receiver has no end, and a monitor only when it is cancelled.
 *
 * A monitor or a group that fails for good, a wrong id for instance, emits `source.failed` and the others go on. It is tried
 * again when it is taken out of its list and put in again, and with the next subscription. What concerns all is an error: a
 * refused key (401), a checkpoint that cannot be read. So is a group whose stream is incomplete: an `IncompleteStreamError`.
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
    each('monitors', monitors, watchedMonitor, ({ id, ...follow }) => {
      const tracking = tracked(checkpoint, `monitors/${id}`)
      if (!isId(id)) return failed(context, monitorSource(id), malformedId('monitorId', id), 'poll', tracking)
      const events = followMonitor(context, id, follow, tracking)
      return events.pipe(tellingFailure(context, monitorSource(id), 'poll', tracking))
    }),
    each('taskGroups', taskGroups, watchedGroup, ({ id, include_input, include_output = true, until }) => {
      const tracking = tracked(checkpoint, `groups/${id}/runs`)
      if (!isId(id)) return failed(context, groupSource(id), malformedId('groupId', id), 'stream', tracking)
      const runs = groupRuns(context, id, { include_input, include_output, until }, tracking)
      const statuses = groupEvents(
        context,
        id,
        { until },
        tracked(checkpoint, `groups/${id}/events`, isLeftToRuns),
      ).pipe(filter((event) => !isLeftToRuns(event)))
      return merge(runs, statuses).pipe(tellingFailure(context, groupSource(id), 'stream', tracking))
    }),
    // A receiver alone has no stream that could end.
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

  const facts =
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
            // A service that is down for a while must not make a webhook be told as it came: then it would be told twice.
            expandMonitor: (monitorId, eventGroupId) =>
              executionEvents(context, monitorId, eventGroupId).pipe(
                persisting(context, monitorSource(monitorId)),
                orNothing(),
                orFailed(),
              ),
            expandRun: (run) =>
              runResult(context, run).pipe(
                persisting(context, runSource(run.run_id)),
                orNothing(),
                orFailed(),
              ),
            ...(hold !== undefined && { hold }),
            onDuplicate: duplicate,
            onDrop: drop,
            onDelivery: ({ id }, events) => checkpoint?.delivered(events, () => webhooks.done?.(id)),
            onError(error, event) {
              context.report({ kind: 'expansion', error, event })
              if (concernsAll(error)) throw error
            },
          }),
        )
  return sourceOf(checkpoint === undefined ? facts : passing(context, facts, checkpoint), signal)
}

function isEmpty(watched: Watched<unknown>): boolean {
  return Array.isArray(watched) && watched.length === 0
}

/** Everything that the members of a list, or of lists that follow each other, have to tell. */
function each<Entry, M extends Member>(
  argument: string,
  watched: Watched<Entry>,
  memberAt: (argument: string, entry: Entry) => M,
  open: (member: M) => Observable<ResearchEvent>,
): Observable<ResearchEvent> {
  const membersOf = (entries: unknown): readonly M[] => {
    if (!Array.isArray(entries))
      throw new ArgumentError(argument, 'an array, or an Observable of arrays', entries)
    return entries.map((entry: Entry, index) => memberAt(`${argument}[${index}]`, entry))
  }
  if (isObservable(watched))
    return watched.pipe(
      map((entries) => setOf(argument, membersOf(entries))),
      followEach(open),
    )
  const members = membersOf(watched)
  for (const [index, { id }] of members.entries()) checkId(`${argument}[${index}]`, id)
  const set = setOf(argument, members)
  // Nothing is requested before it is subscribed to, but wrong options are refused now.
  for (const member of set.values()) open(member)
  return of(set).pipe(followEach(open))
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

/** An entry as a member of its set. Whether its id is malformed is left to the caller. */
function memberOf<M extends Member>(
  argument: string,
  entry: string | M,
  names: readonly string[],
): M | Member {
  const member = typeof entry === 'string' ? { id: entry } : entry
  // What is no text names no source that could fail.
  const id: unknown = isObject(member) ? member.id : member
  if (typeof id !== 'string') throw malformedId(argument, id)
  checkOptions(argument, member, names)
  // A malformed id fails the same way with any options, and is reported once.
  return isId(id) ? member : { id }
}

/** Emits `source.failed` instead of an error that cannot be retried, unless it concerns all sources. */
function tellingFailure(
  context: Context,
  source: string,
  via: Via,
  tracking: Tracking | undefined,
): OperatorFunction<ResearchEvent, ResearchEvent> {
  return catchError((error: unknown) => {
    // Where `source.failed` is filtered out, an incomplete stream would pass for a complete one.
    if (!(error instanceof RivuletError) || error instanceof IncompleteStreamError || concernsAll(error))
      throw error
    return failed(context, source, error, via, tracking)
  })
}

/** Emits that the source failed. */
function failed(
  { scheduler }: Context,
  source: string,
  error: Error,
  via: Via,
  tracking: Tracking | undefined,
): Observable<ResearchEvent> {
  return defer(() => {
    const event = failureEvent(source, { error }, via, scheduler.now())
    // The stream stands where it stood.
    tracking?.entered(event, undefined)
    return of(event)
  })
}

/** Both streams of a group tell that a run ended; the runs stream's copy has what was asked for. */
function isLeftToRuns({ type }: ResearchEvent): boolean {
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

/** Whether a refusal concerns every request: that of the key (§5). Any other concerns the resource that was asked for. */
function concernsAll(error: unknown): boolean {
  return error instanceof AuthenticationError
}

/** What is no more has nothing to tell; then the webhook tells what it can. */
function orNothing<T>(): MonoTypeOperatorFunction<T> {
  return catchError((error: unknown) => {
    if (error instanceof NotFoundError) return EMPTY
    throw error
  })
}

/**
 * Wrong answers in a row are final. An error that may pass would end a durable pipeline, which would start with the same
 * webhook again.
 */
function orFailed<T>(): MonoTypeOperatorFunction<T> {
  return catchError((cause: unknown) => {
    if (!(cause instanceof ProtocolError && cause.retryable)) throw cause
    throw new ProtocolError('only wrong answers came', cause, { cause, retryable: false })
  })
}

/** How often an execution's list is asked for again that is still empty. */
const RELISTS = 3

/**
 * What one execution of a monitor found (§4.1), oldest first, as a poll would tell it.
 *
 * The webhook that announces it may be ahead of the list. So a list that is empty is asked for again, after waits that grow
 * like those after failures.
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
      count: 1 + RELISTS,
      delay: (times) => timer(backoffDelay(times - 1, backoff, random), scheduler),
    }),
    first((events) => events.length > 0, []),
    concatMap((events) => events.toReversed()),
  )
}

/** The fuller copy of a run that ended, with its output; beyond the interface document. */
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
        throw new ProtocolError('the answer has no such run', call, { retryable: false })
      return runEvent(result, 'poll', undefined, context.scheduler.now())
    }),
    // Meanwhile the run may have come to another status: that is another fact, which a stream or a webhook brings.
    filter(({ id }) => id === expected.id),
  )
}
