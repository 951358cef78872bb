import { average, max, min, sum } from '../../../streams/definition/aggregates.ts'
import type { Aggregate } from '../../../streams/definition/aggregates.ts'
import { rankOf } from '../../../streams/definition/percentile.ts'
import type { WindowSettings } from '../../compiled-rule.ts'
import type { WindowMatch, WindowState } from '../state.ts'
import { dropExcess, dropUpTo, roomFor, upTo } from './window.ts'
import type { WindowKind, WindowType } from './window.ts'

type Bounds = Pick<WindowSettings['sum'], 'over' | 'gte' | 'lte'>

/** A value of the numbers of a window, which are in the order of their events; null without any. */
interface Computation {
  readonly result: (numbers: readonly number[]) => number | null
  /** Whether an earlier number no longer matters after a later one. Default: each matters. */
  readonly outdoes?: (later: number, earlier: number) => boolean
}

/** Holds if the value of the numbers of (t − over, t] is within bounds; not without a number. */
class AggregateWindow implements WindowKind {
  readonly #bounds: Bounds
  readonly #computation: Computation

  constructor(bounds: Bounds, computation: Computation) {
    this.#bounds = bounds
    this.#computation = computation
  }

  apply(state: WindowState, time: number, match: WindowMatch): boolean {
    if (typeof match !== 'number') return false
    this.at(state, time)
    const { times, numbers = [] } = state
    state.numbers = numbers
    while (this.#computation.outdoes?.(match, numbers.at(-1) ?? NaN) === true) {
      times.pop()
      numbers.pop()
    }
    times.push(time)
    numbers.push(match)
    dropExcess(state, roomFor(0))
    return false
  }

  deadline({ times: [first] }: WindowState): number | undefined {
    return first === undefined ? undefined : first + this.#bounds.over
  }

  at(state: WindowState, time: number): boolean {
    dropUpTo(state, time - this.#bounds.over)
    return false
  }

  holds(state: WindowState, time: number): boolean {
    const { gte = -Infinity, lte = Infinity } = this.#bounds
    const value = this.value(state, time)
    return value !== null && value >= gte && value <= lte
  }

  value({ times, numbers = [] }: WindowState, time: number): number | null {
    const within = numbers.slice(upTo(times, time - this.#bounds.over))
    return within.length === 0 ? null : this.#computation.result(within)
  }

  isComplete({ lastDropped = -Infinity }: WindowState, time: number): boolean {
    return lastDropped <= time - this.#bounds.over
  }

  reset(state: WindowState): void {
    state.times = []
    delete state.numbers
    delete state.lastDropped
  }
}

function typeOf<Settings extends WindowSettings['sum']>(
  computationOf: (settings: Settings) => Computation,
): WindowType<Settings> {
  return {
    create: (settings) => new AggregateWindow(settings, computationOf(settings)),
    match: ({ value }, { numberOf }) => numberOf(value) ?? null,
  }
}

/** What `rivulet/streams` computes over the events of a window. */
function resultOf<State>({
  init,
  add,
  result,
}: Aggregate<number, number | null, State>): Computation['result'] {
  return (numbers) => result(numbers.reduce((state, number) => add(state, number, 0), init()))
}

const itself = (number: number) => number

/** Windows over a number of each event. */
export const aggregates: {
  readonly [Kind in 'sum' | 'avg' | 'min' | 'max' | 'percentile']: WindowType<WindowSettings[Kind]>
} = {
  sum: typeOf(() => ({ result: resultOf(sum(itself)) })),
  avg: typeOf(() => ({ result: resultOf(average(itself)) })),
  min: typeOf(() => ({ result: resultOf(min(itself)), outdoes: (later, earlier) => later <= earlier })),
  max: typeOf(() => ({ result: resultOf(max(itself)), outdoes: (later, earlier) => later >= earlier })),
  percentile: typeOf(({ p }) => ({
    result: (numbers) => numbers.toSorted((a, b) => a - b)[rankOf(p, numbers.length) - 1] ?? null,
  })),
}
