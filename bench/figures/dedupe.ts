import { dedupe } from 'rivulet/operators'
import { filter, Subject } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { expectCount } from '../expect-count.ts'
import { result, rounded } from '../figure.ts'
import type { Measure, Result } from '../figure.ts'
import { alternately, median } from '../rounds.ts'
import type { Comparison } from '../rounds.ts'

const IDS = 1_000_000
/** Events per batch: those of a hundred pages of a monitor. */
const BATCH = 10_000
const PAGE = 100
const MONITORS = 10

interface Event {
  readonly id: string
  readonly source: string
}

/** Events as batches of JSON. */
type Batches = readonly string[]

/**
 * `dedupe-speed`: events per second through `dedupe({ capacity: 1_000_000 })`, 1,000,000 with as many ids, against a plain `Set` of ids
 * in the same pipeline. Events are parsed in batches, uncounted, so that no string has a cached hash. They come from ten monitors,
 * a hundred in a row from each. `halfRepeated`: 500,000 events, half of them duplicates.
 * `dedupe-speed-of-runs`: 250,000 events of runs, each with its own source, which the `Set` ignores.
 * `dedupe-memory`: bytes per id in heap and array buffers after 1,000,000 ids, without the events.
 */
export const measure: Measure = async () => [await speed(), await speedOfRuns(), memory()]

async function speed(): Promise<Result> {
  const { ratio, ...details } = await compare(batches(IDS, monitorEvent), IDS)
  const repeated = await compare(batches(IDS / 4, monitorEvent, 2), IDS / 4)
  const halfRepeated = rounded(repeated.ratio)
  return result('dedupe-speed', ratio, { atLeast: 0.8 }, { ...details, halfRepeated, unit: 'events/s' })
}

async function speedOfRuns(): Promise<Result> {
  const { ratio, ...details } = await compare(batches(IDS / 4, runEvent), IDS / 4)
  return result('dedupe-speed-of-runs', ratio, { atLeast: 0.8 }, { ...details, unit: 'events/s' })
}

function compare(json: Batches, ids: number): Promise<Comparison> {
  return alternately(
    () => eventsPerSecond(dedupe({ capacity: IDS }), json, ids),
    () => eventsPerSecond(distinctIds(), json, ids),
    { rounds: 7, warmUp: 1 },
  )
}

/** A `dedupe` with a plain `Set`, for one subscription. */
function distinctIds(): MonoTypeOperatorFunction<Event> {
  const seen = new Set<string>()
  return filter(({ id }) => {
    if (seen.has(id)) return false
    seen.add(id)
    return true
  })
}

function eventsPerSecond(operator: MonoTypeOperatorFunction<Event>, json: Batches, ids: number): number {
  const source = new Subject<Event>()
  let passed = 0
  const subscription = source.pipe(operator).subscribe(() => {
    passed += 1
  })
  let events = 0
  let ms = 0
  for (const text of json) {
    const batch = parse(text)
    const began = performance.now()
    for (const event of batch) source.next(event)
    ms += performance.now() - began
    events += batch.length
  }
  subscription.unsubscribe()
  expectCount(passed, ids)
  return (events / ms) * 1_000
}

function memory(): Result {
  const json = batches(IDS, monitorEvent)
  const sizes = Array.from({ length: 3 }, () => bytesPerId(json))
  return result('dedupe-memory', median(sizes), { atMost: 48 }, { ids: IDS, unit: 'bytes an id' })
}

function bytesPerId(json: Batches): number {
  const before = bytesInUse()
  const source = new Subject<Event>()
  let passed = 0
  const subscription = source.pipe(dedupe({ capacity: IDS })).subscribe(() => {
    passed += 1
  })
  for (const text of json) for (const event of parse(text)) source.next(event)
  const bytes = bytesInUse() - before
  subscription.unsubscribe()
  expectCount(passed, IDS)
  return bytes / IDS
}

/** Array buffers are freed one collection after their views. */
function bytesInUse(): number {
  for (let n = 0; n < 3; n++) globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function parse(json: string): readonly Event[] {
  return JSON.parse(json)
}

/** This many events, with each page repeated as given. */
function batches(ids: number, event: (number: number) => Event, times = 1): Batches {
  const length = BATCH / times
  return Array.from({ length: ids / length }, (_, batch) => {
    const events = Array.from({ length }, (__, at) => event(batch * length + at))
    const pages = Array.from({ length: length / PAGE }, (__, page) =>
      events.slice(page * PAGE, (page + 1) * PAGE),
    )
    return JSON.stringify(pages.flatMap((page) => Array.from({ length: times }, () => page).flat()))
  })
}

function monitorEvent(number: number): Event {
  const monitor = Math.floor(number / PAGE) % MONITORS
  return { source: `/v1/monitors/monitor_${hex(monitor)}`, id: `mevt_${hex(number)}` }
}

function runEvent(number: number): Event {
  const run = `trun_${hex(number)}`
  return { source: `/v1/tasks/runs/${run}`, id: `${run}:completed` }
}

/** 32 digits, distributed like random ids and unique: an odd factor is a bijection of 32 bits. */
function hex(number: number): string {
  return (Math.imul(number, 0x9e3779b1) >>> 0).toString(16).padStart(8, '0').repeat(4)
}
