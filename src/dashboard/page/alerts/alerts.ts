import { isObject } from '../evidence/evidence.ts'
import { instantOf } from '../parts/format.ts'
import type { AlertRow } from '../rows.ts'

/** An alert as the page shows it. */
export interface ShownAlert {
  readonly id: string
  readonly state: AlertRow['state']
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
  /** Whether its rule had all events when it began. */
  readonly isComplete: boolean
}

/** How long resolved alerts are shown, in ms. */
const LATELY = 24 * 3_600_000

/** Alerts by state: firing, pending, unknown, and those that were resolved in the last 24 hours; the latest first. */
export function alertsByState(
  rows: Iterable<readonly [key: string, row: AlertRow]>,
  now: number,
): Readonly<Record<AlertRow['state'], readonly ShownAlert[]>> {
  const shown = Array.from(rows, ([key, row]) => fromRow(key, row))
  const of = (state: AlertRow['state']) =>
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

function fromRow(key: string, row: AlertRow): ShownAlert {
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
    reason: row.resolved ?? row.unknown ?? undefined,
    // Programs can append an alert without it.
    isComplete: row.complete !== false,
  }
}

function labelsOf(labels: unknown): (readonly [name: string, value: string])[] {
  return [...texts(labels)].filter(([name]) => name !== 'alertname')
}

function texts(value: unknown): ReadonlyMap<string, string> {
  if (!isObject(value)) return new Map()
  return new Map(Object.entries(value).map(([name, each]) => [name, String(each)]))
}
