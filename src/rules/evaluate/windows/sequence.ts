import { ArgumentError } from '../../../protocol/argument-error.ts'
import type { Chain, MatchedEvent, WindowMatch, WindowState } from '../state.ts'
import type { WindowKind, WindowType } from './window.ts'
import type { WindowSettings } from '../../compiled-rule.ts'

/** Maximum number of steps, since each is a bit. */
const MAX_STEPS = 30

/** Events that match steps one after the other, all `within` a time; with `not_then`, and no such event within that time after. */
class SequenceWindow implements WindowKind {
  readonly #steps: number
  readonly #hasNotThen: boolean
  readonly #within: number

  constructor(steps: number, hasNotThen: boolean, within: number) {
    this.#steps = steps
    this.#hasNotThen = hasNotThen
    this.#within = within
  }

  apply(state: WindowState, time: number, match: WindowMatch, event: MatchedEvent): boolean {
    if (typeof match !== 'number') return false
    if (this.#hasNotThen && state.completed && (match & (1 << this.#steps)) !== 0) state.completed = null
    const complete = this.#extend(state, time, match, event)
    if (complete === undefined) return false
    state.chains = []
    if (!this.#hasNotThen) {
      state.completed = complete
      return true
    }
    // The earliest completion decides.
    state.completed ??= complete
    return false
  }

  /** Continues the chains of all steps. Returns one of all steps. */
  #extend(
    state: WindowState,
    time: number,
    match: number,
    { cause, annotationParts }: MatchedEvent,
  ): Chain | undefined {
    const chains = (state.chains ??= [])
    // From the last step on, since an event cannot be two steps of one chain.
    for (let step = this.#steps - 1; step >= 0; step--) {
      if ((match & (1 << step)) === 0) continue
      const before = step === 0 ? { span: [time, time] as const, causes: [] } : chains[step - 1]
      if (before === undefined || before === null || time - before.span[0] > this.#within) continue
      while (chains.length < step) chains.push(null)
      // Later than the chain that was here: its start is as late or later.
      chains[step] = {
        span: [before.span[0], time],
        causes: [...before.causes, cause],
        ...(annotationParts !== undefined && { annotationParts }),
      }
    }
    return chains[this.#steps - 1] ?? undefined
  }

  deadline({ completed, chains = [] }: WindowState): number | undefined {
    const starts = chains.flatMap((chain) => (chain === null ? [] : chain.span[0] + this.#within + 1))
    if (this.#hasNotThen && completed) starts.push(completed.span[1] + this.#within)
    return starts.length === 0 ? undefined : Math.min(...starts)
  }

  at(state: WindowState, time: number): boolean {
    const { chains, completed } = state
    if (chains !== undefined) {
      state.chains = chains.map((chain) =>
        chain !== null && time - chain.span[0] > this.#within ? null : chain,
      )
      while (state.chains.length > 0 && (state.chains.at(-1) ?? null) === null) state.chains.pop()
    }
    if (!this.#hasNotThen || !completed || completed.span[1] + this.#within > time) return false
    return true
  }

  reset(state: WindowState): void {
    state.chains = []
    state.completed = null
  }

  giveUp(state: WindowState): boolean {
    if (!this.#hasNotThen || !state.completed) return false
    state.completed = null
    return true
  }

  isEmpty({ chains = [], completed }: WindowState): boolean {
    return chains.length === 0 && !completed
  }

  takePulse(state: WindowState): Chain | undefined {
    const { completed } = state
    state.completed = null
    return completed ?? undefined
  }
}

export const sequence: WindowType<WindowSettings['sequence']> = {
  create({ steps, notThen, within }, rule) {
    if (steps.length > MAX_STEPS)
      throw new ArgumentError(`${rule}.sequence.steps`, `at most ${MAX_STEPS} steps`, steps.length)
    return new SequenceWindow(steps.length, notThen !== undefined, within)
  },
  match({ steps, notThen }, { holds }) {
    const conditions = notThen === undefined ? steps : [...steps, notThen]
    let bits = 0
    for (const [index, condition] of conditions.entries()) if (holds(condition)) bits |= 1 << index
    return bits === 0 ? null : bits
  },
}
