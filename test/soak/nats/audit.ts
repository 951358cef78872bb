import type { ServiceRecords } from 'rivulet/service'
import type { StoredEntry } from '../../real/nats/audit.ts'
import { factsOf } from '../audit.ts'
import { keyOf } from '../effects.ts'
import { factOf, isCounted } from '../facts.ts'
import { rollingHash } from './rolling-hash.ts'
import { HASH_BASIS, keyOfTotals, OUTPUT_EVERY } from './totals.ts'
import type { Totals } from './totals.ts'

/** What is compared. */
export interface NatsEvidence {
  /** What the service has sent, in its order. */
  readonly records: ServiceRecords
  /** What the server has, in its order. */
  readonly entries: readonly StoredEntry[]
  /** The effects of the consumer that has each effect at least once, in their order: an entry's key for each. */
  readonly billed: readonly string[]
  /** The effects of the one that has each effect once. */
  readonly booked: readonly string[]
  /** How often the log had an entry as acknowledged that had no effect by then. */
  readonly ahead: number
  /** The states of the process, by key. */
  readonly states: ReadonlyMap<string, Totals>
}

/** The service's record against the stream, and the stream against what readers have made of it. All but `events` should be 0. */
export interface NatsAudit {
  readonly events: number
  /** Number of events without an entry. */
  readonly lost: number
  /** Number of entries with the identity and the revision of an earlier one. */
  readonly doubled: number
  /** Number of entries with the identity of an earlier one to which they add nothing. */
  readonly recorded_twice: number
  /**
   * Number of entries of a monitor that come after a later one of the service, and of revisions that come after a later one. A webhook that comes
   * before its stream is recorded when it comes, so it has no place in that order.
   */
  readonly reordered: number
  /** Number of keys and outputs of the process that are not those of one run over the entries, or do not have the service's events. */
  readonly process_diverged: number
  /** Number of entries without an effect of a consumer. */
  readonly unhandled: number
  /** Number of entries that were acknowledged without an effect. */
  readonly acknowledged_unhandled: number
  /** Number of effects beyond the first one of an entry, where there should be one. */
  readonly doubled_effects: number
}

/** Of the process's own entries. */
const OUTPUT = '/processes/totals'

export function natsAuditOf(evidence: NatsEvidence): NatsAudit {
  const { records, billed, booked, ahead } = evidence
  const facts = factsOf(records)
  const entries = evidence.entries.filter(({ type }) => isCounted(type))
  const recorded = new Set(entries.map(factOf))
  const keys = entries.map(keyOf)
  const output = evidence.entries.filter(({ source }) => source === OUTPUT)
  return {
    events: facts.size,
    lost: [...facts].filter((fact) => !recorded.has(fact)).length,
    doubled: keys.length - new Set(keys).size,
    recorded_twice: repetitions(evidence.entries),
    reordered: inversions(entries, records) + revisionsOutOfOrder(entries),
    process_diverged: divergence(entries, output, evidence.states, facts),
    unhandled: withoutEffect(keys, billed) + withoutEffect(keys, booked),
    acknowledged_unhandled: ahead,
    doubled_effects: booked.length - new Set(booked).size,
  }
}

function withoutEffect(keys: readonly string[], effects: readonly string[]): number {
  const done = new Set(effects)
  return keys.filter((key) => !done.has(key)).length
}

/** Entries of an event that have nothing that the earlier ones of the event do not have. */
function repetitions(entries: readonly StoredEntry[]): number {
  const earlier = new Map<string, unknown[]>()
  let count = 0
  for (const entry of entries) {
    const before = earlier.get(factOf(entry)) ?? []
    if (before.some((data) => !adds(data, entry.data))) count += 1
    earlier.set(factOf(entry), [...before, entry.data])
  }
  return count
}

/** Whether a value has something where an earlier one has nothing. */
function adds(before: unknown, after: unknown): boolean {
  if (before === undefined || before === null) return after !== undefined && after !== null
  if (!isRecord(before) || !isRecord(after)) return false
  return Object.keys(after).some((name) => adds(before[name], after[name]))
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Entries of monitors that stand after a later event of the service. */
function inversions(entries: readonly StoredEntry[], { monitor_events }: ServiceRecords): number {
  const places = new Map(
    monitor_events.map(({ monitor_id, id }, n) => [factOf({ source: `/v1/monitors/${monitor_id}`, id }), n]),
  )
  const reached = new Map<string, number>()
  let count = 0
  for (const entry of entries) {
    const place = places.get(factOf(entry))
    if (place === undefined || entry.via === 'webhook' || entry.revision > 1) continue
    const last = reached.get(entry.source) ?? -1
    if (place < last) count += 1
    reached.set(entry.source, Math.max(last, place))
  }
  return count
}

function revisionsOutOfOrder(entries: readonly StoredEntry[]): number {
  const last = new Map<string, number>()
  let count = 0
  for (const entry of entries) {
    const before = last.get(factOf(entry)) ?? 0
    if (entry.revision !== before + 1) count += 1
    last.set(factOf(entry), Math.max(before, entry.revision))
  }
  return count
}

/** The process again, in the plainest way. */
function divergence(
  entries: readonly StoredEntry[],
  output: readonly StoredEntry[],
  states: ReadonlyMap<string, Totals>,
  facts: ReadonlySet<string>,
): number {
  const expected = new Map<string, Totals>()
  const appended: string[] = []
  for (const entry of entries) {
    const key = keyOfTotals(entry)
    const before = expected.get(key) ?? { entries: 0, events: 0, hash: HASH_BASIS }
    const after = {
      entries: before.entries + 1,
      events: before.events + (entry.revision === 1 ? 1 : 0),
      hash: rollingHash(before.hash, entry),
    }
    expected.set(key, after)
    if (after.entries % OUTPUT_EVERY === 0) appended.push(JSON.stringify({ key, ...after }))
  }
  const sent = new Map<string, number>()
  for (const fact of facts) {
    const key = keyOfTotals({ source: fact.slice(0, fact.indexOf(' ')) })
    sent.set(key, (sent.get(key) ?? 0) + 1)
  }
  const keys = new Set([...expected.keys(), ...states.keys(), ...sent.keys()])
  const wrongStates = [...keys].filter((key) => {
    const state = states.get(key)
    return JSON.stringify(state) !== JSON.stringify(expected.get(key)) || state?.events !== sent.get(key)
  })
  const found = output.map(({ data }) => JSON.stringify(data))
  const length = Math.max(found.length, appended.length)
  const wrongOutput = Array.from({ length }, (_, n) => found[n] !== appended[n]).filter(Boolean)
  return wrongStates.length + wrongOutput.length
}
