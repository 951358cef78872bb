import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkFunction, checkInteger } from '../../protocol/check.ts'
import { RefusedEffect } from '../refused-effect.ts'

/**
 * A value that is computed over the events of a window. `State` is JSON; a function returns a new state and leaves its arguments as they are.
 *
 * ```ts
 * import type { Aggregate } from 'rivulet/streams'
 *
 * // The range of a number.
 * const range: Aggregate<{ readonly price: number }, number, readonly [number, number]> = {
 *   kind: 'range',
 *   init: () => [Infinity, -Infinity],
 *   add: ([least, most], { price }) => [Math.min(least, price), Math.max(most, price)],
 *   merge: (a, b) => [Math.min(a[0], b[0]), Math.max(a[1], b[1])],
 *   result: ([least, most]) => most - least,
 * }
 * ```
 */
export interface Aggregate<Item, Result, State = unknown> {
  /** The name of what it computes, with its settings: a part of the shape of a definition. */
  readonly kind: string
  /** The state of a window without events. */
  init(): State
  /**
   * The state with one more event.
   *
   * @param at Its event time, in Unix ms.
   */
  add(state: State, item: Item, at: number): State
  /** The state of two sessions that become one. `a` began first. */
  merge(a: State, b: State): State
  /** The value of the window, JSON. */
  result(state: State): Result
}

/** A number of an event; an event without one is not counted. */
export type NumberOf<Item> = (item: Item) => number | null | undefined

/**
 * The number of events.
 *
 * @param where Counts only those for which it returns true. Default: all.
 */
export function count<Item>(where?: (item: Item) => boolean): Aggregate<Item, number, number> {
  if (where !== undefined) checkFunction('where', where)
  return {
    kind: 'count',
    init: () => 0,
    add: (state, item) => (where === undefined || where(item) ? state + 1 : state),
    merge: (a, b) => a + b,
    result: (state) => state,
  }
}

/** The sum of a number of each event. 0 without any. */
export function sum<Item>(value: NumberOf<Item>): Aggregate<Item, number, number> {
  checkFunction('value', value)
  return {
    kind: 'sum',
    init: () => 0,
    add: (state, item) => finite('sum', state + (numberOf('sum', value, item) ?? 0)),
    merge: (a, b) => finite('sum', a + b),
    result: (state) => state,
  }
}

/** The least number of all events. Null without any. */
export function min<Item>(value: NumberOf<Item>): Aggregate<Item, number | null, number | null> {
  return extreme('min', value, Math.min)
}

/** The greatest number of all events. Null without any. */
export function max<Item>(value: NumberOf<Item>): Aggregate<Item, number | null, number | null> {
  return extreme('max', value, Math.max)
}

/** The mean of a number of each event. Null without any. */
export function average<Item>(
  value: NumberOf<Item>,
): Aggregate<Item, number | null, { readonly sum: number; readonly count: number }> {
  checkFunction('value', value)
  return {
    kind: 'average',
    init: () => ({ sum: 0, count: 0 }),
    add: (state, item) => {
      const number = numberOf('average', value, item)
      return number === undefined
        ? state
        : { sum: finite('average', state.sum + number), count: state.count + 1 }
    },
    merge: (a, b) => ({ sum: finite('average', a.sum + b.sum), count: a.count + b.count }),
    result: (state) => (state.count === 0 ? null : state.sum / state.count),
  }
}

/**
 * The number of different values.
 *
 * @param value A text or a number; an event without one is not counted.
 * @param most Maximum number of different values of a window, up to 10,000. One more fails as a function that throws. Default 1,000.
 */
export function distinct<Item>(
  value: (item: Item) => string | number | null | undefined,
  most = 1_000,
): Aggregate<Item, number, readonly (string | number)[]> {
  checkFunction('value', value)
  checkInteger('most', most, 1, 10_000)
  const added = (known: readonly (string | number)[], next: string | number) => {
    if (known.includes(next)) return known
    if (known.length < most) return [...known, next]
    throw new RefusedEffect(`distinct: a window has more than ${most} different values (most)`)
  }
  return {
    kind: 'distinct',
    init: () => [],
    add: (state, item) => {
      const next = value(item)
      if (next == null) return state
      if (typeof next === 'string' || Number.isFinite(next)) return added(state, next)
      throw new RefusedEffect(`distinct: its value must be a text or a finite number, not ${String(next)}`)
    },
    merge: (a, b) => b.reduce(added, a),
    result: ({ length }) => length,
  }
}

/** The value of the event with the greatest event time; of several, the last one to come. Null without any. */
export function latest<Item, Value>(
  value: (item: Item) => Value,
): Aggregate<Item, Value | null, { readonly at: number; readonly value: Value } | null> {
  checkFunction('value', value)
  return {
    kind: 'latest',
    init: () => null,
    add: (state, item, at) => (state !== null && state.at > at ? state : { at, value: value(item) }),
    merge: (a, b) => (a !== null && (b === null || a.at > b.at) ? a : b),
    result: (state) => state?.value ?? null,
  }
}

/**
 * A value of each event, in the order in which they came; undefined is left out. If sessions become one, the values of the earlier one come first.
 *
 * @param most Maximum number of values of a window, up to 10,000. One more fails as a function that throws. Default 100.
 */
export function collect<Item, Value>(
  value: (item: Item) => Value | undefined,
  most = 100,
): Aggregate<Item, readonly Value[], readonly Value[]> {
  checkFunction('value', value)
  checkInteger('most', most, 1, 10_000)
  const bounded = (values: readonly Value[]) => {
    if (values.length <= most) return values
    throw new RefusedEffect(`collect: a window has more than ${most} values (most)`)
  }
  return {
    kind: 'collect',
    init: () => [],
    add(state, item) {
      const next = value(item)
      return next === undefined ? state : bounded([...state, next])
    },
    merge: (a, b) => bounded([...a, ...b]),
    result: (state) => state,
  }
}

function extreme<Item>(
  kind: 'min' | 'max',
  value: NumberOf<Item>,
  of: (a: number, b: number) => number,
): Aggregate<Item, number | null, number | null> {
  checkFunction('value', value)
  const merge = (a: number | null, b: number | null) => (a === null || b === null ? (a ?? b) : of(a, b))
  return {
    kind,
    init: () => null,
    add: (state, item) => merge(state, numberOf(kind, value, item) ?? null),
    merge,
    result: (state) => state,
  }
}

/** The number of an event; undefined if it has none. */
export function numberOf<Item>(kind: string, value: NumberOf<Item>, item: Item): number | undefined {
  const number = value(item)
  return number == null ? undefined : finite(kind, number)
}

function finite(kind: string, value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new RefusedEffect(`${kind}: its value must be a finite number, not ${String(value)}`)
}

/** @throws ArgumentError for what is no aggregate. */
export function checkAggregate(argument: string, given: unknown): void {
  const { kind, ...functions }: Partial<Aggregate<unknown, unknown>> = Object(given)
  const { init, add, merge, result } = functions
  if (typeof kind === 'string' && [init, add, merge, result].every((own) => typeof own === 'function')) return
  throw new ArgumentError(argument, 'an aggregate, such as count()', given)
}
