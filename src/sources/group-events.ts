import { checkCount, checkGiven, checkId, checkText } from '../protocol/check.ts'
import { groupSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { GroupEventsQuery } from '../protocol/task-group.ts'
import type { Context } from './context.ts'
import { groupStream } from './group-stream.ts'
import { sourceOf } from './source.ts'
import type { Source, SourceOptions } from './source.ts'
import type { Tracking } from './tracking.ts'

/** Options of `taskGroups.events`: the query of §4.4. */
export interface GroupEventsOptions extends GroupEventsQuery, SourceOptions {}

/**
 * A group's status updates and run completions (§4.4). Drops, the one-hour close and restarts of the service are bridged;
 * completes when no run of the group is active any more and everything has been told.
 */
export function groupEvents(
  context: Context,
  groupId: string,
  options: GroupEventsOptions = {},
  tracking?: Tracking,
): Source<ResearchEvent> {
  const { signal, last_event_id, timeout } = options
  checkId('groupId', groupId)
  if (last_event_id !== undefined && last_event_id !== '') checkText('last_event_id', last_event_id)
  checkGiven(options, { timeout: checkCount })
  const query = { last_event_id: beginning(last_event_id), timeout }
  const path = `${groupSource(groupId)}/events`
  return sourceOf(groupStream(context, groupId, { tells: 'statuses', path, query, tracking }), signal)
}

/** An empty cursor is how the service writes the beginning of a stream (§4.3). */
export function beginning(cursor: string | undefined): string | undefined {
  return cursor === '' ? undefined : cursor
}
