import { contentHash, unorderedHash } from '../../protocol/identity.ts'
import type { Json } from '../../protocol/json.ts'
import { Problem } from '../cel/expression.ts'
import type { EventView, Expression } from '../cel/expression.ts'
import { placedAt } from './event-time.ts'
import type { RuleInput } from './event-time.ts'
import { keyText, MAX_TEXT, MAX_VALUE_TEXT, truncated } from './key.ts'
import type { PreparedRule } from './prepared-rule.ts'
import type { Cause, MatchedEvent, MatchResult, Parts } from './state.ts'
import { matchOf } from './windows/windows.ts'

/** The number of problems while an event is evaluated for a rule. */
export interface ProblemCounts {
  missing: number
  errors: number
}

/** The evaluation of an event for a rule: the values of its key, and the matched event for that key. */
export interface KeyedMatch {
  readonly key: readonly (readonly [name: string, value: string])[]
  readonly event: MatchedEvent
}

/** Greater numbers might have no finite sum. */
const MAX_NUMBER = 1e300

const NOTHING: readonly MatchResult[] = [{ matches: null }]
const MATCH: readonly MatchResult[] = [{ matches: [] }]

/** Evaluates the conditions of a rule. Undefined if the event cannot change anything of the rule. */
export function matchEvent(
  prepared: PreparedRule,
  event: RuleInput,
  view: EventView,
  counts: ProblemCounts,
): KeyedMatch | undefined {
  const { rule, watched } = prepared
  if (rule.backfill === 'ignore' && event.backfill === true) return undefined
  const results =
    watched.length === 0 ? plainResults(prepared, view, counts) : resultsByCombination(prepared, view, counts)
  if (results === NOTHING) return undefined
  const key = keyOf(prepared, event, view, counts)
  if (key === undefined) return undefined
  const parts = results.some(({ matches }) => matches !== null) ? partsOf(prepared, view) : []
  const matched: MatchedEvent = {
    time: placedAt(event),
    cause: causeFor(event),
    results,
    ...(watched.length > 0 && { watchedHashes: watched.map((each) => hashOfValue(each.evaluate(view))) }),
    ...(parts.length > 0 && { annotationParts: parts }),
    // Only runs come in several revisions.
    ...(event.type === 'task_run.state' && { identity: contentHash([event.source, event.id]) }),
  }
  return { key, event: matched }
}

/** An event as a state keeps it. */
function causeFor({ source, id, type, time }: RuleInput): Cause {
  const shorten = (text: string) => truncated(text, MAX_TEXT)
  return [shorten(source), shorten(id), type, time === null ? null : shorten(time)]
}

function plainResults(
  prepared: PreparedRule,
  view: EventView,
  counts: ProblemCounts,
): readonly MatchResult[] {
  const { rule, windows } = prepared
  const isMatch = rule.when === undefined || isTrue(rule.when.evaluate(view), counts)
  if (rule.resolve.when === undefined) {
    if (!isMatch) return NOTHING
    if (windows.length === 0) return MATCH
  }
  return resultsOrNothing([resultOf(prepared, view, counts, undefined, isMatch)])
}

function resultsByCombination(
  prepared: PreparedRule,
  view: EventView,
  counts: ProblemCounts,
): readonly MatchResult[] {
  const count = 1 << prepared.watched.length
  return Array.from({ length: count }, (_, combination) => {
    // A failure is counted once.
    const own = combination === 0 ? counts : { missing: 0, errors: 0 }
    const { when } = prepared.rule
    const isMatch = when === undefined || isTrue(evaluated(prepared, when, view, combination), own)
    return resultOf(prepared, view, own, combination, isMatch)
  })
}

function resultsOrNothing(results: readonly MatchResult[]): readonly MatchResult[] {
  return results.every(({ matches, resolves }) => matches === null && resolves === undefined)
    ? NOTHING
    : results
}

function resultOf(
  prepared: PreparedRule,
  view: EventView,
  counts: ProblemCounts,
  combination: number | undefined,
  isMatch: boolean,
): MatchResult {
  const { rule } = prepared
  const evaluate = (expression: Expression) => evaluated(prepared, expression, view, combination)
  const holds = (expression: Expression) => isTrue(evaluate(expression), counts)
  const valueOf = (expression: Expression) => {
    const value = evaluate(expression)
    if (!(value instanceof Problem)) return value
    counted(value, counts)
    return undefined
  }
  const numberOf = (expression: Expression) => {
    const value = valueOf(expression)
    if (value === undefined) return undefined
    // JSON does not keep the sign of 0.
    if (typeof value === 'number' && Math.abs(value) <= MAX_NUMBER) return value + 0
    counted(new Problem(value === null ? 'missing' : 'error', 'no number'), counts)
    return undefined
  }
  const reading = { holds, valueOf, numberOf }
  const matches = isMatch ? rule.windows.map((window) => matchOf(window, reading)) : null
  const isNothing = matches !== null && matches.length > 0 && matches.every((match) => match === null)
  const isResolved = rule.resolve.when !== undefined && holds(rule.resolve.when)
  return { matches: isNothing ? null : matches, ...(isResolved && { resolves: true as const }) }
}

function evaluated(
  { watchedIndexes }: PreparedRule,
  expression: Expression,
  view: EventView,
  combination: number | undefined,
): Json | Problem {
  if (combination === undefined) return expression.evaluate(view)
  const indexes = watchedIndexes.get(expression)
  if (indexes === undefined) return expression.evaluate(view)
  return expression.evaluate(
    view,
    indexes.map((index) => (combination & (1 << index)) !== 0),
  )
}

function keyOf(
  { rule, absence }: PreparedRule,
  event: RuleInput,
  view: EventView,
  counts: ProblemCounts,
): KeyedMatch['key'] | undefined {
  if (absence !== undefined) return [['source', event.source]]
  const key: [string, string][] = []
  for (const { name, value: expression } of rule.key) {
    const value = expression.evaluate(view)
    const text = keyText(value)
    if (text === undefined) {
      if (value instanceof Problem) counted(value, counts)
      else counts.missing++
      return undefined
    }
    key.push([name, text])
  }
  return rule.isPerEvent ? [...key, ['event', event.id], ['source', event.source]] : key
}

/** The values of a key as its alerts show them. */
export function displayKey(key: KeyedMatch['key']): Readonly<Record<string, string>> {
  return Object.fromEntries(key.map(([name, value]) => [name, truncated(value, MAX_VALUE_TEXT)]))
}

function partsOf({ rule }: PreparedRule, view: EventView): Parts {
  const parts = Array.from(rule.annotations.values(), (template) =>
    template.fromEvent(view).map((part) => truncated(part, MAX_TEXT)),
  )
  return parts.every((each) => each.length === 0) ? [] : parts
}

function isTrue(value: Json | Problem, counts: ProblemCounts): boolean {
  if (value === true) return true
  if (value instanceof Problem) counted(value, counts)
  return false
}

function counted({ kind }: Problem, counts: ProblemCounts): void {
  if (kind === 'missing') counts.missing++
  else counts.errors++
}

function hashOfValue(value: Json | Problem): string | null {
  return value instanceof Problem ? null : unorderedHash(value)
}
