import type { WindowState } from '../state.ts'
import { CountWindow } from './count.ts'
import type { WindowSettings } from '../../compiled-rule.ts'
import type { WindowType } from './window.ts'

/** Holds with at least `gte` events in each `per`, on average over (t − over, t]. */
class RateWindow extends CountWindow {
  readonly #over: number
  readonly #per: number

  constructor(over: number, per: number, gte: number) {
    super(over, eventsFor(over, per, gte))
    this.#over = over
    this.#per = per
  }

  override value(state: WindowState, time: number): number | null {
    return ((super.value(state, time) ?? 0) * this.#per) / this.#over
  }
}

/** The least number of events n for which n · per ≥ gte · over. */
function eventsFor(over: number, per: number, gte: number): number {
  const needed = Math.ceil((gte * over) / per)
  // A quotient may be rounded.
  if (needed > 1 && (needed - 1) * per >= gte * over) return needed - 1
  return needed * per >= gte * over ? needed : needed + 1
}

export const rate: WindowType<WindowSettings['rate']> = {
  create: ({ over, per, gte }) => new RateWindow(over, per, gte),
  needed: ({ over, per, gte }) => eventsFor(over, per, gte),
}
