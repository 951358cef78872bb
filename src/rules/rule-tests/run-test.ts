import { viewOf } from '../cel/index.ts'
import type { AlertEvent } from '../evaluate/in-memory.ts'
import { InMemoryRules } from '../evaluate/in-memory.ts'
import { passTime } from '../backtest/simulated-time.ts'
import type { LoadedTest } from './load-tests.ts'
import { transitionOf } from './transition.ts'
import type { Transition } from './transition.ts'

/** The most transitions of a test. More are a mistake in the test or the rule. */
export const MAX_TRANSITIONS = 20_000

/** The events that the rules of a test emit, in order. */
export interface TestRun {
  /** The transitions, at most {@link MAX_TRANSITIONS}. */
  readonly transitions: readonly Transition[]
  /** Whether there were more. */
  readonly isCut: boolean
  /** The events that they emit within their lateness after the end of the test. They only explain missing events. */
  readonly later: readonly Transition[]
}

export function runTest({ rules, start, until, events }: LoadedTest): TestRun {
  const engine = new InMemoryRules(rules, viewOf)
  const transitions: Transition[] = []
  let isCut = false
  const emit = (emitted: readonly AlertEvent[]) => {
    for (const event of emitted) {
      const transition = transitionOf(event)
      if (transition === undefined) continue
      if (transitions.length < MAX_TRANSITIONS) transitions.push(transition)
      else isCut = true
    }
  }
  emit(engine.tick(start))
  for (const event of events) {
    passTime(engine, event.recorded ?? start, emit)
    emit(engine.arrive(event))
  }
  passTime(engine, until, emit)
  const count = transitions.length
  const wasCut = isCut
  passTime(engine, until + rules.reduce((most, { lateness }) => Math.max(most, lateness), 0), emit)
  return { transitions: transitions.slice(0, count), later: transitions.slice(count), isCut: wasCut }
}
