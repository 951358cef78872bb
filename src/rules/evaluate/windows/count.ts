import type { WindowMatch, WindowState } from '../state.ts'
import { dropFirst, roomFor, upTo } from './window.ts'
import type { WindowKind, WindowType } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'

/** Holds with at least `gte` events in (t − over, t]. */
export class CountWindow implements WindowKind {
  readonly #over: number
  readonly #gte: number
  protected readonly room: number

  constructor(over: number, gte: number) {
    this.#over = over
    this.#gte = gte
    this.room = roomFor(gte)
  }

  begin(): WindowState {
    return { times: [] }
  }

  apply(state: WindowState, time: number, _match: WindowMatch): boolean {
    this.at(state, time)
    state.times.push(time)
    if (state.times.length > this.room) {
      dropFirst(1, state.times)
      state.dropped = (state.dropped ?? 0) + 1
    }
    return false
  }

  deadline({ times }: WindowState): number | undefined {
    // The events before that one can leave without an effect.
    const decisive = times.length >= this.#gte ? times[times.length - this.#gte] : times.at(-1)
    return decisive === undefined ? undefined : decisive + this.#over
  }

  at({ times, hashes }: WindowState, time: number): boolean {
    dropFirst(upTo(times, time - this.#over), times, hashes)
    return false
  }

  holds({ times }: WindowState, time: number): boolean {
    return times.length - upTo(times, time - this.#over) >= this.#gte
  }

  value({ times }: WindowState, time: number): number | null {
    return times.length - upTo(times, time - this.#over)
  }

  reset(state: WindowState): void {
    state.times = []
  }
}

export const count: WindowType<WindowSettings['count']> = {
  create: ({ over, gte }) => new CountWindow(over, gte),
  needed: ({ gte }) => gte,
}
