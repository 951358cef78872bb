import { catchError, defer, filter, isObservable, map, merge, of } from 'rxjs'
import type { Observable, OperatorFunction } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkId, checkOptions, malformedId } from '../protocol/check.ts'
import { failureEvent, groupSource, isObject, monitorSource, runSource } from '../protocol/event.ts'
import type { ResearchEvent, Via } from '../protocol/event.ts'
import { findAllSource } from '../protocol/find-all-event.ts'
import { isId } from '../protocol/id.ts'
import { AuthenticationError, RivuletError } from '../transport/errors.ts'
import type { Context } from './context.ts'
import { mergeMembers, setOf } from './merge-members.ts'
import type { Member } from './merge-members.ts'
import { findAllEvents } from './find-all/events.ts'
import type { FindAllEventsOptions } from './find-all/events.ts'
import { followMonitor } from './monitors/follow.ts'
import type { FollowMonitorOptions } from './monitors/follow.ts'
import { groupEvents } from './task-groups/events.ts'
import { groupRuns } from './task-groups/runs.ts'
import type { GroupRunsOptions } from './task-groups/runs.ts'
import { IncompleteStreamError } from './shapes/incomplete-stream-error.ts'
import type { Tracking } from './shapes/tracking.ts'
import { runEvents } from './tasks/events.ts'

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

/**
 * Returns the tracking that stores a stream's position; undefined if its position is not stored. `ignores` are events that another stream
 * has as well.
 */
type TrackingOf = (stream: string, ignores?: (event: ResearchEvent) => boolean) => Tracking | undefined

/** The streams of one member. */
interface MemberStreams {
  readonly source: string
  readonly names: readonly string[]
  /** Whether they are one poll, which can be woken. */
  readonly isPolled: boolean
}

/** Subscribes to the streams of one member, once their positions are known. */
export type OpenMember = (
  streams: MemberStreams,
  project: (trackingOf: TrackingOf) => Observable<ResearchEvent>,
) => Observable<ResearchEvent>

/**
 * Merges the streams of monitors, groups, single runs and FindAll runs, each with its own position. A member that fails permanently emits
 * `source.failed`. Completes when the lists have and every stream has.
 *
 * @param defaults Options of monitors that do not have them.
 */
export function watchedStreams(
  context: Context,
  { monitors, taskGroups, runs, findAlls }: WatchedStreams,
  open: OpenMember,
  defaults: Pick<FollowMonitorOptions, 'include_completions'> = {},
): Observable<ResearchEvent> {
  return merge(
    mergeEach('monitors', monitors, watchedMonitor, ({ id, ...follow }) => {
      const stream = `monitors/${id}`
      const source = monitorSource(id)
      return open({ source, names: [stream], isPolled: true }, (trackingOf) => {
        const tracking = trackingOf(stream)
        if (!isId(id)) return failed(context, source, malformedId('monitorId', id), 'poll', tracking)
        const { wake } = tracking ?? {}
        const options = { ...defaults, ...follow, ...(wake !== undefined && { wake }) }
        const events = followMonitor(context, id, options, tracking)
        return events.pipe(reportFailure(context, source, 'poll', tracking))
      })
    }),
    mergeEach('taskGroups', taskGroups, watchedGroup, ({ id, include_output = true, ...own }) => {
      const [runsStream, eventsStream] = [`groups/${id}/runs`, `groups/${id}/events`]
      const source = groupSource(id)
      return open({ source, names: [runsStream, eventsStream], isPolled: false }, (trackingOf) => {
        const tracking = trackingOf(runsStream)
        if (!isId(id)) return failed(context, source, malformedId('groupId', id), 'stream', tracking)
        const ended = groupRuns(context, id, { include_output, ...own }, tracking)
        const { until } = own
        const events = groupEvents(context, id, { until }, trackingOf(eventsStream, isRunState))
        const statuses = events.pipe(filter((event) => !isRunState(event)))
        return merge(ended, statuses).pipe(reportFailure(context, source, 'stream', tracking))
      })
    }),
    mergeEach('findAlls', findAlls, watchedFindAll, ({ id, ...own }) => {
      const stream = `find-alls/${id}`
      const source = findAllSource(id)
      return open({ source, names: [stream], isPolled: false }, (trackingOf) => {
        const tracking = trackingOf(stream)
        if (!isId(id)) return failed(context, source, malformedId('findAllId', id), 'stream', tracking)
        const events = findAllEvents(context, id, own, tracking)
        return events.pipe(reportFailure(context, source, 'stream', tracking))
      })
    }),
    mergeEach('runs', runs, watchedRun, ({ id }) => {
      const stream = `runs/${id}`
      const source = runSource(id)
      return open({ source, names: [stream], isPolled: false }, (trackingOf) => {
        const tracking = trackingOf(stream)
        if (!isId(id)) return failed(context, source, malformedId('runId', id), 'stream', tracking)
        return runEvents(context, id, {}, tracking).pipe(reportFailure(context, source, 'stream', tracking))
      })
    }),
  )
}

/** Whether all lists are empty, and none is an Observable of lists. */
export function areEmpty(streams: WatchedStreams): boolean {
  return Object.values(streams).every((watched) => Array.isArray(watched) && watched.length === 0)
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

/** Whether the error affects every request: a rejected key (§5). Other errors affect one resource. */
export function affectsAllSources(error: unknown): boolean {
  return error instanceof AuthenticationError
}
