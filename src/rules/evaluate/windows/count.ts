import type { WindowMatch, WindowState } from '../state.ts'
import { addValue, dropExcess, dropUpTo, MAX_NEEDED, membersOf, roomFor, upTo } from './window.ts'
import type { WindowKind, WindowType } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'
import { unorderedHash } from '../../../protocol/identity.ts'

/** Holds with at least `needed` items in (t − over, t]: events, or values, which it counts by their last times. */
class CountWindow implements WindowKind {
  readonly #over: number
  readonly #needed: number
  readonly #valueOf: (count: number) => number

  constructor(over: number, needed: number, valueOf = (count: number) => count) {
    this.#over = over
    this.#needed = needed
    this.#valueOf = valueOf
  }

  apply(state: WindowState, time: number, match: WindowMatch): boolean {
    this.at(state, time)
    if (typeof match === 'number') state.times.push(time)
    else for (const hash of match) addValue(state, time, hash)
    dropExcess(state, roomFor(this.#needed))
    return false
  }

  deadline({ times }: WindowState): number | undefined {
    // The items before that one can leave without an effect.
    const decisive = times.length >= this.#needed ? times[times.length - this.#needed] : times.at(-1)
    return decisive === undefined ? undefined : decisive + this.#over
  }

  at(state: WindowState, time: number): boolean {
    dropUpTo(state, time - this.#over)
    return false
  }

  holds(state: WindowState, time: number): boolean {
    return this.#count(state, time) >= this.#needed
  }

  value(state: WindowState, time: number): number {
    return this.#valueOf(this.#count(state, time))
  }

  reset(state: WindowState): void {
    state.times = []
    delete state.hashes
  }

  #count({ times }: WindowState, time: number): number {
    return times.length - upTo(times, time - this.#over)
  }
}

/** The least number of events n for which n · per ≥ gte · over. */
function eventsFor({ over, per, gte }: WindowSettings['rate']): number {
  const needed = Math.ceil((gte * over) / per)
  // A quotient may be rounded.
  if (needed > 1 && (needed - 1) * per >= gte * over) return needed - 1
  return needed * per >= gte * over ? needed : needed + 1
}

export const count: WindowType<WindowSettings['count']> = {
  create: ({ over, gte }) => new CountWindow(over, gte),
  needed: ({ gte }) => gte,
}

export const rate: WindowType<WindowSettings['rate']> = {
  create(settings) {
    const { over, per } = settings
    return new CountWindow(over, eventsFor(settings), (events) => (events * per) / over)
  },
  needed: eventsFor,
}

export const distinct: WindowType<WindowSettings['distinct']> = {
  create: ({ over, gte }) => new CountWindow(over, gte),
  needed: ({ gte }) => gte,
  match({ value: expression }, { valueOf }) {
    const value = valueOf(expression)
    const members = value === undefined ? [] : membersOf(value, MAX_NEEDED)
    return members.length === 0 ? null : [...new Set(members.map((member) => unorderedHash(member)))]
  },
}
