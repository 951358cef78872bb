import { runSource } from '../../protocol/event.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { groupOf } from './group-of.ts'
import { runRow } from './run-row.ts'
import type { GroupRunRow } from './run-row.ts'
import { pathOfRun } from './runs-view.ts'
import { DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** A row of {@link runView}, by `kind`. A run has the path `[run]`. */
export type RunRow = GroupRunRow

/**
 * One run without a group, with its output, by the param `run`. The runs of a group are in `groupView`. Of a run's duplicates, the
 * row has what each of them says. A run leaves the view when an event names its group.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function runView({ timeToLive = 90 * DAY }: ViewAge = {}): View<RunRow, 'run'> {
  return view({
    version: 1,
    types: ['task_run.state'],
    params: ['run'],
    timeToLive,
    key: pathOfRun,
    source: ([run = '']) => runSource(run),
    reduce: (row: RunRow | undefined, entry): RunRow | null =>
      groupOf(entry) === undefined ? runRow(row, entry) : null,
  })
}
