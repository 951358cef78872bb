import { ArgumentError } from '../../protocol/argument-error.ts'
import { familyOf } from '../../protocol/event-types.ts'
import type { EventFamily } from '../../protocol/event-types.ts'
import type { Expression } from '../cel/expression.ts'
import { windowExpressions } from '../compiled-rule.ts'
import type { CompiledRule, Window } from '../compiled-rule.ts'
import { keyPrefix } from './key.ts'
import type { WindowKind } from './windows/window.ts'
import { windowsOf } from './windows/windows.ts'

/** Maximum number of different `changed()` of a rule, since a held event keeps its result for each combination. */
const MAX_WATCHED = 3

/** A rule, with values that each evaluation needs. */
export interface PreparedRule {
  readonly rule: CompiledRule
  /** The beginning of the keys of its states. */
  readonly prefix: string
  readonly windows: readonly WindowKind[]
  readonly absence: Window<'absence'> | undefined
  /** `match`: each event that matches is a pulse. `pulse`, `hold`: the kind of its windows. */
  readonly family: 'match' | 'pulse' | 'hold'
  /** How long an event stays in the longest holding window that it matches, in ms. */
  readonly spanOf: (matches: readonly unknown[]) => number
  /** How far back the windows of the rule look, in ms; 0 for a rule without windows. */
  readonly reach: number
  /** Whether a gap of a source concerns the rule's state for that source. */
  readonly readsGaps: boolean
  /** The expressions whose values are compared with those of the previous event. */
  readonly watched: readonly Expression[]
  /** For each expression that has such calls, the index of each call in `watched`. */
  readonly watchedIndexes: ReadonlyMap<Expression, readonly number[]>
}

export function prepareRule(rule: CompiledRule): PreparedRule {
  const windows = windowsOf(rule)
  const [first] = windows
  const watched: Expression[] = []
  const watchedIndexes = new Map<Expression, readonly number[]>()
  for (const expression of expressionsOf(rule)) {
    if (expression.watched.length === 0) continue
    watchedIndexes.set(
      expression,
      expression.watched.map((each) => {
        const known = watched.findIndex(({ text }) => text === each.text)
        return known >= 0 ? known : watched.push(each) - 1
      }),
    )
  }
  if (watched.length > MAX_WATCHED)
    throw new ArgumentError(rule.name, `at most ${MAX_WATCHED} different changed(…)`, watched.length)
  const absence = rule.windows.find((window) => window.kind === 'absence')
  const family = first === undefined ? 'match' : first.holds === undefined ? 'pulse' : 'hold'
  const spans = rule.windows.map((window) => ('over' in window ? window.over : 0))
  const spanOf = (matches: readonly unknown[]) =>
    Math.max(0, ...spans.filter((_, index) => (matches[index] ?? null) !== null))
  const reach = Math.max(0, ...rule.windows.map(reachOf))
  const readsGaps = isOfSource(rule) && absence === undefined && Math.max(reach, rule.for) > 0
  return {
    rule,
    prefix: keyPrefix(rule),
    windows,
    absence,
    family,
    spanOf,
    reach,
    readsGaps,
    watched,
    watchedIndexes,
  }
}

/** Whether each state of the rule is that of one source, which may have gaps. To a rule that names `stream.gap`, a gap is only an event. */
function isOfSource({ key, isPerEvent, types }: CompiledRule): boolean {
  const [first] = key
  return (
    key.length === 1 &&
    first?.value.text.trim() === 'source' &&
    !isPerEvent &&
    types?.has('stream.gap') !== true
  )
}

function reachOf(window: Window): number {
  switch (window.kind) {
    case 'spike':
      return 2 * window.over
    case 'sequence':
      return window.notThen === undefined ? window.within : 2 * window.within
    case 'new':
      return window.within
    // They go by one event each, however old it is.
    case 'changed':
    case 'absence':
      return 0
    default:
      return window.over
  }
}

/** Families of types of which a rule without `types` reads none. */
const UNREAD: ReadonlySet<string> = new Set<EventFamily>(['alert', 'gateway', 'log', 'source'])

/** Whether the rule reads events of a type. */
export function readsType({ types }: CompiledRule, type: string): boolean {
  return types === undefined ? !UNREAD.has(familyOf(type)) : types.has(type)
}

/** Whether events of the rule are held until none can come before them. */
export function isHeld({ rule }: PreparedRule): boolean {
  return rule.lateness > 0
}

function* expressionsOf(rule: CompiledRule): Iterable<Expression> {
  const { when, windows, key, resolve } = rule
  for (const each of [when, resolve.when, ...key.map(({ value }) => value)]) if (each) yield each
  for (const window of windows) for (const [, expression] of windowExpressions(window)) yield expression
}
