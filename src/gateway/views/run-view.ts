import { runSource } from '../../protocol/event.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { groupOf } from './group-of.ts'
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
import { pathOfRun } from './runs-view.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** The progress of a run. Its path is `[run, 'progress']`. It stays when the run has ended. */
interface RunProgressRow extends RunMeter {
  readonly kind: 'progress'
  /** The last 50 messages of the trace, the first one first. */
  readonly messages: readonly TraceMessage[]
  /** Number of messages before these. */
  readonly earlier: number
  /** When the last of it was recorded, in Unix ms. */
  readonly updated: number
}

/** A row of {@link runView}, by `kind`. A run has the path `[run]`. */
export type RunRow = GroupRunRow | RunProgressRow

/** The most messages that are kept. */
const MAX_MESSAGES = 50

/**
 * One run without a group, with its output and its progress, by the param `run`. The runs of a group are in `groupView`. If a run's event
 * comes several times, the row has the fields of all of them. A run leaves the view when an event names its group.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function runView(options: ViewAge = {}): View<RunRow, 'run'> {
  const timeToLive = ageOf(options, 90 * DAY)
  return view({
    version: 2,
    types: ['task_run.state', ...PROGRESS_TYPES],
    params: ['run'],
    timeToLive,
    key: (entry) => {
      if (isProgress(entry)) {
        const path = pathOfProgress(entry)
        return path && [...path, 'progress']
      }
      const path = pathOfRun(entry)
      if (path === undefined) return undefined
      return groupOf(entry) === undefined ? path : [path, [...path, 'progress']]
    },
    source: ([run = '']) => runSource(run),
    reduce: (row: RunRow | undefined, entry): RunRow | null => {
      if (isProgress(entry)) return progressRow(row?.kind === 'progress' ? row : undefined, entry)
      return groupOf(entry) === undefined ? runRow(row?.kind === 'run' ? row : undefined, entry) : null
    },
  })
}

function progressRow(row: RunProgressRow | undefined, entry: ProgressEntry): RunProgressRow {
  const { kind, messages, earlier, updated, ...before } = row ?? NOTHING
  const message = messageOf(entry)
  const all = message === undefined ? messages : [...messages, message]
  const dropped = Math.max(0, all.length - MAX_MESSAGES)
  return {
    kind,
    ...meterAfter(before, entry),
    messages: all.slice(dropped),
    earlier: earlier + dropped,
    updated: Math.max(updated, entry.recorded),
  }
}

const NOTHING: RunProgressRow = { kind: 'progress', ...NO_METER, messages: [], earlier: 0, updated: 0 }
