import { rfc3339 } from '../../protocol/timestamp.ts'
import type { WindowResult } from '../../protocol/stage.ts'
import type { ProcessContext } from '../process-functions.ts'
import type { Aggregate } from './aggregates.ts'
import type { Span } from './dropped.ts'
import type { Placed } from './placed.ts'
import type { Row, Stage } from './stage.ts'

/** What windows of one kind do with the events of a key. */
export interface WindowKind<Item, State> {
  /** The rows that an event is for. */
  rows(key: string, item: Item, at: Placed): readonly Row<State>[]
  timer: Stage<unknown, State>['timer']
}

/** The values of a window that is open. */
export interface WindowValues {
  /** The states of the aggregates, in their order. */
  readonly states: readonly unknown[]
  /** Number of events without a time of their own. */
  readonly byArrival?: number | undefined
}

/** Computes the values of a stage. */
export interface Tally<Item> {
  readonly stage: string
  add(values: WindowValues | undefined, item: Item, at: Placed): WindowValues
  merge(a: WindowValues, b: WindowValues): WindowValues
  /** Appends the result of a window. */
  append(
    key: string,
    window: Span,
    values: WindowValues,
    context: Pick<ProcessContext<unknown>, 'append' | 'complete'>,
  ): void
}

/** Computes the values of a stage by these aggregates. */
export function tallyOf<Item>(
  stage: string,
  aggregates: readonly (readonly [string, Aggregate<Item, unknown>])[],
): Tally<Item> {
  const initial = (): readonly unknown[] => aggregates.map(([, { init }]) => init())
  return {
    stage,
    add(values, item, { at, isByArrival }) {
      const before = values?.states ?? initial()
      const states = aggregates.map(([, each], n) => each.add(before[n], item, at))
      return valuesOf(states, (values?.byArrival ?? 0) + (isByArrival ? 1 : 0))
    },
    merge: (a, b) =>
      valuesOf(
        aggregates.map(([, each], n) => each.merge(a.states[n], b.states[n])),
        (a.byArrival ?? 0) + (b.byArrival ?? 0),
      ),
    append(key, { start, end }, { states, byArrival }, context) {
      const data: WindowResult = {
        stage,
        key,
        start: rfc3339(start),
        end: rfc3339(end),
        complete: context.complete,
        values: Object.fromEntries(aggregates.map(([value, each], n) => [value, each.result(states[n])])),
        ...(byArrival !== undefined && { byArrival }),
      }
      context.append({ type: 'window.result', data })
    },
  }
}

function valuesOf(states: readonly unknown[], byArrival: number): WindowValues {
  return byArrival === 0 ? { states } : { states, byArrival }
}
