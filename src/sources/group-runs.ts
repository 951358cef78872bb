import { checkBoolean, checkGiven, checkId, checkRunStatus, checkText } from '../protocol/check.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { GroupRunsQuery } from '../protocol/task-group.ts'
import type { Context } from './context.ts'
import { beginning } from './group-events.ts'
import { groupStream } from './group-stream.ts'
import { sourceOf } from './source.ts'
import type { Source, SourceOptions } from './source.ts'
import type { Tracking } from './tracking.ts'

/** Options of `taskGroups.runs`: the query of §4.5. */
export interface GroupRunsOptions extends GroupRunsQuery, SourceOptions {}

/**
 * The runs of a group as each ends, with their inputs and outputs where asked for (§4.5). Drops are bridged; completes
 * when no run of the group is active any more and every run has been told.
 */
export function groupRuns(
  context: Context,
  groupId: string,
  options: GroupRunsOptions = {},
  tracking?: Tracking,
): Source<ResearchEvent> {
  const { signal, last_event_id, status, include_input, include_output } = options
  checkId('groupId', groupId)
  if (last_event_id !== undefined && last_event_id !== '') checkText('last_event_id', last_event_id)
  checkGiven(options, { status: checkRunStatus, include_input: checkBoolean, include_output: checkBoolean })
  const query = { last_event_id: beginning(last_event_id), status, include_input, include_output }
  const path = `/v1beta/tasks/groups/${encodeURIComponent(groupId)}/runs`
  return sourceOf(groupStream(context, groupId, { tells: 'runs', path, query, tracking }), signal)
}
