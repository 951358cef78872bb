import type { Observable } from 'rxjs'
import { checkId, checkInteger, checkOneOf, checkOptions } from '../../protocol/check.ts'
import type { GroupEvent } from '../../protocol/event.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { groupEventsQuery } from '../../protocol/requests/tasks.ts'
import type { GroupEventsQuery } from '../../protocol/task-group.ts'
import type { Context } from '../context.ts'
import { groupItems } from './stream.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import { eventsOf } from '../shapes/stream-item.ts'
import type { StreamItem } from '../shapes/stream-item.ts'

/** Options that a group's streams share. */
export interface GroupStreamOptions extends SourceOptions {
  /**
   * When to complete. `done`: when all runs have ended and every event was emitted; for a group without runs, not before it
   * had one. `closed`: never; while no run is active the service closes the stream, which reconnects with a backoff up to the
   * client's `maxDelay`. Default `done`.
   */
  readonly until?: 'done' | 'closed'
}

/** Options of `taskGroups.events`: the query of §4.4, and when to complete. */
export interface GroupEventsOptions extends GroupEventsQuery, GroupStreamOptions {}

/**
 * Emits a group's status updates and run completions (§4.4). Reconnects after failures, the one-hour close and restarts of the
 * service. Completes when no run is active and every event was emitted; errors with an `IncompleteStreamError` if the service
 * does not send some.
 */
export function groupEvents(
  context: Context,
  groupId: string,
  options: GroupEventsOptions = {},
): Source<GroupEvent> {
  return sourceOf(eventsOf(groupEventItems(context, groupId, options)), options.signal)
}

/** The same with the position after each event. Resumes from a saved one. */
export function groupEventItems(
  context: Context,
  groupId: string,
  options: GroupEventsOptions,
  position?: string,
): Observable<StreamItem<GroupEvent>> {
  checkId('groupId', groupId)
  checkOptions('options', options, [...namesOf(groupEventsQuery), 'until', 'signal'])
  checkRequest(groupEventsQuery, options)
  const { last_event_id, timeout, until } = options
  // 0 would close each stream at once, and so reconnect for ever.
  if (timeout !== undefined) checkInteger('timeout', timeout, 1)
  checkUntil(until)
  const query = { last_event_id: cursorOrStart(last_event_id), timeout }
  return groupItems(context, { groupId, kind: 'events' }, { query, until }, position)
}

/** `done`, `closed` or left out. */
export function checkUntil(until: unknown): void {
  if (until !== undefined) checkOneOf('until', until, ['done', 'closed'])
}

/** The service sends an empty cursor for the beginning of a stream (§4.3). */
export function cursorOrStart(cursor: string | undefined): string | undefined {
  return cursor === '' ? undefined : cursor
}
