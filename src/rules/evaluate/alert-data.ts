import type { AlertCause, AlertData, AlertUnknown } from '../../protocol/alert.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import type { AlertOutput } from './context.ts'
import { hashOf } from './key.ts'
import type { Announced, Cause, Fired, RuleState } from './state.ts'

type Values = Readonly<Record<string, string>>

/** Maximum number of events that an alert names. */
export const MAX_CAUSES = 20

/** The source of the events of a rule. */
export function sourceOfRule(name: string): string {
  return `/rules/${name}`
}

/** The labels of an alert: the name of its rule, the values of its key, and the rule's own. */
export function labelsOf({ name, labels }: CompiledRule, key: Values): Values {
  const all: Record<string, string> = { alertname: name, ...key }
  for (const [label, template] of labels) all[label] = template.render([], { key, labels: {}, value: null })
  return all
}

/** The data of an alert as it is now. */
export function firedNow(
  rule: CompiledRule,
  state: RuleState,
  value: number | string | null,
  isComplete: boolean,
): Fired {
  const { key = {}, annotationParts = [] } = state
  const labels = labelsOf(rule, key)
  const annotations: Record<string, string> = {}
  let index = 0
  for (const [name, template] of rule.annotations) {
    annotations[name] = template.render(annotationParts[index] ?? [], { key, labels, value })
    index++
  }
  return { group: rule.group, labels, annotations, value, ...(!isComplete && { complete: false }) }
}

/** The data of an alert as its events have it. */
export function alertData(name: string, state: RuleState, fired: Fired | Announced): AlertData {
  const { causes = [], key = {} } = state
  const { group, labels, annotations, value, complete = true } = fired
  const since = state.trueSince ?? ('since' in fired ? fired.since : 0)
  return {
    alert: name,
    group,
    key,
    labels,
    annotations,
    value,
    complete,
    since: rfc3339(since),
    events: causes.map(causeOf),
    episode: episodeOf(name, labels, since),
  }
}

/** An event as alerts name it. */
export function causeOf([source, id, type, time]: Cause): AlertCause {
  return { source, id, type, time }
}

/** The data of an alert when it last changed, without its rule. A state of an earlier version may only have its key. */
export function dataOf(name: string, { fired, announced, key, trueSince, lastReport }: RuleState): Announced {
  const since = trueSince ?? announced?.since ?? lastReport ?? 0
  const data = fired ??
    announced ?? { group: null, labels: { alertname: name, ...key }, annotations: {}, value: null }
  return { ...data, since }
}

/** It is not known whether a rule holds. */
export function unknownOutput(
  rule: CompiledRule,
  reason: AlertUnknown['reason'],
  key: Values,
  since: number,
): Extract<AlertOutput, { type: 'alert.unknown' }> {
  const { name, group } = rule
  const data = { alert: name, group, key, labels: labelsOf(rule, key), reason, since: rfc3339(since) }
  return { type: 'alert.unknown', source: sourceOfRule(name), data }
}

/** The same for one rule, labels and `since`, in each run. */
function episodeOf(name: string, labels: Values, since: number): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return hashOf(JSON.stringify([name, sorted, since]))
}
