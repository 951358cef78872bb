import { runSource } from '../../protocol/event.ts'
import { isObject, isText } from '../../protocol/json.ts'
import type { EventOf } from '../../protocol/event.ts'
import type { RunInput, TaskRun } from '../../protocol/task.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { groupOf } from './group-of.ts'
import { idOfSource, pathPart, shownId } from './resource.ts'
import {
  isProgress,
  messageOf,
  meterAfter,
  NO_METER,
  pathOfProgress,
  PROGRESS_TYPES,
} from './run-progress.ts'
import type { ProgressEntry, RunMeter, TraceMessage } from './run-progress.ts'
import { runRow } from './run-row.ts'
import type { GroupRunRow } from './run-row.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** A run without a group, without its output. Its path is `[run]`, the param of `runView`. */
export interface RunsRow {
  /** The id of the run. */
  readonly id: string
  /** Null while only its progress is known. */
  readonly run: TaskRun | null
  /** The input, if the events have brought it. */
  readonly input?: RunInput
  /** While it is running: how far it is, and the last message of its trace. */
  readonly progress?: RunMeter & { readonly last: TraceMessage | null }
  /** When the last change was recorded, in Unix ms. */
  readonly updated: number
  /** Set if a part was too long for the row: long texts end with `…`, and long lists have fewer elements. */
  readonly truncated?: true
}

/** Maximum sizes of a stored run and of its input, in bytes. A page has all rows of this view. */
const MAX_RUN = 4_096
const MAX_INPUT = 1_024

/**
 * Each run without a group, its progress and its last status, by `[run]`: runs that were created alone, and those whose events name no
 * group. A run leaves the view when an event names its group. A run with only its progress known leaves it after a day without events.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function runsView(options: ViewAge = {}): View<RunsRow> {
  const timeToLive = ageOf(options, 90 * DAY)
  return view({
    version: 2,
    types: ['task_run.state', ...PROGRESS_TYPES],
    // The end of a run that is recorded with its group may come before the last event of its trace.
    timeToLive: ({ run }: RunsRow) => (run === null ? Math.min(DAY, timeToLive) : timeToLive),
    key: (entry) => (isProgress(entry) ? pathOfProgress(entry) : pathOfRun(entry)),
    source: ([run = '']) => runSource(run),
    reduce: (row: RunsRow | undefined, entry, [part = '']): RunsRow | null => {
      if (isProgress(entry)) return afterProgress(row, entry, part)
      if (groupOf(entry) !== undefined) return null
      const { run: last, input: asked, truncated } = runRow(asRun(row), withoutOutput(entry))
      const run = bounded(last, MAX_RUN, { ...last, metadata: null, warnings: null, error: null })
      const input = bounded(asked, MAX_INPUT, undefined)
      const isTruncated = truncated === true || run.isTruncated || input.isTruncated
      const progress = isRunning(run.value) ? row?.progress : undefined
      return {
        id: row?.id ?? shownId(entry.data.run.run_id),
        run: run.value,
        ...(input.value !== undefined && { input: input.value }),
        ...(progress !== undefined && { progress }),
        updated: entry.recorded,
        ...(isTruncated && { truncated: true }),
      }
    },
  })
}

function afterProgress(row: RunsRow | undefined, entry: ProgressEntry, part: string): RunsRow {
  const id = row?.id ?? shownId(idOfSource(entry.source, '/v1/tasks/runs/') ?? part)
  const updated = entry.recorded
  // The trace may be recorded after the webhook of the run's end.
  if (row?.run != null && !isRunning(row.run)) return { ...row, updated: row.updated }
  const { last, ...meter } = row?.progress ?? { ...NO_METER, last: null }
  const progress = { ...meterAfter(meter, entry), last: messageOf(entry) ?? last }
  return { ...(row ?? { run: null }), id, progress, updated }
}

/** Whether the run has not ended. */
function isRunning({ is_active }: TaskRun): boolean {
  return is_active === true
}

function asRun(row: RunsRow | undefined): GroupRunRow | undefined {
  if (row === undefined || row.run === null) return undefined
  const { run, input, updated: recorded, truncated } = row
  return {
    kind: 'run',
    output: null,
    run,
    ...(input !== undefined && { input }),
    recorded,
    ...(truncated === true && { truncated }),
  }
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
