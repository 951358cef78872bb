import type { Tally, WindowKind, WindowValues } from './tally.ts'
import { drop, REPORT, reportDropped } from './dropped.ts'
import type { WithDropped } from './dropped.ts'
import type { ProcessContext } from '../process-functions.ts'
import { dayOf } from './placed.ts'
import type { Row } from './stage.ts'
import { areWholeDays, startsOf } from './windows.ts'
import type { FixedWindows } from './windows.ts'

/** The name of the timer that ends a window. */
const CLOSE = 'close'

/** The name of the timer that forgets a window that has ended. */
const FORGET = 'forget'

/** How long a window that has ended is known while a source is behind that is waited for forever, by the clock `recorded`, in ms. */
const FORGET_INTERVAL = 600_000

/** A window of a key. */
interface WindowState extends WithDropped {
  readonly values?: WindowValues | undefined
  /** Whether it has ended, while a source is behind whose events may still come for it. */
  readonly hasEnded?: boolean | undefined
}

/** Windows of one length. One row for each key and window. */
export function fixedWindows<Item>(windows: FixedWindows, tally: Tally<Item>): WindowKind<Item, WindowState> {
  const { stage } = tally
  const hasDays = areWholeDays(windows)
  return {
    rows(key, item, at) {
      if (at.isWholeDay && !hasDays) {
        const row: Row<WindowState> = {
          key: [stage, key, 'day'],
          take: (state, context) => drop(state, dayOf(at.at), 'whole_day', context),
        }
        return [row]
      }
      return startsOf(windows, at.at).map((start) => ({
        key: [stage, key, start],
        take(state, context) {
          const end = start + windows.size
          if (state?.hasEnded === true || end <= context.now('event'))
            return drop(state, { start, end }, 'late', context)
          context.set({ ...state, values: tally.add(state?.values, item, at) })
          if (state?.values === undefined) context.timer(CLOSE, end, { clock: 'event' })
        },
      }))
    },
    timer(row, state, due, context, name) {
      const { values, dropped, hasEnded } = state ?? {}
      if (name === REPORT) {
        if (dropped !== undefined) reportDropped(row, dropped, context)
        return keep({ values, hasEnded }, context)
      }
      if (name === FORGET) return ended({ dropped }, context)
      if (values !== undefined) {
        tally.append(row[1], { start: due - windows.size, end: due }, values, context)
      }
      ended({ dropped }, context)
    },
  }
}

/** A window has ended. While a source is behind, the row stays: what the source still brings must not open the window again. */
function ended(state: WindowState, context: ProcessContext<WindowState>): void {
  const { behindUntil } = context
  if (behindUntil === undefined) return keep(state, context)
  const now = context.now()
  context.set({ ...state, hasEnded: true })
  context.timer(FORGET, Math.max(Math.min(behindUntil, now + FORGET_INTERVAL), now + 1))
}

function keep(state: WindowState, context: ProcessContext<WindowState>): void {
  const isEmpty = Object.values(state).every((value) => value === undefined)
  context.set(isEmpty ? null : state)
}
