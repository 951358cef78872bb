import {
  catchError,
  defer,
  EMPTY,
  filter,
  isObservable,
  map,
  merge,
  mergeMap,
  Observable,
  of,
  repeat,
} from 'rxjs'
import type { OperatorFunction } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkId, checkOptions, malformedId } from '../protocol/check.ts'
import { failureEvent } from '../protocol/event.ts'
import { isObject } from '../protocol/json.ts'
import type { Via } from '../protocol/event.ts'
import { subscribeWithGate } from '../protocol/gate.ts'
import { isId } from '../protocol/id.ts'
import { AuthenticationError, RequestError } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { mergeMembers, setOf } from './merge-members.ts'
import type { Member } from './merge-members.ts'
import { findAllItems, findAllStreamOf } from './find-all/events.ts'
import type { FindAllEventsOptions } from './find-all/events.ts'
import { followedItems, monitorStreamOf } from './monitors/follow.ts'
import type { FollowMonitorOptions } from './monitors/follow.ts'
import { groupEventItems } from './task-groups/events.ts'
import { groupRunItems } from './task-groups/runs.ts'
import type { GroupRunsOptions } from './task-groups/runs.ts'
import { groupStreamOf } from './task-groups/stream.ts'
import { IncompleteStreamError } from './shapes/incomplete-stream-error.ts'
import { StreamPositionError } from './shapes/stream-item.ts'
import type { SourceStream, StreamItem } from './shapes/stream-item.ts'
import { runItems, runStreamOf } from './tasks/stream.ts'

/** A monitor to watch: an id, optionally with options of `monitors.follow`. */
export type WatchedMonitor =
  | string
  | ({ readonly id: string } & Omit<FollowMonitorOptions, 'signal' | 'wake'>)

/** A task group to watch: an id, optionally with options of `taskGroups.runs`. */
export type WatchedGroup =
  | string
  | ({ readonly id: string } & Pick<GroupRunsOptions, 'include_input' | 'include_output' | 'until'>)

/** A FindAll run to watch: an id, optionally with options of `findAll.events`. */
export type WatchedFindAll = string | ({ readonly id: string } & Pick<FindAllEventsOptions, 'until'>)

/** A single run to watch: its id. */
export type WatchedRun = string

/**
 * The entries to watch: a list, or an Observable of lists. Each list replaces the previous one: removed entries are unsubscribed
 * from, new ones subscribed to, and the others stay subscribed. An entry whose options change is resubscribed to.
 *
 * An invalid id (empty, `..`, longer than 512 characters) in a list is an ArgumentError at the call. In an Observable's list
 * it emits `source.failed` with the ArgumentError once while it stays in the list, and the others continue. Any other mistake
 * in an Observable's list, such as an unknown option, errors the result.
 */
export type Watched<Entry> = readonly Entry[] | Observable<readonly Entry[]>

/** The streams of {@link watchedStreams}. */
export interface WatchedStreams {
  readonly monitors: Watched<WatchedMonitor>
  readonly taskGroups: Watched<WatchedGroup>
  readonly runs: Watched<WatchedRun>
  readonly findAlls: Watched<WatchedFindAll>
}

/** A stream of a member, to be opened. */
export interface MemberStream extends SourceStream {
  /** Whether it is a poll, which can be woken. */
  readonly isPolled: boolean
}

/**
 * Returns the position from which a stream resumes; null or undefined for its beginning. Called each time that a member is subscribed to, for its
 * streams one after the other: two who claim streams would each wait for the other otherwise. An error errors the result.
 *
 * @param signal Aborted when the member is unsubscribed from, or has ended. The same for all streams of a member.
 * @param reopen Unsubscribes from the member, and opens its streams again, when a claim was lost. Not to be called before this has resolved.
 */
export type OpenStream<Stream = SourceStream> = (
  stream: Stream,
  signal: AbortSignal,
  reopen: () => void,
) => string | null | undefined | PromiseLike<string | null | undefined>

/** Settings of {@link watchedStreams}. */
export interface WatchSettings {
  /** Default: each stream begins at its beginning. */
  readonly from?: OpenStream<MemberStream> | undefined
  /** What wakes the poll of a source. */
  readonly wake?: ((source: string) => Observable<void> | undefined) | undefined
  /** Options of monitors that do not have them. */
  readonly defaults?: Pick<FollowMonitorOptions, 'include_completions'>
}

/**
 * Merges the streams of monitors, groups, single runs and FindAll runs, each with its own position. A member that fails permanently emits
 * `source.failed`. Completes when the lists have and every stream has.
 */
export function watchedStreams(
  context: Context,
  { monitors, taskGroups, runs, findAlls }: WatchedStreams,
  { from, wake, defaults }: WatchSettings = {},
): Observable<StreamItem> {
  return merge(
    mergeEach('monitors', monitors, watchedMonitor, ({ id, ...follow }) => {
      const stream = monitorStreamOf(id)
      return opened(from, true, [stream], ([position]) => {
        if (!isId(id)) return failed(context, stream, malformedId('monitorId', id), 'poll')
        const wakes = wake?.(stream.source)
        const options = { ...defaults, ...follow, ...(wakes !== undefined && { wake: wakes }) }
        const items = followedItems(context, id, options, position)
        return items.pipe(reportFailure(context, stream, 'poll'))
      })
    }),
    mergeEach('taskGroups', taskGroups, watchedGroup, ({ id, include_output = true, ...own }) => {
      const streams = [groupStreamOf(id, 'runs'), groupStreamOf(id, 'events')] as const
      return opened(from, false, streams, ([runsPosition, eventsPosition]) => {
        if (!isId(id)) return failed(context, streams[0], malformedId('groupId', id), 'stream')
        const ended = groupRunItems(context, id, { include_output, ...own }, runsPosition)
        const { until } = own
        const events = groupEventItems(context, id, { until }, eventsPosition)
        const statuses = events.pipe(filter((item) => !isRunState(item)))
        return merge(ended, statuses).pipe(reportFailure(context, streams[0], 'stream'))
      })
    }),
    mergeEach('findAlls', findAlls, watchedFindAll, ({ id, ...own }) => {
      const stream = findAllStreamOf(id)
      return opened(from, false, [stream], ([position]) => {
        if (!isId(id)) return failed(context, stream, malformedId('findAllId', id), 'stream')
        return findAllItems(context, id, own, position).pipe(reportFailure(context, stream, 'stream'))
      })
    }),
    mergeEach('runs', runs, watchedRun, ({ id }) => {
      const stream = runStreamOf(id)
      return opened(from, false, [stream], ([position]) => {
        if (!isId(id)) return failed(context, stream, malformedId('runId', id), 'stream')
        return runItems(context, id, { position }).pipe(reportFailure(context, stream, 'stream'))
      })
    }),
  )
}

/** Subscribes to the streams of one member from their positions. */
function opened(
  from: WatchSettings['from'],
  isPolled: boolean,
  streams: readonly SourceStream[],
  project: (positions: readonly (string | undefined)[]) => Observable<StreamItem>,
): Observable<StreamItem> {
  // Checks the options of the member at the call.
  const atBeginning = project([])
  if (from === undefined) return atBeginning
  return defer(() => {
    let isReopening = false
    const opening = new Observable<StreamItem>((subscriber) => {
      isReopening = false
      const leaving = new AbortController()
      const reopen = () => {
        // Both streams of a group may lose their claims at once, and the second call comes when the next opening has begun.
        if (subscriber.closed) return
        isReopening = true
        subscriber.complete()
      }
      const positionsOf = async () => {
        const positions: (string | undefined)[] = []
        for (const { name, source } of streams) {
          leaving.signal.throwIfAborted()
          const stream = { name, source, isPolled }
          const position: unknown = (await from(stream, leaving.signal, reopen)) ?? undefined
          if (position !== undefined && typeof position !== 'string') throw new StreamPositionError(stream)
          positions.push(position)
        }
        return positions
      }
      const items = defer(positionsOf).pipe(mergeMap(project))
      subscriber.add(subscribeWithGate(items, subscriber))
      subscriber.add(() => leaving.abort())
    })
    return opening.pipe(repeat({ delay: () => (isReopening ? of(true) : EMPTY) }))
  })
}

/** Whether all lists are empty, and none is an Observable of lists. */
export function areEmpty(streams: WatchedStreams): boolean {
  return Object.values(streams).every((watched) => Array.isArray(watched) && watched.length === 0)
}

/** Merges the items of the members of a list, or of an Observable of lists. */
function mergeEach<Entry, M extends Member>(
  argument: string,
  watched: Watched<Entry>,
  memberAt: (argument: string, entry: Entry) => M,
  project: (member: M) => Observable<StreamItem>,
): Observable<StreamItem> {
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

function watchedFindAll(argument: string, entry: WatchedFindAll): Exclude<WatchedFindAll, string> {
  return memberOf(argument, entry, ['id', 'until'])
}

function watchedRun(argument: string, entry: WatchedRun): Member {
  return memberOf(argument, entry, ['id'])
}

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
  stream: SourceStream,
  via: Via,
): OperatorFunction<StreamItem, StreamItem> {
  return catchError((error: unknown) => {
    // An incomplete stream must not look complete to a subscriber that filters out `source.failed`.
    const isFatal = error instanceof IncompleteStreamError || affectsAllSources(error)
    if (!(error instanceof RequestError) || isFatal) throw error
    return failed(context, stream, error, via)
  })
}

/** Emits `source.failed`. The position does not advance. */
function failed(
  { scheduler }: Context,
  stream: SourceStream,
  error: Error,
  via: Via,
): Observable<StreamItem> {
  return defer(() => {
    const event = failureEvent(stream.source, { error }, via, scheduler.now())
    return of<StreamItem>({ kind: 'event', stream, event, isNew: true })
  })
}

/** Whether the item is the end of a run. Only the runs stream's event has the requested input and output. */
function isRunState(item: StreamItem): boolean {
  return item.kind === 'event' && item.event.type === 'task_run.state'
}

/** Whether the error affects every request: a rejected key (§5). Other errors affect one resource. */
export function affectsAllSources(error: unknown): boolean {
  return error instanceof AuthenticationError
}
