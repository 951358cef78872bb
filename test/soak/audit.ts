import type { ServiceRecords } from 'rivulet/service'
import type { Archive, ArchivedEntry } from './archive.ts'
import { keyOf } from './effects.ts'
import type { Tally } from './effects.ts'
import { factOf, isCounted } from './facts.ts'

/** The result of a soak: the service's database against the log's entries, and those against the effects. */
export interface Audit {
  /** Number of ended runs and of the monitor's events in the service's database. */
  readonly events: number
  /** Number of events without an entry, and of entries without an effect. */
  readonly lost: number
  /** Number of repeated effects of the consumer that has each effect once. */
  readonly doubled_effects: number
  /** Number of entries with the identity and the revision of an earlier one. */
  readonly recorded_twice: number
  /** Number of repeated calls of the handler that has each effect at least once. */
  readonly redelivered: number
  /** Number of entries that are more complete than an earlier one. */
  readonly revisions: number
}

/** What is compared. */
export interface Evidence {
  readonly records: ServiceRecords
  readonly archive: Archive
  readonly billing: { readonly calls: Tally; readonly effects: Tally }
  readonly ledger: { readonly effects: Tally }
}

/** The events in the service's database. */
export function factsOf({ runs, monitor_events }: ServiceRecords): ReadonlySet<string> {
  const ended = runs.filter(hasEnded)
  return new Set([
    ...ended.map(({ run_id, status }) =>
      factOf({ source: `/v1/tasks/runs/${run_id}`, id: `${run_id}:${status}` }),
    ),
    ...monitor_events.map(({ monitor_id, id }) => factOf({ source: `/v1/monitors/${monitor_id}`, id })),
  ])
}

/** Whether the run is one of the facts. */
export function hasEnded({ status }: ServiceRecords['runs'][number]): boolean {
  return status === 'completed' || status === 'failed'
}

/** The entries that have to have an effect. */
export function countedEntries({ entries }: Archive): readonly ArchivedEntry[] {
  return entries.filter(({ type }) => isCounted(type))
}

/** Number of entries that have to have an effect and have none. */
export function withoutEffect(entries: readonly ArchivedEntry[], effects: Tally): number {
  return entries.filter((entry) => isCounted(entry.type) && !effects.has(keyOf(entry))).length
}

export function auditOf({ records, archive, billing, ledger }: Evidence): Audit {
  const facts = factsOf(records)
  const entries = countedEntries(archive)
  const recorded = new Set(entries.map(factOf))
  const keys = entries.map(keyOf)
  const missing = [...facts].filter((fact) => !recorded.has(fact)).length
  const ineffective = [billing, ledger].map(({ effects }) => keys.filter((key) => !effects.has(key)).length)
  return {
    events: facts.size,
    lost: ineffective.reduce((sum, count) => sum + count, missing),
    doubled_effects: ledger.effects.repeated,
    recorded_twice: keys.length - new Set(keys).size,
    redelivered: billing.calls.repeated,
    revisions: entries.filter(({ revision }) => revision > 1).length,
  }
}
