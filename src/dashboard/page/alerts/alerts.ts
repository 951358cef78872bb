import { isObject } from '../evidence/evidence.ts'
import { instantOf } from '../parts/format.ts'
import type { AlertRow } from '../rows.ts'
import type { OpenAlert } from 'rivulet/rules'
import type { DashboardStatus } from '../../status.ts'

/** States of alerts in the order of their urgency. */
export type AlertState = 'firing' | 'pending' | 'unknown' | 'resolved'

/** An alert as the page shows it. */
export interface ShownAlert {
  readonly id: string
  readonly state: AlertState
  readonly name: string
  /** Labels without `alertname`. */
  readonly labels: readonly (readonly [name: string, value: string])[]
  readonly summary: string | undefined
  readonly description: string | undefined
  readonly value: number | string | null
  /** When the condition began to hold, in Unix ms. */
  readonly since: number | undefined
  /** When it was resolved, in Unix ms; undefined for another state. */
  readonly until: number | undefined
  /** The reason why it is over, or why its state is unknown. */
  readonly reason: string | undefined
}

/** How long resolved alerts are shown, and unknown alerts that no state of a rule can make known again, in ms. */
const LATELY = 24 * 3_600_000

/** The status of the rules, and when it was read, in Unix ms. */
export type RulesAt = Pick<DashboardStatus, 'now' | 'rules'>

/**
 * Whether it is still not known whether a condition holds. No event says that it is known again, so the state of the rules decides,
 * once it is newer than the row. A rule without a state may belong to another process, or may be removed. No state shows either that a rule
 * as a whole no longer misses entries. Such rows are shown for a day.
 */
function unknownNow(status: RulesAt | undefined, now: number): (row: AlertRow) => boolean {
  const unknown = new Set<string>()
  for (const each of status?.rules.alerts ?? []) if (each.unknown !== null) unknown.add(identityOf(each))
  const names = new Set(status?.rules.rules.map(({ alert }) => alert))
  return (row) => {
    if (row.unknown === null) return false
    if (status === undefined || status.rules.isCut || row.truncated === true) return true
    if (row.changed >= status.now || unknown.has(identityOf(row))) return true
    if (row.unknown === 'keys') return true
    const isOfKey = names.has(row.alert) && Object.keys(row.key).length > 0
    return !isOfKey && now - row.changed < LATELY
  }
}

/** A rule and a key, as text. */
function identityOf({ alert, key }: Pick<AlertRow, 'alert' | 'key'>): string {
  return JSON.stringify([alert, [...texts(key)].toSorted(([a], [b]) => (a < b ? -1 : 1))])
}

/** Alerts by state: firing, pending, unknown, and those that were resolved in the last 24 hours; the latest first. */
export function alertsByState(
  rows: Iterable<readonly [key: string, row: AlertRow]>,
  status: RulesAt | undefined,
  now: number,
): Readonly<Record<AlertState, readonly ShownAlert[]>> {
  const isUnknown = unknownNow(status, now)
  const shown = [...rows]
    .filter(([, row]) => row.state !== 'unknown' || isUnknown(row))
    .map(([key, row]) => fromRow(key, row, isUnknown(row)))
    .concat(status?.rules.alerts.filter(isPending).map(fromOpen) ?? [])
  const of = (state: AlertState) =>
    shown.filter((alert) => alert.state === state).toSorted((a, b) => time(b) - time(a))
  return {
    firing: of('firing'),
    pending: of('pending'),
    unknown: of('unknown'),
    resolved: of('resolved').filter(({ until }) => until === undefined || now - until < LATELY),
  }
}

function time({ until, since }: ShownAlert): number {
  return until ?? since ?? 0
}

function isPending({ state }: OpenAlert): boolean {
  return state === 'pending'
}

function fromRow(key: string, row: AlertRow, isUnknown: boolean): ShownAlert {
  const annotations = texts(row.annotations)
  return {
    id: key,
    state: row.state,
    name: row.alert,
    labels: labelsOf(row.labels),
    summary: annotations.get('summary'),
    description: annotations.get('description'),
    value: row.value,
    since: instantOf(row.since),
    until: row.state === 'resolved' ? row.changed : undefined,
    reason: (row.state === 'resolved' ? row.resolved : isUnknown ? row.unknown : null) ?? undefined,
  }
}

function fromOpen(alert: OpenAlert): ShownAlert {
  const annotations = texts(alert.annotations)
  return {
    id: JSON.stringify([alert.alert, alert.key]),
    state: 'pending',
    name: alert.alert,
    labels: labelsOf(alert.labels ?? alert.key),
    summary: annotations.get('summary'),
    description: annotations.get('description'),
    value: alert.value,
    since: instantOf(alert.since),
    until: undefined,
    reason: undefined,
  }
}

function labelsOf(labels: unknown): (readonly [name: string, value: string])[] {
  return [...texts(labels)].filter(([name]) => name !== 'alertname')
}

function texts(value: unknown): ReadonlyMap<string, string> {
  if (!isObject(value)) return new Map()
  return new Map(Object.entries(value).map(([name, each]) => [name, String(each)]))
}
