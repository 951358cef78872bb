import type { Tally, WindowKind, WindowValues } from './aggregate.ts'
import { drop, REPORT, reportDropped } from './dropped.ts'
import type { WithDropped } from './dropped.ts'
import { dayOf } from './placed.ts'
import type { Row } from './stage.ts'
import { areWholeDays, startsOf } from './windows.ts'
import type { FixedWindows } from './windows.ts'

/** The name of the timer that ends a window. */
const CLOSE = 'close'

/** A window of a key. */
interface WindowState extends WithDropped {
  readonly values?: WindowValues | undefined
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
          if (end <= context.now('event')) return drop(state, { start, end }, 'late', context)
          context.set({ ...state, values: tally.add(state?.values, item, at) })
          if (state?.values === undefined) context.timer(CLOSE, end, { clock: 'event' })
        },
      }))
    },
    timer(row, state, due, context, name) {
      const { values, dropped } = state ?? {}
      if (name === REPORT) {
        if (dropped !== undefined) reportDropped(row, dropped, context)
        context.set(values === undefined ? null : { values })
        return
      }
      if (values !== undefined) tally.append(row[1], { start: due - windows.size, end: due }, values, context)
      context.set(dropped === undefined ? null : { dropped })
    },
  }
}
