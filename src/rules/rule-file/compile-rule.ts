import { monitorSource } from '../../protocol/event.ts'
import { isExpression } from '../compiled-rule.ts'
import type { CompiledRule, Window } from '../compiled-rule.ts'
import { keyNames } from './check-meaning.ts'
import type { Duration, RuleEventType } from '../rule.ts'
import type { Draft } from './draft.ts'
import { parseDuration } from '../../protocol/duration.ts'
import { MONITOR_REPORTS } from './event-types.ts'
import { RuleExpressions } from './expressions.ts'
import { lateness, resolveAfter } from './rule-defaults.ts'
import { hash, hashString } from '../../protocol/identity-hash.ts'
import type { Expression } from '../cel/expression.ts'

/**
 * Compiles the expressions of a rule, reports their problems, and fills in its defaults. Undefined if an expression has a
 * problem. If another part has a problem, the result must not be used.
 */
export function compileRule(draft: Draft): CompiledRule | undefined {
  const { rule, group } = draft
  const types = typesOf(rule)
  const compile = new RuleExpressions(draft, types, keyNames(rule))

  const when = compile.expression(rule.when, ['when'])
  const windows = windowsOf(rule, compile)
  const key = Object.entries(rule.key ?? {}).map(([name, text]) => ({
    name,
    value: compile.expression(text, ['key', name], 'key'),
  }))
  const labels = compile.templates('labels')
  const annotations = compile.templates('annotations')
  const resolveWhen = compile.expression(rule.resolve?.when, ['resolve', 'when'], 'end')
  compile.checkBroken()
  if (compile.hasFailed) return undefined

  const wait = ms(rule.for ?? 0)
  const isOrdered = windows.length > 0 || wait > 0 || compile.watchesChanges
  const compiled = {
    name: rule.alert,
    group,
    types,
    when,
    windows,
    // The order of names in a file has no meaning.
    key: key.flatMap(({ name, value }) => (value === undefined ? [] : [{ name, value }])).toSorted(byName),
    isPerEvent: rule.per === 'event',
    labels,
    annotations,
    resolve: { when: resolveWhen, after: resolveAfter(rule) },
    for: wait,
    keepFiringFor: ms(rule.keep_firing_for ?? 0),
    lateness: lateness(rule, isOrdered),
    backfill: rule.backfill ?? 'ignore',
  } satisfies Omit<CompiledRule, 'version'>
  return { ...compiled, version: versionOf(compiled) }
}

function typesOf(rule: Draft['rule']): ReadonlySet<RuleEventType> | undefined {
  const types = rule.absence === undefined ? rule.on : (rule.absence.on ?? MONITOR_REPORTS)
  return types === undefined ? undefined : new Set(types)
}

function windowsOf(rule: Draft['rule'], compile: RuleExpressions): Window[] {
  const windows: (Window | undefined)[] = []
  const { count, rate, distinct, spike, percentile, changed, absence, sequence } = rule
  const timed = <Kind extends string>(kind: Kind, { when, over }: { when?: string; over: Duration }) => ({
    kind,
    when: compile.expression(when, [kind, 'when']),
    over: ms(over),
  })
  /** Undefined if the value has a problem. */
  const valued = <Kind extends string>(
    kind: Kind,
    given: { when?: string; value: string },
    purpose: 'value' | 'number' = 'value',
  ) => {
    const when = compile.expression(given.when, [kind, 'when'])
    const value = compile.expression(given.value, [kind, 'value'], purpose)
    return value && { kind, when, value }
  }
  if (count !== undefined) windows.push({ ...timed('count', count), gte: count.gte })
  if (rate !== undefined) windows.push({ ...timed('rate', rate), per: ms(rate.per), gte: rate.gte })
  if (distinct !== undefined) {
    const values = valued('distinct', distinct)
    windows.push(values && { ...values, over: ms(distinct.over), gte: distinct.gte })
  }
  if (spike !== undefined) {
    const { factor, min = Math.ceil(factor) } = spike
    windows.push({ ...timed('spike', spike), factor, min })
  }
  for (const kind of ['sum', 'avg', 'min', 'max'] as const) {
    const given = rule[kind]
    const numbers = given && valued(kind, given, 'number')
    windows.push(numbers && { ...numbers, over: ms(given.over), gte: given.gte, lte: given.lte })
  }
  if (percentile !== undefined) {
    const { over, gte, lte, p } = percentile
    const numbers = valued('percentile', percentile, 'number')
    windows.push(numbers && { ...numbers, over: ms(over), gte, lte, p })
  }
  if (rule.new !== undefined) {
    const values = valued('new', rule.new)
    windows.push(values && { ...values, within: ms(rule.new.within) })
  }
  if (changed !== undefined) windows.push(valued('changed', changed))
  if (absence !== undefined) {
    const of = absence.of && new Set(absence.of.map(sourceOf))
    windows.push({ kind: 'absence', within: ms(absence.within), of })
  }
  if (sequence !== undefined) {
    const steps = sequence.steps.map((step, index) => compile.expression(step, ['sequence', 'steps', index]))
    const notThen = compile.expression(sequence.not_then, ['sequence', 'not_then'])
    windows.push({
      kind: 'sequence',
      steps: steps.filter((step) => step !== undefined),
      notThen,
      within: ms(sequence.within),
    })
  }
  return windows.filter((window) => window !== undefined)
}

/** A source is a path; anything else is the id of a monitor. */
function sourceOf(idOrSource: string): string {
  return idOrSource.startsWith('/') ? idOrSource : monitorSource(idOrSource)
}

function ms(duration: Duration): number {
  return parseDuration(duration) ?? 0
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1
}

/**
 * A hash of the parts of a rule that its state depends on, 8 hexadecimal digits. The same rule has the same one in each process and
 * in each version of this package: a change here drops the state of all rules.
 */
function versionOf(rule: Omit<CompiledRule, 'version'>): string {
  const parts = [
    rule.types === undefined ? null : [...rule.types].toSorted(),
    trimmedText(rule.when),
    rule.windows.map(windowParts),
    rule.key.map(({ name, value }) => [name, trimmedText(value)]),
    rule.isPerEvent,
    trimmedText(rule.resolve.when),
    rule.lateness,
    rule.backfill,
    [...rule.labels].map(([name, template]) => [name, template.text]).toSorted(),
  ]
  hashString(JSON.stringify(parts))
  return ((hash[0] ?? 0) >>> 0).toString(16).padStart(8, '0')
}

/** The settings of a window, in the order in which `windowsOf` writes them. */
function windowParts(window: Window): readonly unknown[] {
  return Object.values(window).map(partOf)
}

function partOf(setting: unknown): unknown {
  if (isExpression(setting)) return trimmedText(setting)
  if (Array.isArray(setting)) return setting.map(partOf)
  return setting instanceof Set ? [...setting].toSorted() : (setting ?? null)
}

function trimmedText(expression: Expression | undefined): string | null {
  return expression === undefined ? null : expression.text.trim()
}
