import { groupSource } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import type { EventOf } from '../../protocol/event.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { groupOf } from './group-of.ts'
import { isOlder } from './newer.ts'
import { pathPart, shownId } from './resource.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** A task group. Its path is `[group]`, the param of `groupView`. */
export interface GroupsRow {
  /** The id of the group. */
  readonly group: string
  /** The last status that the service has sent; null before the first one. */
  readonly status: TaskGroupStatus | null
  /** When something of the group was last recorded, in Unix ms. */
  readonly updated: number
}

/** The most that is kept of a status, in bytes. */
const MAX_STATUS = 16_384

/**
 * Each task group of a log with its last status, by `[group]`. A run belongs to the group that its `taskgroup_id` names.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function groupsView(options: ViewAge = {}): View<GroupsRow> {
  const timeToLive = ageOf(options, 90 * DAY)
  return view({
    version: 1,
    types: ['task_group.status', 'task_run.state'],
    timeToLive,
    key: (entry) => {
      const group = groupOf(entry)
      return group === undefined ? undefined : [pathPart(group)]
    },
    source: ([group = '']) => groupSource(group),
    reduce: (row: GroupsRow | undefined, entry, [part = '']): GroupsRow => {
      const updated = entry.recorded
      const { group, status } = row ?? { group: shownId(groupOf(entry) ?? part), status: null }
      if (entry.type === 'task_run.state') return { group, status, updated }
      return { group, status: laterStatus(status, entry), updated }
    },
  })
}

/** The later of a known status and an event's status: events of a group may come in another order, from several streams. */
export function laterStatus(
  before: TaskGroupStatus | null,
  { data }: EventOf<'task_group.status'>,
): TaskGroupStatus | null {
  // The service may send anything, and a program may append anything.
  if (!isObject(data) || !isObject(data.status)) return before
  if (isOlder(data.status.modified_at, before?.modified_at)) return before
  return bounded(data.status, MAX_STATUS, before).value
}
