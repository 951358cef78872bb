import type { Expectation, LoadedTest } from './load-tests.ts'
import { sinceStart } from './test-time.ts'
import { fieldsText, seconds, transitionText } from './transition.ts'
import { MAX_TRANSITIONS } from './run-test.ts'
import type { TestRun } from './run-test.ts'
import type { Transition } from './transition.ts'

/** An expectation that was not met, or something that was not expected. */
export interface Mismatch {
  readonly place: { readonly line: number | null; readonly column: number | null }
  readonly message: string
  readonly expected: string
  /** The actual results, the nearest first. */
  readonly got: readonly string[]
}

/** The most lines of what there was instead. */
const MAX_SHOWN = 5

/** The differences between a test's expectations and its results. */
export function compare(test: LoadedTest, { transitions, later, isCut }: TestRun): readonly Mismatch[] {
  const wanted = test.expectations.filter(({ kind }) => isTransition(kind))
  const matches = assign(wanted, transitions, test)
  const used = new Set(matches.values())
  const mismatches: Mismatch[] = []
  if (isCut) {
    const expected = `at most ${MAX_TRANSITIONS} transitions`
    const message = 'the rules emit too much: the rest of the test was not compared'
    mismatches.push({ place: test.place, message, expected, got: [] })
  }
  for (const expectation of test.expectations) {
    if (!isTransition(expectation.kind)) {
      mismatches.push(...stateMismatch(expectation, transitions, test))
      continue
    }
    if (matches.has(expectation)) continue
    const free = [...transitions.filter((transition) => !used.has(transition)), ...later]
    mismatches.push(missing(expectation, free, transitions, test))
  }
  if (test.isExact) {
    for (const transition of transitions) {
      if (used.has(transition)) continue
      // One that is nearest to an expectation was shown there.
      const text = transitionText(transition, test.start)
      if (mismatches.some(({ got: [nearest] }) => nearest === text)) continue
      const message = 'this was not expected, and the test is exact'
      mismatches.push({ place: test.place, message, expected: 'nothing', got: [text] })
    }
  }
  return mismatches
}

function isTransition(kind: Expectation['kind']): kind is Transition['kind'] {
  return kind === 'firing' || kind === 'resolved' || kind === 'unknown' || kind === 'late'
}

/**
 * Assigns to as many expectations as possible a different transition that meets each of them: an expectation without a time must not take
 * the transition that another expectation needs (augmenting paths).
 */
function assign(
  wanted: readonly Expectation[],
  transitions: readonly Transition[],
  test: LoadedTest,
): ReadonlyMap<Expectation, Transition> {
  const candidates = new Map(
    wanted.map((each) => [each, transitions.filter((got) => differences(each, got, test).length === 0)]),
  )
  const owners = new Map<Transition, Expectation>()
  const found = new Map<Expectation, Transition>()
  const place = (expectation: Expectation, seen: Set<Transition>): boolean => {
    for (const transition of candidates.get(expectation) ?? []) {
      if (seen.has(transition)) continue
      seen.add(transition)
      const owner = owners.get(transition)
      if (owner !== undefined && !place(owner, seen)) continue
      owners.set(transition, expectation)
      found.set(expectation, transition)
      return true
    }
    return false
  }
  for (const expectation of wanted) place(expectation, new Set())
  return found
}

interface Difference {
  readonly field: string
  readonly expected: string
  readonly got: string
}

/** The differences between a transition and the expectation. */
function differences(
  { kind, rule, at, since, given }: Expectation,
  got: Transition,
  { isExact, start }: LoadedTest,
): readonly Difference[] {
  const found: Difference[] = []
  const check = (field: string, expected: string, actual: string) => {
    if (expected !== actual) found.push({ field, expected, got: actual })
  }
  const time = (ms: number) => sinceStart(seconds(ms), start)
  if (isTransition(kind)) check('kind', kind, got.kind)
  if (rule !== null) check('rule', rule, got.alert)
  if (at !== undefined && isTransition(kind)) check('at', time(at), time(got.at))
  if (since !== undefined) check('since', time(since), time(got.since))
  for (const field of ['key', 'labels', 'annotations'] as const) {
    const expected = given[field]
    if (expected === undefined) continue
    const names = isExact
      ? new Set([...Object.keys(expected), ...Object.keys(got[field])])
      : Object.keys(expected)
    for (const name of names) {
      const [one, other] = [expected[name], got[field][name]]
      check(`${field}.${name}`, one === undefined ? '(absent)' : String(one), other ?? '(absent)')
    }
  }
  if (given.value !== undefined) check('value', String(given.value), String(got.value))
  if (given.reason !== undefined) check('reason', given.reason, String(got.reason))
  if (given.events !== undefined) {
    const ids = given.events
    const isMet = isExact
      ? ids.length === got.events.length && ids.every((id, index) => got.events[index] === id)
      : ids.every((id) => got.events.includes(id))
    if (!isMet) found.push({ field: 'events', expected: ids.join(', '), got: got.events.join(', ') })
  }
  return found
}

function missing(
  expectation: Expectation,
  free: readonly Transition[],
  all: readonly Transition[],
  test: LoadedTest,
): Mismatch {
  const { rule, kind, place } = expectation
  const expected = expectationText(expectation, test.start)
  const near = free
    .filter(({ alert }) => alert === rule)
    .map((transition) => ({ transition, wrong: differences(expectation, transition, test) }))
    .toSorted(
      (a, b) =>
        a.wrong.length - b.wrong.length ||
        distance(expectation, a.transition) - distance(expectation, b.transition),
    )
  const [best] = near
  const got = near.slice(0, MAX_SHOWN).map(({ transition }) => transitionText(transition, test.start))
  if (best === undefined) {
    const message = all.some(({ alert }) => alert === rule)
      ? `${rule} did this less often than expected`
      : `${rule} did nothing`
    return { place, message, expected, got }
  }
  const wrong = best.wrong.map(
    ({ field, expected: want, got: actual }) => `${field} is ${actual}, not ${want}`,
  )
  const hint = latenessHint(expectation, best.transition, best.wrong, test)
  const message = best.wrong.some(({ field }) => field === 'kind')
    ? `there is no other ${kind} of ${rule}`
    : wrong.join('; ')
  return { place, message: `${message}${hint}`, expected, got }
}

/** A rule with lateness decides so much later. */
function latenessHint(
  { at, rule }: Expectation,
  got: Transition,
  wrong: readonly Difference[],
  { rules }: LoadedTest,
): string {
  const lateness = rules.find(({ name }) => name === rule)?.lateness ?? 0
  if (at === undefined || lateness === 0 || !wrong.some(({ field }) => field === 'at')) return ''
  if (seconds(got.at) - seconds(at) !== seconds(lateness)) return ''
  return ` (the rule has a lateness of ${sinceStart(lateness, 0)}: it decides so much later)`
}

function distance({ at }: Expectation, transition: Transition): number {
  return at === undefined ? 0 : Math.abs(at - transition.at)
}

/** Whether the state at a time is as expected. */
function stateMismatch(
  expectation: Expectation,
  transitions: readonly Transition[],
  test: LoadedTest,
): readonly Mismatch[] {
  const { kind, rule, at = Infinity, place } = expectation
  const expected = expectationText(expectation, test.start)
  const texts = (found: readonly Transition[]) =>
    found.slice(0, MAX_SHOWN).map((transition) => transitionText(transition, test.start))
  const meets = (transition: Transition) => differences(expectation, transition, test).length === 0
  if (kind === 'never') {
    const fired = transitions.filter((each) => each.kind === 'firing' && meets(each))
    if (fired.length === 0) return []
    return [{ place, message: `${rule} fired`, expected, got: texts(fired) }]
  }
  const active = activeAt(transitions, at)
  const met = active.filter(meets)
  if (kind === 'active') {
    if (met.length > 0) return []
    const others = active.filter(({ alert }) => alert === rule)
    const [other] = others
    const wrong = other === undefined ? [] : differences(expectation, other, test)
    const message =
      wrong.length === 0
        ? `${rule} is not firing then`
        : wrong.map(({ field, expected: want, got }) => `${field} is ${got}, not ${want}`).join('; ')
    return [{ place, message, expected, got: texts(others.length > 0 ? others : active) }]
  }
  if (met.length === 0) return []
  const message = kind === 'none' ? 'alerts are firing then' : `${rule} is firing then`
  return [{ place, message, expected, got: texts(met) }]
}

/** The transitions of the alerts that are firing at a time. */
function activeAt(transitions: readonly Transition[], at: number): readonly Transition[] {
  const active = new Map<string, Transition>()
  for (const transition of transitions) {
    if (seconds(transition.at) > at) break
    const id = JSON.stringify([transition.alert, transition.key])
    if (transition.kind === 'firing') active.set(id, transition)
    if (transition.kind === 'resolved') active.delete(id)
  }
  return [...active.values()]
}

/** `10m firing ErrorBurst { monitor: … }`. */
function expectationText({ kind, rule, at, since, given }: Expectation, start: number): string {
  const parts = [at === undefined ? '' : sinceStart(seconds(at), start), kind, rule ?? '']
  if (given.key !== undefined) parts.push(fieldsText(given.key))
  for (const field of ['labels', 'annotations'] as const) {
    const values = given[field]
    if (values !== undefined) parts.push(`${field} ${fieldsText(values)}`)
  }
  if (given.value !== undefined) parts.push(`value ${given.value}`)
  if (given.reason !== undefined) parts.push(`reason ${given.reason}`)
  if (since !== undefined) parts.push(`since ${sinceStart(seconds(since), start)}`)
  if (given.events !== undefined) parts.push(`events ${given.events.join(', ')}`)
  return parts.filter((part) => part !== '').join(' ')
}
