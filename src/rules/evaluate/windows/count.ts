import type { WindowMatch, WindowState } from '../state.ts'
import { dropFirst, roomFor, upTo } from './window.ts'
import type { WindowKind } from './window.ts'

/** Holds with at least `gte` events in (t − over, t]. */
export class CountWindow implements WindowKind {
  readonly family = 'hold'
  readonly #over: number
  readonly #gte: number
  readonly #room: number

  constructor(over: number, gte: number) {
    this.#over = over
    this.#gte = gte
    this.#room = roomFor(gte)
  }

  begin(): WindowState {
    return { t: [] }
  }

  apply(state: WindowState, time: number, _match: WindowMatch): boolean {
    this.at(state, time)
    state.t.push(time)
    if (state.t.length > this.#room) {
      dropFirst(1, state.t)
      state.x = (state.x ?? 0) + 1
    }
    return false
  }

  deadline({ t }: WindowState): number | undefined {
    // The events before that one can leave without an effect.
    const decisive = t.length >= this.#gte ? t[t.length - this.#gte] : t.at(-1)
    return decisive === undefined ? undefined : decisive + this.#over
  }

  at({ t, v }: WindowState, time: number): boolean {
    dropFirst(upTo(t, time - this.#over), t, v)
    return false
  }

  holds({ t }: WindowState, time: number): boolean {
    return t.length - upTo(t, time - this.#over) >= this.#gte
  }

  value({ t }: WindowState, time: number): number | null {
    return t.length - upTo(t, time - this.#over)
  }

  reset(state: WindowState): void {
    state.t = []
  }

  isEmpty({ t }: WindowState): boolean {
    return t.length === 0
  }
}
