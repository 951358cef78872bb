import { attemptOf } from '../../protocol/attempt.ts'
import { groupSource } from '../../protocol/event.ts'
import { isText } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { groupOf } from './group-of.ts'
import { laterStatus } from './groups-view.ts'
import { isNotice, NOTICES, noticeRow } from './notice.ts'
import type { NoticeRow } from './notice.ts'
import { pathPart } from './resource.ts'
import { attemptRow } from './run-row.ts'
import type { GroupRunRow } from './run-row.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** The group itself. Its path is `[group]`. */
interface GroupStatusRow {
  readonly kind: 'group'
  /** The last status that the service has sent. */
  readonly status: TaskGroupStatus | null
  /** When it was recorded, in Unix ms. */
  readonly updated: number
}

/** A row of {@link groupView}, by `kind`. A notice has the path `[group, 'notice', id]`. */
export type GroupRow = GroupStatusRow | GroupRunRow | NoticeRow

/**
 * One task group: its status, its runs with their outputs, and the events that were missed, by the param `group`. A run belongs to the
 * group that its `taskgroup_id` names. If a run's event comes several times, the row has the fields of all of them. A run that replaces
 * another one (`taskGroups.retry`) replaces its row when it has ended.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function groupView(options: ViewAge = {}): View<GroupRow, 'group'> {
  const timeToLive = ageOf(options, 90 * DAY)
  return view({
    version: 2,
    types: ['task_group.status', 'task_run.state', ...NOTICES],
    params: ['group'],
    timeToLive,
    key: (entry) => pathOf(entry),
    source: ([group = '']) => groupSource(group),
    reduce: (row: GroupRow | undefined, entry) => {
      if (entry.type === 'task_run.state') return attemptRow(row?.kind === 'run' ? row : undefined, entry)
      if (entry.type !== 'task_group.status') return noticeRow(entry)
      const before = row?.kind === 'group' ? row.status : null
      return { kind: 'group', status: laterStatus(before, entry), updated: entry.recorded }
    },
  })
}

function pathOf(event: ResearchEvent): readonly string[] | undefined {
  const group = groupOf(event)
  if (group === undefined) return undefined
  const part = pathPart(group)
  if (event.type === 'task_group.status') return [part]
  if (event.type === 'task_run.state') {
    return isText(event.data.run.run_id) ? [part, pathPart(attemptOf(event.data).first)] : undefined
  }
  return isNotice(event) ? [part, 'notice', pathPart(event.id)] : undefined
}
