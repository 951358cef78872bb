import { rfc3339 } from '../../protocol/timestamp.ts'
import type { StageDropped } from '../../protocol/stage.ts'
import type { ProcessContext } from '../process-functions.ts'
import type { RowKey } from './stage.ts'

/** How long dropped events are counted before they are reported, by the clock `recorded`, in ms. */
const REPORT_INTERVAL = 60_000

/** The name of the timer that reports dropped events. */
export const REPORT = 'report'

/** The time of a window, in Unix ms. */
export interface Span {
  readonly start: number
  /** The end is not in the window. */
  readonly end: number
}

/** Events of a row that were dropped, and not yet reported. */
export interface Dropped extends Span {
  readonly reason: StageDropped['reason']
  readonly count: number
}

/** A state that may have events that were dropped. */
export interface WithDropped {
  readonly dropped?: Dropped | undefined
}

/** Drops an event, which is reported within a minute. */
export function drop<State extends WithDropped>(
  state: State | null,
  { start, end }: Span,
  reason: StageDropped['reason'],
  context: ProcessContext<State | WithDropped>,
): void {
  const before = state?.dropped
  const dropped: Dropped = {
    reason,
    count: (before?.count ?? 0) + 1,
    start: Math.min(before?.start ?? start, start),
    end: Math.max(before?.end ?? end, end),
  }
  context.set({ ...state, dropped })
  if (before === undefined) context.timer(REPORT, context.now() + REPORT_INTERVAL)
}

/** Reports the dropped events of a row. */
export function reportDropped(
  [stage, key]: RowKey,
  { reason, count, start, end }: Dropped,
  context: Pick<ProcessContext<unknown>, 'append'>,
): void {
  const data: StageDropped = { stage, key, start: rfc3339(start), end: rfc3339(end), reason, count }
  context.append({ type: 'stage.dropped', data })
}
