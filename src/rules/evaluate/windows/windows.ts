import { ArgumentError } from '../../../protocol/argument-error.ts'
import type { CompiledRule, Window } from '../../compiled-rule.ts'
import { ChangedWindow } from './changed.ts'
import { CountWindow } from './count.ts'
import { DistinctWindow } from './distinct.ts'
import { NewWindow } from './new.ts'
import { eventsFor, RateWindow } from './rate.ts'
import { SequenceWindow } from './sequence.ts'
import { SpikeWindow } from './spike.ts'
import { MAX_NEEDED } from './window.ts'
import type { WindowKind } from './window.ts'

/** Maximum number of steps of a sequence, since each is a bit. */
const MAX_STEPS = 30

/** The windows of a rule. Throws an ArgumentError for one that asks for more than a window has room for. */
export function windowsOf({ name, windows }: CompiledRule): readonly WindowKind[] {
  return windows.flatMap((window) => windowOf(name, window) ?? [])
}

function windowOf(rule: string, window: Window): WindowKind | undefined {
  switch (window.kind) {
    case 'count':
      checkNeeded(rule, window.gte)
      return new CountWindow(window.over, window.gte)
    case 'rate':
      checkNeeded(rule, eventsFor(window.over, window.per, window.gte))
      return new RateWindow(window.over, window.per, window.gte)
    case 'distinct':
      checkNeeded(rule, window.gte)
      return new DistinctWindow(window.over, window.gte)
    case 'spike':
      checkNeeded(rule, window.min)
      return new SpikeWindow(window.over, window.factor, window.min)
    case 'new':
      return new NewWindow(window.within)
    case 'changed':
      return new ChangedWindow()
    case 'sequence':
      if (window.steps.length > MAX_STEPS)
        throw new ArgumentError(`${rule}.sequence.steps`, `at most ${MAX_STEPS} steps`, window.steps.length)
      return new SequenceWindow(window.steps.length, window.notThen !== undefined, window.within)
    // Evaluated elsewhere: it is about time, not about events.
    case 'absence':
      return undefined
  }
}

function checkNeeded(rule: string, needed: number): void {
  if (needed > MAX_NEEDED)
    throw new ArgumentError(rule, `at most ${MAX_NEEDED} events or values within a window`, needed)
}
