import type { Tally, WindowKind, WindowValues } from './tally.ts'
import { drop, REPORT, reportDropped } from './dropped.ts'
import type { WithDropped } from './dropped.ts'
import { dayOf } from './placed.ts'
import type { Row } from './stage.ts'
import type { SessionWindows } from './windows.ts'

/** A session that is open. */
interface Session {
  /** Times of the first and the last event, in Unix ms. */
  readonly first: number
  readonly last: number
  readonly values: WindowValues
}

/** The open sessions of a key, in the order of their times. */
interface SessionsState extends WithDropped {
  readonly sessions?: readonly Session[] | undefined
}

/** Sessions. One row for each key: the timer of a session has the time of its first event as its name. */
export function sessionWindows<Item>(
  { gap }: SessionWindows,
  tally: Tally<Item>,
): WindowKind<Item, SessionsState> {
  const { stage } = tally
  return {
    rows(key, item, at) {
      const { isWholeDay, at: time } = at
      const row: Row<SessionsState> = isWholeDay
        ? {
            key: [stage, key, 'day'],
            take: (state, context) => drop(state, dayOf(time), 'whole_day', context),
          }
        : {
            key: [stage, key],
            take(state, context) {
              const open = state?.sessions ?? []
              const touched = open.filter(({ first, last }) => time > first - gap && time < last + gap)
              if (touched.length === 0 && time + gap <= context.now('event')) {
                return drop(state, { start: time, end: time + gap }, 'late', context)
              }
              const [one, other] = touched
              const before = one && other ? tally.merge(one.values, other.values) : one?.values
              const joined: Session = {
                first: Math.min(one?.first ?? time, time),
                last: Math.max((other ?? one)?.last ?? time, time),
                values: tally.add(before, item, at),
              }
              for (const { first } of touched) if (first !== joined.first) context.cancel(String(first))
              const isLonger = one?.first !== joined.first || one.last !== joined.last
              if (isLonger) context.timer(String(joined.first), joined.last + gap, { clock: 'event' })
              const others = open.filter((each) => !touched.includes(each))
              const sessions = [...others, joined].toSorted((a, b) => a.first - b.first)
              context.set({ ...state, sessions })
            },
          }
      return [row]
    },
    timer(row, state, _due, context, name) {
      const { sessions = [], dropped } = state ?? {}
      if (name === REPORT) {
        if (dropped !== undefined) reportDropped(row, dropped, context)
        return context.set(sessions.length === 0 ? null : { sessions })
      }
      const ended = sessions.find(({ first }) => String(first) === name)
      if (ended === undefined) return
      const { first, last, values } = ended
      tally.append(row[1], { start: first, end: last + gap }, values, context)
      const left = sessions.filter((each) => each !== ended)
      const next = { ...(left.length > 0 && { sessions: left }), ...(dropped !== undefined && { dropped }) }
      context.set(Object.keys(next).length === 0 ? null : next)
    },
  }
}
