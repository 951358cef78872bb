import { ArgumentError } from '../../protocol/argument-error.ts'
import type { AlertCause } from '../../protocol/alert.ts'
import { checkObject, checkText } from '../../protocol/check.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { Json } from '../../protocol/json.ts'
import { explain, Problem, viewOf } from '../cel/index.ts'
import type { Explanation, Expression } from '../cel/index.ts'
import { windowExpressions } from '../compiled-rule.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { placedAt } from '../evaluate/event-time.ts'
import type { RuleInput } from '../evaluate/event-time.ts'
import { matchEvent, displayKey } from '../evaluate/match-event.ts'
import { prepareRule, readsType } from '../evaluate/prepared-rule.ts'
import { checkRuleSet } from '../check-arguments.ts'
import { compiledRules } from '../rule-set.ts'
import type { RuleSet } from '../rule-set.ts'

/** A part of an expression, and its value for an event. */
interface ExplainedPart {
  readonly text: string
  /** Null if it has none, see `problem`. */
  readonly value: Json
  /** Why it has no value: the path of a field that is missing, or the message of an error. */
  readonly problem: { readonly kind: 'missing' | 'error'; readonly detail: string } | null
  /** The parts that it consists of, in order. */
  readonly parts: readonly ExplainedPart[]
}

/** The evaluation of an event for a rule. */
export interface RuleExplanation {
  /** The name of the rule. */
  readonly alert: string
  readonly event: AlertCause
  /** The time at which the rule places the event, in RFC 3339. */
  readonly at: string
  /**
   * Why the rule leaves the event out: it does not read the type, the event is of a walk into the past (`backfill: ignore`), or a
   * value of the key is missing. Null if it does not.
   */
  readonly ignored: 'type' | 'backfill' | 'key' | null
  /** The values of the key, by name; null if the event changes nothing of the rule. */
  readonly key: Readonly<Record<string, string>> | null
  /**
   * Whether the event matches: counts for a window of the rule, or begins the alert of one without windows. `if changed` if that depends on
   * the key's last event.
   */
  readonly matches: 'yes' | 'no' | 'if changed'
  /** Whether `resolve.when` holds. */
  readonly resolves: boolean
  /** Each expression of the rule, such as `when`, `count.when` or `key.monitor`, with its parts. `changed(…)` is false here. */
  readonly expressions: readonly { readonly name: string; readonly part: ExplainedPart }[]
}

/**
 * Evaluates each part of the expressions of a rule for one event. It has no state: it evaluates the event, and does not decide whether an
 * alert fires.
 *
 * @example
 * ```ts
 * import { memoryStore, openLog } from 'rivulet/log'
 * import { explainRule, loadRules } from 'rivulet/rules'
 *
 * await using log = await openLog(memoryStore())
 * const { entries } = await log.read(await log.positionAt('start'))
 * const rules = await loadRules('rules.yaml')
 * for (const entry of entries) console.log(explainRule(rules, 'ErrorBurst', entry).matches)
 * ```
 *
 * @param alert The name of the rule.
 * @throws ArgumentError for an unknown name.
 */
export function explainRule(rules: RuleSet, alert: string, event: RuleInput): RuleExplanation {
  checkRuleSet(rules)
  checkText('alert', alert)
  checkObject('event', event)
  for (const name of ['source', 'id', 'type'] as const) {
    if (typeof event[name] !== 'string') throw new ArgumentError(`event.${name}`, 'a text', event[name])
  }
  const rule = compiledRules(rules).find(({ name }) => name === alert)
  if (rule === undefined) throw new ArgumentError('alert', `one of ${rules.names.join(', ')}`, alert)
  const prepared = prepareRule(rule)
  const view = viewOf(event)
  const { source, id, type, time } = event
  const isRead = readsType(rule, type)
  const isIgnored = rule.backfill === 'ignore' && event.backfill === true
  const counts = { missing: 0, errors: 0 }
  const keyed = isRead ? matchEvent(prepared, event, view, counts) : undefined
  const results = keyed?.event.results ?? []
  const matching = results.filter(({ matches }) => matches !== null).length
  const expressions = namedExpressions(rule).map(([name, expression]) => ({
    name,
    part: explained(explain(expression, viewOf(event))),
  }))
  const hasKey = expressions.every(
    ({ name, part: { value } }) =>
      !name.startsWith('key.') || ['string', 'number', 'boolean'].includes(typeof value),
  )
  return {
    alert,
    event: { source, id, type, time },
    at: rfc3339(placedAt(event)),
    ignored: !isRead ? 'type' : isIgnored ? 'backfill' : hasKey ? null : 'key',
    key: keyed === undefined ? null : displayKey(keyed.key),
    matches: matching === 0 ? 'no' : matching === results.length ? 'yes' : 'if changed',
    resolves: results[0]?.resolves === true,
    expressions,
  }
}

function explained({ text, value, parts }: Explanation): ExplainedPart {
  const of = { text, parts: parts.map(explained) }
  if (!(value instanceof Problem)) return { ...of, value, problem: null }
  const { kind, detail } = value
  return { ...of, value: null, problem: { kind, detail } }
}

function namedExpressions(rule: CompiledRule): readonly (readonly [name: string, expression: Expression])[] {
  const named: (readonly [string, Expression | undefined])[] = [['when', rule.when]]
  for (const window of rule.windows) named.push(...windowExpressions(window))
  for (const { name, value } of rule.key) named.push([`key.${name}`, value])
  named.push(['resolve.when', rule.resolve.when])
  return named.flatMap(([name, expression]) =>
    expression === undefined ? [] : [[name, expression] as const],
  )
}
