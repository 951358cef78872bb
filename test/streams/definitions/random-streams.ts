import * as fc from 'fast-check'
import type { ResearchEvent } from 'rivulet'
import {
  aggregate,
  average,
  collect,
  count,
  define,
  distinct,
  from,
  hopping,
  keyBy,
  latest,
  map,
  max,
  min,
  percentile,
  session,
  sum,
  tumbling,
} from 'rivulet/streams'
import type { Definition, ResultOf, StreamEntry } from 'rivulet/streams'
import { tickEvent } from '../../../src/protocol/log-event.ts'
import type { PlainDefinition, PlainOutput, PlainValues, Reading } from './reference.ts'

/** When random streams begin, in Unix ms: just before the end of a day. */
export const BEGIN = Date.parse('2026-01-01T23:58:00Z')

const DAY = 86_400_000

/** Times are multiples of this, so that many are exactly at the edge of a window, in ms. */
const UNIT = 5_000

const units = (most: number) => fc.nat({ max: most }).map((n) => n * UNIT)

const windows = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .integer({ min: 1, max: 6 })
      .map((n) => ({ kind: 'fixed' as const, size: n * UNIT, every: n * UNIT })),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 4 }), fc.nat({ max: 4 }))
      .map(([step, more]) => ({ kind: 'fixed' as const, size: (step + more) * UNIT, every: step * UNIT })),
  },
  {
    weight: 4,
    arbitrary: fc.integer({ min: 1, max: 5 }).map((n) => ({ kind: 'session' as const, gap: n * UNIT })),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(1, 2)
      .map((days) => ({ kind: 'fixed' as const, size: days * DAY, every: DAY })),
  },
)

/** A definition of 1 to 3 stages. */
export const definition: fc.Arbitrary<PlainDefinition> = fc.record({
  name: fc.constant('p'),
  lateness: fc.oneof(fc.constant(0), units(6)),
  backfill: fc.constantFrom('ignore' as const, 'place' as const),
  stages: fc
    .array(windows, { minLength: 1, maxLength: 3 })
    .map((all) => all.map((each, n) => ({ name: `stage ${n}`, windows: each }))),
})

/** An entry to come. */
export const arrival = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant('event' as const) },
    { weight: 5, arbitrary: fc.constant('tick' as const) },
    { weight: 1, arbitrary: fc.constantFrom('backfill' as const, 'revision' as const, 'other' as const) },
  ),
  /** How much later than the entry before it is recorded, in ms. */
  delay: fc.oneof(
    { weight: 8, arbitrary: units(2) },
    { weight: 2, arbitrary: fc.nat({ max: 3 }) },
    { weight: 1, arbitrary: units(14) },
  ),
  /** By how much its time, or the `through` of a tick, is earlier, in ms. Negative: it is in the future. */
  age: fc.oneof(
    { weight: 10, arbitrary: units(5) },
    { weight: 3, arbitrary: fc.integer({ min: -1, max: 1 }) },
    { weight: 2, arbitrary: units(30) },
    { weight: 1, arbitrary: units(4).map((age) => -age) },
    { weight: 1, arbitrary: fc.constantFrom(DAY, 2 * DAY, 3 * DAY) },
  ),
  /** What it says of its time. */
  says: fc.oneof(
    { weight: 10, arbitrary: fc.constant('its time' as const) },
    { weight: 2, arbitrary: fc.constantFrom('nothing' as const, 'its day' as const) },
  ),
  isComplete: fc.integer({ min: 0, max: 3 }).map((n) => n > 0),
  reading: fc.record<Reading>({
    key: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('a', 'b', '["a",7]') },
      { weight: 1, arbitrary: fc.constant(null) },
    ),
    // Multiples of a quarter, so that a sum does not depend on the order.
    number: fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: -40, max: 400 }).map((n) => n / 4) },
      { weight: 1, arbitrary: fc.constant(null) },
    ),
  }),
})

export type Arrival = typeof arrival extends fc.Arbitrary<infer T> ? T : never

/** The event of an arrival that is recorded at a time, in Unix ms. */
export function eventOf(
  { kind, age, says, isComplete, reading }: Arrival,
  number: number,
  recorded: number,
): ResearchEvent {
  if (kind === 'tick') return tickEvent(number, recorded, { through: recorded - age, complete: isComplete })
  const whole = new Date(recorded - age).toISOString()
  const texts = { 'its time': whole, 'its day': whole.slice(0, 10), nothing: null }
  return {
    id: String(number),
    source: `/random/${number % 3}`,
    type: kind === 'other' ? 'log.lost' : 'unknown',
    time: texts[says],
    data: reading,
    received: new Date(recorded).toISOString(),
    via: 'log',
  } as ResearchEvent
}

/** Entries as a log has them. */
export function entriesOf(arrivals: readonly Arrival[]): readonly StreamEntry[] {
  let recorded = BEGIN
  return arrivals.map((each, number) => {
    recorded += each.delay
    return {
      ...eventOf(each, number, recorded),
      recorded,
      revision: each.kind === 'revision' ? 2 : 1,
      backfill: each.kind === 'backfill',
    }
  })
}

/** The definition that plain data describes. */
export function definitionOf(
  { name, lateness, backfill, stages: [first, ...others] }: PlainDefinition,
  version = 1,
): Definition<ResultOf<string, PlainValues>> {
  if (first === undefined) throw new Error('a definition without a stage')
  return define(name, { version, lateness, backfill }, stageOf(first), ...others.map(stageOf))
}

function stageOf({ name, windows: plain }: PlainDefinition['stages'][number]) {
  const number = (reading: Reading) => reading.number
  const ofTime =
    plain.kind === 'session'
      ? session(plain.gap)
      : plain.size === plain.every
        ? tumbling(plain.size)
        : hopping(plain.size, plain.every)
  return from('unknown').pipe(
    map(({ data }) => data as Reading),
    keyBy(({ key }) => key),
    aggregate<Reading, string, PlainValues>(name, ofTime, {
      events: count(),
      positive: count((reading) => (reading.number ?? 0) > 0),
      sum: sum(number),
      min: min(number),
      max: max(number),
      mean: average(number),
      different: distinct(number),
      last: latest(number),
      all: collect(number),
      median: percentile(number, 50),
      p95: percentile(number, 95),
    }),
  )
}

/** The parts of an event that its entries decide. */
export function outputOf({ type, time, data }: ResearchEvent): PlainOutput {
  return { type, time, data }
}

/**
 * Outputs in one order, to be compared: percentiles that are within 1 % of the expected ones are replaced by these.
 *
 * @param expected Outputs of the reference.
 */
export function comparable(actual: readonly PlainOutput[], expected: readonly PlainOutput[]) {
  const [one, other] = [inOrder(actual), inOrder(expected)]
  return { actual: one.map((output, n) => withExact(output, other[n])), expected: other }
}

function inOrder(outputs: readonly PlainOutput[]): readonly PlainOutput[] {
  const place = ({ type, time, data }: PlainOutput) => {
    const { stage, key, start } = data as {
      readonly stage: string
      readonly key: string
      readonly start: string
    }
    return JSON.stringify([time, type, stage, key, start])
  }
  return outputs
    .map((output) => ({ output, at: place(output) }))
    .toSorted((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at)))
    .map(({ output }) => output)
}

function withExact(output: PlainOutput, expected: PlainOutput | undefined): PlainOutput {
  const [own, exact] = [output, expected].map(
    (each) => (each?.data as { readonly values?: PlainValues })?.values,
  )
  if (own === undefined || exact === undefined) return output
  const values = { ...own }
  for (const name of ['median', 'p95'] as const)
    if (isWithin(own[name], exact[name])) values[name] = exact[name]
  return { ...output, data: { ...(output.data as object), values } }
}

/** Whether a value is within 1 % of another one. */
export function isWithin(value: number | null, exact: number | null): boolean {
  if (value === null || exact === null) return value === exact
  // The bounds of bins are rounded.
  return Math.abs(value - exact) <= 0.01 * Math.abs(exact) * (1 + 1e-9)
}
