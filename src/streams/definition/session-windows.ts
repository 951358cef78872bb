import { isObject } from '../../protocol/json.ts'
import { RefusedEffect } from '../refused-effect.ts'
import { drop, REPORT, reportDropped } from './dropped.ts'
import type { WithDropped } from './dropped.ts'
import { dayOf, timeText } from './placed.ts'
import type { Row } from './stage.ts'
import type { Tally, WindowKind, WindowValues } from './tally.ts'
import type { SessionWindows } from './windows.ts'

/** A session that is open, as the data of the timer that ends it. */
interface Session {
  /** Times of the first and the last event, in Unix ms. */
  readonly first: number
  readonly last: number
  readonly values: WindowValues
}

/**
 * Sessions. Each is stored by itself, as the data of the timer that ends it, whose name is the time of its last event. So an event finds the one or
 * two that it joins: the first ones whose last event is not a gap before it.
 */
export function sessionWindows<Item>(
  { gap }: SessionWindows,
  tally: Tally<Item>,
): WindowKind<Item, WithDropped> {
  const { stage } = tally
  return {
    rows(key, item, at) {
      const { isWholeDay, at: time } = at
      const row: Row<WithDropped> = isWholeDay
        ? {
            key: [stage, key, 'day'],
            take: (state, context) => drop(state, dayOf(time), 'whole_day', context),
          }
        : {
            key: [stage, key],
            // A time is a text of digits, which are before ":".
            reads: { from: timeText(time - gap + 1), to: ':' },
            take(state, context) {
              const [one, other] = (context.waiting ?? [])
                .slice(0, 2)
                .map(({ data }) => sessionOf(data))
                .filter(({ first }) => time > first - gap)
              if (one === undefined && time + gap <= context.now('event')) {
                return drop(state, { start: time, end: time + gap }, 'late', context)
              }
              const before = one && other ? tally.merge(one.values, other.values) : one?.values
              const last = Math.max((other ?? one)?.last ?? time, time)
              const session: Session = {
                first: Math.min(one?.first ?? time, time),
                last,
                values: tally.add(before, item, at),
              }
              for (const each of [one, other]) if (each !== undefined) context.cancel(timeText(each.last))
              context.timer(timeText(last), last + gap, { clock: 'event', data: session })
            },
          }
      return [row]
    },
    timer(row, state, _due, context, name, data) {
      if (name === REPORT) {
        if (state?.dropped !== undefined) reportDropped(row, state.dropped, context)
        return context.set(null)
      }
      const { first, last, values } = sessionOf(data)
      tally.append(row[1], { start: first, end: last + gap }, values, context)
    },
  }
}

/** @param data As it was stored. */
function sessionOf(data: unknown): Session {
  const { first, last, values }: Record<string, unknown> = isObject(data) ? data : {}
  if (
    typeof first === 'number' &&
    typeof last === 'number' &&
    isObject(values) &&
    Array.isArray(values['states'])
  ) {
    const { states, byArrival } = values
    return {
      first,
      last,
      values: { states, byArrival: typeof byArrival === 'number' ? byArrival : undefined },
    }
  }
  throw new RefusedEffect('its state is not of this definition')
}
