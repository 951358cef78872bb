import type { Observable } from 'rxjs'
import { checkId, checkOptions } from '../../protocol/check.ts'
import type { GroupRunEvent } from '../../protocol/event.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { groupRunsQuery } from '../../protocol/requests/tasks.ts'
import type { GroupRunsQuery } from '../../protocol/task-group.ts'
import type { Context } from '../context.ts'
import { checkUntil, cursorOrStart } from './events.ts'
import type { GroupStreamOptions } from './events.ts'
import { groupItems } from './stream.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source } from '../shapes/source.ts'
import { eventsOf } from '../shapes/stream-item.ts'
import type { StreamItem } from '../shapes/stream-item.ts'

/** Options of `taskGroups.runs`: the query of §4.5, and when to complete. */
export interface GroupRunsOptions extends GroupRunsQuery, GroupStreamOptions {}

/** The names of {@link GroupRunsOptions}. */
export const GROUP_RUNS_OPTIONS = [...namesOf(groupRunsQuery), 'until', 'signal']

/**
 * Emits each run of a group when it ends, with its input and output if requested (§4.5). Reconnects after failures. Completes
 * when no run is active and every run was emitted; errors with an `IncompleteStreamError` if the service does not send some. A service
 * that answers with 404 under `/v1beta` is asked under `/v1` too, as newer ones have the stream there alone.
 */
export function groupRuns(
  context: Context,
  groupId: string,
  options: GroupRunsOptions = {},
): Source<GroupRunEvent> {
  return sourceOf(eventsOf(groupRunItems(context, groupId, options)), options.signal)
}

/** The same with the position after each run. Resumes from a saved one. */
export function groupRunItems(
  context: Context,
  groupId: string,
  options: GroupRunsOptions,
  position?: string,
): Observable<StreamItem<GroupRunEvent>> {
  checkId('groupId', groupId)
  checkOptions('options', options, GROUP_RUNS_OPTIONS)
  checkRequest(groupRunsQuery, options)
  const { last_event_id, status, include_input, include_output, until } = options
  checkUntil(until)
  const query = { last_event_id: cursorOrStart(last_event_id), status, include_input, include_output }
  return groupItems(context, { groupId, kind: 'runs' }, { query, until }, position)
}
