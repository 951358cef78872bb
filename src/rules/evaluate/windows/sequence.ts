import type { Chain, Fact, WindowMatch, WindowState } from '../state.ts'
import type { WindowKind } from './window.ts'

/** Events that match steps one after the other, all `within` a time; with `not_then`, and no such event within that time after. */
export class SequenceWindow implements WindowKind {
  readonly family = 'pulse'
  readonly #steps: number
  readonly #hasNotThen: boolean
  readonly #within: number

  constructor(steps: number, hasNotThen: boolean, within: number) {
    this.#steps = steps
    this.#hasNotThen = hasNotThen
    this.#within = within
  }

  begin(): WindowState {
    return { t: [] }
  }

  apply(state: WindowState, time: number, match: WindowMatch, fact: Pick<Fact, 'e' | 'a'>): boolean {
    if (typeof match !== 'number') return false
    if (this.#hasNotThen && state.p && (match & (1 << this.#steps)) !== 0) state.p = null
    const complete = this.#extend(state, time, match, fact)
    if (complete === undefined) return false
    state.c = []
    if (!this.#hasNotThen) {
      state.p = complete
      return true
    }
    // The earliest completion decides.
    state.p ??= complete
    return false
  }

  /** Continues the chains of all steps. Returns one of all steps. */
  #extend(
    state: WindowState,
    time: number,
    match: number,
    { e, a }: Pick<Fact, 'e' | 'a'>,
  ): Chain | undefined {
    const chains = (state.c ??= [])
    // From the last step on, since an event cannot be two steps of one chain.
    for (let step = this.#steps - 1; step >= 0; step--) {
      if ((match & (1 << step)) === 0) continue
      const before = step === 0 ? { t: [time, time] as const, e: [] } : chains[step - 1]
      if (before === undefined || before === null || time - before.t[0] > this.#within) continue
      while (chains.length < step) chains.push(null)
      // Later than the chain that was here: its start is as late or later.
      chains[step] = { t: [before.t[0], time], e: [...before.e, e], ...(a !== undefined && { a }) }
    }
    return chains[this.#steps - 1] ?? undefined
  }

  deadline({ p, c }: WindowState): number | undefined {
    const starts = (c ?? []).flatMap((chain) => (chain === null ? [] : chain.t[0] + this.#within + 1))
    if (this.#hasNotThen && p) starts.push(p.t[1] + this.#within)
    return starts.length === 0 ? undefined : Math.min(...starts)
  }

  at(state: WindowState, time: number): boolean {
    const { c, p } = state
    if (c !== undefined) {
      state.c = c.map((chain) => (chain !== null && time - chain.t[0] > this.#within ? null : chain))
      while (state.c.length > 0 && (state.c.at(-1) ?? null) === null) state.c.pop()
    }
    if (!this.#hasNotThen || !p || p.t[1] + this.#within > time) return false
    return true
  }

  holds(): boolean {
    return false
  }

  value(): number | null {
    return null
  }

  reset(state: WindowState): void {
    state.c = []
    state.p = null
  }

  isEmpty({ c, p }: WindowState): boolean {
    return (c === undefined || c.length === 0) && !p
  }

  takePulse(state: WindowState): Chain | undefined {
    const { p } = state
    state.p = null
    return p ?? undefined
  }
}
