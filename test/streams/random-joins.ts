import * as fc from 'fast-check'
import { monitorEvent, runEvent } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { define, enrich, from, join, keyBy, latestBy, map } from 'rivulet/streams'
import type { Definition, StreamEntry, Table } from 'rivulet/streams'
import { tickEvent } from '../../src/protocol/log-event.ts'
import { taskRun } from '../operators/events.ts'
import type { PlainDefinition, PlainOutput, PlainStage } from './joins-reference.ts'

export const BEGIN = Date.UTC(2026, 0, 1, 12)

export interface Item {
  readonly key: string
  /** The streams that have it: `l` and `r` are joined, `e` is enriched by `t`. */
  readonly streams: string
  readonly n: number
  readonly revision: number
}

/** What comes next. */
export const arrival = fc.record({
  kind: fc.oneof(
    { weight: 8, arbitrary: fc.constant('event' as const) },
    { weight: 3, arbitrary: fc.constant('tick' as const) },
    { weight: 1, arbitrary: fc.constantFrom('backfill' as const, 'run' as const, 'output' as const) },
  ),
  key: fc.constantFrom('a', 'a', 'b', 'ü "'),
  streams: fc.constantFrom('l', 'r', 'l', 'r', 'lr', 'e', 't', 'et', 'lret', ''),
  /** How much later than the one before it comes, in ms. */
  delay: fc.oneof(
    { weight: 6, arbitrary: fc.nat({ max: 6 }) },
    { weight: 2, arbitrary: fc.nat({ max: 60 }) },
    { weight: 1, arbitrary: fc.integer({ min: 59_980, max: 60_020 }) },
  ),
  /** How much earlier it happened, in ms. Below 0, its clock is ahead. */
  age: fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: 40 }), fc.integer({ min: -9, max: 9 })),
  time: fc.oneof(
    { weight: 12, arbitrary: fc.constant('exact' as const) },
    { weight: 1, arbitrary: fc.constantFrom('none' as const, 'day' as const) },
  ),
  isComplete: fc.boolean(),
})

export type Arrival = typeof arrival extends fc.Arbitrary<infer T> ? T : never

export const settings = fc.record({
  lateness: fc.constantFrom(0, 0, 5, 20),
  within: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 40 })),
  backfill: fc.constantFrom('ignore' as const, 'place' as const),
  /** Whether an event of a table and of what it enriches is in the table first. */
  isTableFirst: fc.boolean(),
})

export type Settings = typeof settings extends fc.Arbitrary<infer T> ? T : never

/** The event that comes. A run comes twice: without its output, and as the next revision with it. */
export function eventOf(
  { kind, key, streams, age, time, isComplete }: Arrival,
  n: number,
  now: number,
): ResearchEvent {
  if (kind === 'tick') return tickEvent(n, now, { through: now - age, complete: isComplete })
  if (kind === 'run' || kind === 'output') {
    const run = taskRun(`trun_${n - (n % 8)}`, 'completed', {
      metadata: { key: 'a', streams: 'lret' },
      modified_at: new Date(now - age).toISOString(),
    })
    const output = { type: 'text', content: '', basis: [] } as const
    return runEvent(kind === 'run' ? { run } : { run, output }, 'stream', undefined, now)
  }
  const text = new Date(now - age).toISOString()
  const event_date = { exact: text, none: null, day: text.slice(0, 10) }[time]
  const output = { type: 'json', content: { key, streams, n }, basis: [] } as const
  return monitorEvent(
    key,
    { event_type: 'event_stream', event_id: `e${n}`, event_group_id: 'g', event_date, output },
    'poll',
    now,
  )
}

const TYPES = ['monitor.event_stream', 'task_run.state'] as const

function itemOf(entry: StreamEntry): Item | undefined {
  if (entry.type === 'task_run.state') {
    const { key, streams } = Object(entry.data.run.metadata)
    return { key, streams, n: -1, revision: entry.revision }
  }
  if (entry.type !== 'monitor.event_stream') return undefined
  const { key, streams, n } = Object(entry.data.output.content)
  return { key, streams, n, revision: entry.revision }
}

const inStream = (stream: string) => (entry: StreamEntry) => {
  const item = itemOf(entry)
  return item?.streams.includes(stream) === true ? item : undefined
}

/** The definition under test. */
export function definitionOf({ lateness, within, backfill, isTableFirst }: Settings): {
  readonly definition: Definition<unknown>
  readonly table: Table<Item>
} {
  const items = (stream: string) => from(...TYPES).pipe(map<StreamEntry, Item>(inStream(stream)))
  const keyed = (stream: string) => items(stream).pipe(keyBy(({ key }) => key))
  const table = items('t').pipe(latestBy('table', ({ key }) => key))
  const stages = [
    keyed('l').pipe(join('pairs', keyed('r'), { within })),
    keyed('l').pipe(join('outer', keyed('r'), { within: 2 * within, kind: 'left' })),
    keyed('l').pipe(join('self', keyed('l'), { within })),
    keyed('e').pipe(enrich('known', table)),
  ] as const
  const options = { version: 1, lateness, backfill }
  const definition = isTableFirst
    ? define('p', options, table, ...stages)
    : define('p', options, ...stages, table)
  return { definition, table }
}

/** The same for the reference. */
export function plainOf({ lateness, within, backfill, isTableFirst }: Settings): PlainDefinition {
  const of = (stream: string) => (entry: StreamEntry) => {
    const item = inStream(stream)(entry)
    return item && { key: item.key, item }
  }
  const joined = { does: 'join', left: of('l'), right: of('r'), within } as const
  const stages: readonly PlainStage[] = [
    { ...joined, name: 'pairs', isLeft: false },
    { ...joined, name: 'outer', isLeft: true, within: 2 * within },
    { ...joined, name: 'self', isLeft: false, right: of('l') },
    { does: 'enrich', name: 'known', table: 'table', of: of('e') },
  ]
  const table = { does: 'table', name: 'table', of: of('t') } as const
  return { name: 'p', lateness, backfill, stages: isTableFirst ? [table, ...stages] : [...stages, table] }
}

/** A result as the definition types it. */
type Output = Pick<ResearchEvent, 'type' | 'time' | 'cause'> & { readonly data: unknown }

/** What of an output must be the same in each run. */
export function outputOf({ type, time, data, cause }: Output): PlainOutput {
  const { source = '', id = '', revision = 0, due = null } = cause ?? {}
  return { type, time, data, cause: [source, id, revision, due] }
}

/** Outputs as texts, in an order of their own: at one entry, keys have none between them. */
export function sorted(outputs: readonly PlainOutput[]): readonly string[] {
  return outputs
    .map(({ type, time, data, cause }) => JSON.stringify([type, time, cause, inOrder(data)]))
    .toSorted()
}

function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
}
