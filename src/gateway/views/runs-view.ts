import { isObject, isText, runSource } from '../../protocol/event.ts'
import type { EventOf } from '../../protocol/event.ts'
import type { RunInput, TaskRun } from '../../protocol/task.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { groupOf } from './group-of.ts'
import { pathPart } from './resource.ts'
import { runRow } from './run-row.ts'
import type { GroupRunRow } from './run-row.ts'
import { DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** A run without a group, without its output. Its path is `[run]`, the param of `runView`. */
export interface RunsRow {
  readonly run: TaskRun
  /** Where the events have brought it. */
  readonly input?: RunInput
  /** When the last change was recorded, in Unix ms. */
  readonly updated: number
  /** Where a part was too long for the row: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
}

/** The most that is kept of a run and of its input, in bytes. A page has all rows of this view. */
const MAX_RUN = 4_096
const MAX_INPUT = 1_024

/**
 * Each run without a group and its last status, by `[run]`: runs that were created alone, and those whose events name no group. A run
 * leaves the view when an event names its group.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function runsView({ timeToLive = 90 * DAY }: ViewAge = {}): View<RunsRow> {
  return view({
    version: 1,
    types: ['task_run.state'],
    timeToLive,
    key: pathOfRun,
    source: ([run = '']) => runSource(run),
    reduce: (row: RunsRow | undefined, entry): RunsRow | null => {
      if (groupOf(entry) !== undefined) return null
      const { run: last, input: asked, truncated } = runRow(row && asRun(row), withoutOutput(entry))
      const run = bounded(last, MAX_RUN, { ...last, metadata: null, warnings: null, error: null })
      const input = bounded(asked, MAX_INPUT, undefined)
      const isTruncated = truncated === true || run.isTruncated || input.isTruncated
      return {
        run: run.value,
        ...(input.value !== undefined && { input: input.value }),
        updated: entry.recorded,
        ...(isTruncated && { truncated: true }),
      }
    },
  })
}

function asRun({ updated: recorded, ...row }: RunsRow): GroupRunRow {
  return { kind: 'run', output: null, ...row, recorded }
}

function withoutOutput(entry: EntryOf<'task_run.state'>): EntryOf<'task_run.state'> {
  return { ...entry, data: { ...entry.data, output: null } }
}

/** The path of a run without its group. */
export function pathOfRun({ data }: EventOf<'task_run.state'>): readonly string[] | undefined {
  // A program may append anything.
  const run: unknown = isObject(data) ? data.run : undefined
  const id = isObject(run) ? run['run_id'] : undefined
  return isText(id) ? [pathPart(id)] : undefined
}
