import type { AlertCause, AlertData } from '../../protocol/alert.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import type { AlertOutput } from './context.ts'
import { hashOf } from './key.ts'
import type { Cause, Fired, RuleState } from './state.ts'

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
export function firedNow(rule: CompiledRule, state: RuleState, value: number | string | null): Fired {
  const { key = {}, annotationParts = [] } = state
  const labels = labelsOf(rule, key)
  const annotations: Record<string, string> = {}
  let index = 0
  for (const [name, template] of rule.annotations) {
    annotations[name] = template.render(annotationParts[index] ?? [], { key, labels, value })
    index++
  }
  return { group: rule.group, labels, annotations, value }
}

/** The data of an alert that fires or ends. */
export function alertData(name: string, state: RuleState, fired: Fired): AlertData {
  const { trueSince = 0, causes = [], key = {} } = state
  const { group, labels, annotations, value } = fired
  return {
    alert: name,
    group,
    key,
    labels,
    annotations,
    value,
    since: rfc3339(trueSince),
    events: causes.map(causeOf),
    episode: episodeOf(name, labels, trueSince),
  }
}

/** An event as alerts name it. */
export function causeOf([source, id, type, time]: Cause): AlertCause {
  return { source, id, type, time }
}

/** Ends the alert of a rule that was removed, if it was firing. */
export function endOfGone(name: string, state: RuleState): AlertOutput | undefined {
  if (state.fired === undefined) return undefined
  const data = { ...alertData(name, state, state.fired), reason: 'rule' as const }
  return { type: 'alert.resolved', source: sourceOfRule(name), data }
}

/** The same for one rule, labels and `since`, in each run. */
function episodeOf(name: string, labels: Values, since: number): string {
  const sorted = Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return hashOf(JSON.stringify([name, sorted, since]))
}
