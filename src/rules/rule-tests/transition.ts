import type { AlertEvent } from '../evaluate/in-memory.ts'
import { sinceStart } from './test-time.ts'

/** Something that the rules of a test emitted. */
export interface Transition {
  readonly kind: 'firing' | 'resolved' | 'unknown' | 'late'
  readonly alert: string
  /** Time, Unix ms. */
  readonly at: number
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly value: number | string | null
  /** When the alert began, or the first late event was recorded, Unix ms. */
  readonly since: number
  readonly reason: string | null
  /** Ids. */
  readonly events: readonly string[]
}

/** Undefined for an event that no test expects: the change of an alert that does not fire. */
export function transitionOf(event: AlertEvent): Transition | undefined {
  const at = Date.parse(event.received)
  const { alert, key } = event.data
  const labels = 'labels' in event.data ? event.data.labels : {}
  const common = { alert, at, key, labels, annotations: {}, value: null, reason: null, events: [] }
  switch (event.type) {
    case 'alert.firing': {
      const { annotations, value, since, events } = event.data
      const ids = events.map(({ id }) => id)
      return { ...common, kind: 'firing', annotations, value, since: Date.parse(since), events: ids }
    }
    case 'alert.resolved': {
      const { annotations, value, since, events, reason } = event.data
      const ids = events.map(({ id }) => id)
      return {
        ...common,
        kind: 'resolved',
        annotations,
        value,
        since: Date.parse(since),
        reason,
        events: ids,
      }
    }
    case 'alert.unknown': {
      const { since, reason } = event.data
      return { ...common, kind: 'unknown', since: Date.parse(since), reason }
    }
    case 'alert.late': {
      const { since, event: first } = event.data
      return { ...common, kind: 'late', since: Date.parse(since), events: [first.id] }
    }
    default:
      return undefined
  }
}

/** `10m firing ErrorBurst { monitor: /v1/monitors/mon_1 } value 3`. */
export function transitionText({ kind, alert, at, key, value, reason }: Transition, start: number): string {
  const parts = [sinceStart(seconds(at), start), kind, alert, fieldsText(key)]
  if (value !== null) parts.push(`value ${value}`)
  if (reason !== null) parts.push(`reason ${reason}`)
  return parts.filter((part) => part !== '').join(' ')
}

/** `{ company: Acme }`; empty without fields. */
export function fieldsText(fields: Readonly<Record<string, unknown>>): string {
  const all = Object.entries(fields).map(([name, value]) => `${name}: ${String(value)}`)
  return all.length === 0 ? '' : `{ ${all.join(', ')} }`
}

/** Times are compared in whole seconds: a deadline may be due a millisecond after a whole one. */
export function seconds(at: number): number {
  return Math.floor(at / 1_000) * 1_000
}
