import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { createClient, groupEvent } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { ResearchClient, ResearchEvent } from 'rivulet'
import type { LogStore } from 'rivulet/log/store'
import type { WebhookDelivery } from 'rivulet/webhooks'
import { dedupe, mergeWebhooks } from 'rivulet/operators'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createWebhookReceiver, signedRequest } from 'rivulet/webhooks'
import { lastValueFrom, merge, Subject, take, tap } from 'rxjs'
import type { Observable } from 'rxjs'
import { expectCount } from '../expect-count.ts'
import { result, rounded } from '../figure.ts'
import type { Measure, Result } from '../figure.ts'
import { median } from '../rounds.ts'
import { startServer } from '../server.ts'

const SIZES = [10_000, 100_000, 1_000_000]
/** How often each size but a pipeline's largest is timed, for the median. */
const TIMES = 5
/** How often the memory of a run is measured. */
const SAMPLES = 5

/** A pipeline that runs with any number of events. */
interface Pipeline {
  readonly name: string
  /** The largest number of events, 1,000,000 where that takes seconds. */
  readonly upTo: number
  /** Runs this many events, and calls the meter for each at the end of the pipeline. */
  readonly run: (events: number, meter: Meter) => Promise<unknown>
}

/**
 * How each pipeline scales with its number of events: 10⁴, 10⁵ and, where that takes seconds, 10⁶.
 *
 * - `growth-{pipeline}-time`: time per event of the single largest run, against the median of five runs of a tenth of it; 1 is
 *   linear. It is processor time of all threads, independent of other processes. `byTheClock` is elapsed time.
 * - `growth-{pipeline}-memory`: peak memory of the largest run, against a run of a tenth; 1 is constant. It is the heap and array
 *   buffers of the process after a full collection, sampled five times in separate runs.
 *
 * The pipelines:
 *
 * - `stream`: runs of two groups, 400 B an event, over HTTP through `taskGroups.runs`, `merge` and `dedupe`.
 * - `log`: a group over HTTP through `log.record` into an SQLite log, and a consumer of it with a synchronous handler.
 * - `merge-webhooks`: runs of a stream, each with a webhook before or after it, through `mergeWebhooks`.
 * - `paging`: a monitor's list over HTTP, 100 a page, through `monitors.events`.
 * - `follow`: a monitor with 50 new events at each poll, through `monitors.follow`; at most 10⁵, since polls take long.
 * - `inbox`: signed webhooks through a receiver's `handle`, its memory inbox and its `deliveries`.
 */
export const measure: Measure = async (folder) => {
  await using server = await startServer('growth')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const results: Result[] = []
  for (const pipeline of pipelines(client, folder)) results.push(...(await grown(pipeline)))
  return results
}

function pipelines(client: ResearchClient, folder: string): readonly Pipeline[] {
  let files = 0
  const newFile = () => join(folder, `${++files}.db`)
  return [
    { name: 'stream', upTo: 1_000_000, run: (events, meter) => streams(client, events, meter) },
    {
      name: 'log',
      upTo: 1_000_000,
      run: (events, meter) => recorded(client, sqliteStore(newFile()), events, meter),
    },
    { name: 'merge-webhooks', upTo: 1_000_000, run: mergedWebhooks },
    { name: 'paging', upTo: 1_000_000, run: (events, meter) => paged(client, events, meter) },
    { name: 'follow', upTo: 100_000, run: (events, meter) => followed(client, events, meter) },
    { name: 'inbox', upTo: 1_000_000, run: received },
  ]
}

async function grown({ name, upTo, run }: Pipeline): Promise<readonly Result[]> {
  const timed = async (events: number): Promise<Times> => {
    const watch = new Stopwatch(events)
    await run(events, watch)
    return watch.times()
  }
  const weighed = async (events: number): Promise<number> => {
    const memory = new MemoryMeter(events)
    await run(events, memory)
    return memory.megabytes
  }
  // Warms up, so that the code is compiled.
  await timed(upTo / 10)
  const sizes = SIZES.filter((events) => events <= upTo)
  const busy = new Map<number, number>()
  const elapsed = new Map<number, number>()
  const megabytes = new Map<number, number>()
  for (const events of sizes) {
    const times: Times[] = []
    while (times.length < (events === upTo ? 1 : TIMES)) times.push(await timed(events))
    busy.set(events, median(times.map((each) => each.busy)))
    elapsed.set(events, median(times.map((each) => each.elapsed)))
  }
  for (const events of sizes) megabytes.set(events, await weighed(events))

  const growth = (values: ReadonlyMap<number, number>) =>
    (values.get(upTo) ?? NaN) / (values.get(upTo / 10) ?? NaN)
  const shown = (values: ReadonlyMap<number, number>) =>
    Object.fromEntries([...values].map(([events, value]) => [`at${events}`, rounded(value)]))
  return [
    result(
      `growth-${name}-time`,
      growth(busy),
      { atMost: 1.25 },
      { ...shown(busy), unit: 'µs an event', byTheClock: rounded(growth(elapsed)) },
    ),
    result(`growth-${name}-memory`, growth(megabytes), { atMost: 1.2 }, { ...shown(megabytes), unit: 'MB' }),
  ]
}

/** Is called for each event at the end of a pipeline. */
interface Meter {
  seen(): void
}

/** The time per event, in µs. */
interface Times {
  /** Processor time. */
  readonly busy: number
  /** Elapsed time. */
  readonly elapsed: number
}

/** Measures the time of a run. */
class Stopwatch implements Meter {
  readonly #events: number
  readonly #elapsedBefore = clock()
  readonly #busyBefore = processor()
  #seen = 0

  constructor(events: number) {
    this.#events = events
  }

  seen(): void {
    this.#seen += 1
  }

  /** Call it after the last event. */
  times(): Times {
    const busy = (processor() - this.#busyBefore) / this.#events
    const elapsed = (clock() - this.#elapsedBefore) / this.#events
    expectCount(this.#seen, this.#events)
    return { busy, elapsed }
  }
}

/** Measures the memory at intervals. Never in a timed run, since a full collection also drops optimized code. */
class MemoryMeter implements Meter {
  /** The peak. */
  megabytes = 0
  readonly #interval: number
  #seen = 0

  constructor(events: number) {
    this.#interval = events / SAMPLES
  }

  seen(): void {
    this.#seen += 1
    if (this.#seen % this.#interval !== 0) return
    globalThis.gc?.()
    // Array buffers are freed in the background. A second collection waits for that.
    globalThis.gc?.()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    this.megabytes = Math.max(this.megabytes, (heapUsed + arrayBuffers) / 1e6)
  }
}

/** µs. */
function clock(): number {
  return performance.now() * 1e3
}

/** µs of all threads. */
function processor(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Subscribes to the end. */
function drained(events: Observable<unknown>, meter: Meter): Promise<unknown> {
  return lastValueFrom(events.pipe(tap(() => meter.seen())))
}

function streams(client: ResearchClient, events: number, meter: Meter): Promise<unknown> {
  const groups = ['a', 'b'].map((letter) => client.taskGroups.runs(`${events / 2}-${letter}`))
  return drained(merge(...groups).pipe(dedupe()), meter)
}

async function recorded(
  client: ResearchClient,
  store: LogStore,
  events: number,
  meter: Meter,
): Promise<void> {
  const log = await openLog(store)
  const all = Promise.withResolvers<void>()
  let handled = 0
  const consuming = log.consume('growth', { types: ['task_run.state'] }, () => {
    meter.seen()
    handled += 1
    if (handled === events) all.resolve()
  })
  const recording = log.record({ client, taskGroups: [`${events}-watched`] })
  await Promise.all([recording.done, Promise.race([all.promise, consuming.done])])
  await log.close()
}

/** Events per turn of the event loop. */
const TURN = 500

async function mergedWebhooks(events: number, meter: Meter): Promise<void> {
  const stream = new Subject<ResearchEvent>()
  const deliveries = new Subject<WebhookDelivery>()
  const over = drained(stream.pipe(mergeWebhooks(deliveries)), meter)
  for (let number = 0; number < events; number++) {
    if (number % TURN === 0) await setImmediate()
    const run = endedRun(number)
    const emitFromStream = () => {
      const output = { type: 'text', content: 'done', basis: [] }
      stream.next(groupEvent('g', { type: 'task_run.state', event_id: `${number}`, run, output }, 'stream'))
    }
    if (number % 2 === 1) emitFromStream()
    deliveries.next({ id: `msg_${number}`, timestamp: 1_767_225_600, payload: webhook(run) })
    if (number % 2 === 0) emitFromStream()
  }
  stream.complete()
  await over
}

function paged(client: ResearchClient, events: number, meter: Meter): Promise<unknown> {
  return drained(client.monitors.events(`${events}-listed`, { limit: 100 }), meter)
}

let monitors = 0

function followed(client: ResearchClient, events: number, meter: Meter): Promise<unknown> {
  const monitor = `${events}-${++monitors}-followed`
  return drained(client.monitors.follow(monitor, { pollInterval: 0 }).pipe(take(events)), meter)
}

const SECRETS = 'whsec_bench'
/** Concurrent webhooks. */
const CONCURRENCY = 250

async function received(events: number, meter: Meter): Promise<void> {
  const receiver = createWebhookReceiver({ secrets: SECRETS })
  const delivered = drained(receiver.deliveries.pipe(take(events)), meter)
  for (let number = 0; number < events; number += CONCURRENCY) {
    const requests = Array.from({ length: Math.min(CONCURRENCY, events - number) }, (_, at) => {
      const id = `msg_${number + at}`
      return signedRequest('http://127.0.0.1/', webhook(endedRun(number + at)), { secrets: SECRETS, id })
    })
    const answers = await Promise.all(requests.map(async (request) => receiver.handle(await request)))
    const refused = answers.find(({ status }) => status !== 204)
    if (refused !== undefined) throw new Error(`a webhook was answered with ${refused.status}`)
    // Deliveries are emitted in a separate turn, which with a server its sockets would take.
    await setImmediate()
  }
  await delivered
  receiver.close()
}

function endedRun(number: number) {
  const time = '2026-01-01T00:00:00Z'
  return {
    run_id: `trun_${number}`,
    status: 'completed',
    is_active: false,
    warnings: null,
    error: null,
    processor: 'base',
    metadata: {},
    created_at: time,
    modified_at: time,
  }
}

function webhook(run: ReturnType<typeof endedRun>): unknown {
  return { type: 'task_run.status', timestamp: run.modified_at, data: run }
}
