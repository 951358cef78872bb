import { checkId, checkOneOf, checkOptions } from '../../protocol/check.ts'
import { groupSource } from '../../protocol/event.ts'
import type { GroupEvent } from '../../protocol/event.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { groupEventsQuery } from '../../protocol/requests/tasks.ts'
import type { GroupEventsQuery } from '../../protocol/task-group.ts'
import type { Context } from '../context.ts'
import { groupStream } from './stream.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import type { Tracking } from '../shapes/tracking.ts'

/** Options that a group's streams share. */
export interface GroupStreamOptions extends SourceOptions {
  /**
   * How long the group is followed. `done`: until all of its runs have ended and everything was emitted; a group that never
   * had a run is followed until it had one. `closed`: beyond that, until the subscriber leaves; while no run is active the
   * service closes the stream, and it is opened again after waits that grow up to `maxDelay` of the client. Default `done`.
   */
  readonly until?: 'done' | 'closed'
}

/** Options of `taskGroups.events`: the query of §4.4, and how long the group is followed. */
export interface GroupEventsOptions extends GroupEventsQuery, GroupStreamOptions {}

/**
 * A group's status updates and run completions (§4.4). Drops, the one-hour close and restarts of the service are bridged;
 * completes when no run of the group is active any more and everything was emitted, and errors with an
 * `IncompleteStreamError` where the service keeps something back.
 */
export function groupEvents(
  context: Context,
  groupId: string,
  options: GroupEventsOptions = {},
  tracking?: Tracking,
): Source<GroupEvent> {
  const { signal, last_event_id, timeout, until } = options
  checkId('groupId', groupId)
  checkOptions('options', options, [...namesOf(groupEventsQuery), 'until', 'signal'])
  checkRequest(groupEventsQuery, options)
  checkUntil(until)
  const query = { last_event_id: beginning(last_event_id), timeout }
  const path = `${groupSource(groupId)}/events`
  const stream = groupStream(context, groupId, { end: 'statuses', path, query, until, tracking })
  return sourceOf(stream, signal)
}

/** `done`, `closed` or left out. */
export function checkUntil(until: unknown): void {
  if (until !== undefined) checkOneOf('until', until, ['done', 'closed'])
}

/** An empty cursor is how the service writes the beginning of a stream (§4.3). */
export function beginning(cursor: string | undefined): string | undefined {
  return cursor === '' ? undefined : cursor
}
