import { setImmediate as turn } from 'node:timers/promises'
import { openLog } from 'rivulet/log'
import type { EventLog, ProcessOptions } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { natsStore } from 'rivulet/log/nats'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

const SOURCES = Array.from({ length: 20 }, (_, n) => `m${n}`)
/** Recorded before the readers run, in batches, over this time of the log's clock in ms; and while they run. */
const BEHIND = 20_000
const BATCH = 200
const TIME = 10 * 60_000
const MORE = 2_000
const TOTAL = BEHIND + MORE

interface Seen {
  readonly count: number
  readonly last: number
}

/** What was received of each source: how many entries, and whether each came after the one before. */
class Received {
  readonly #bySource = new Map<string, Seen>()
  count = 0
  isOrdered = true

  add({ id, source }: { readonly id: string; readonly source: string }): void {
    const { count, last } = this.#bySource.get(source) ?? { count: 0, last: 0 }
    this.isOrdered &&= Number(id) > last
    this.#bySource.set(source, { count: count + 1, last: Number(id) })
    this.count += 1
  }

  get counts(): readonly number[] {
    return Array.from(this.#bySource.values(), ({ count }) => count)
  }
}

const following: ProcessOptions<Seen> = {
  version: 1,
  key: ({ source }) => source,
  init: () => ({ count: 0, last: 0 }),
  event: ({ count, last }, { id, source }, context) => {
    if (Number(id) <= last) throw new Error(`${id} of ${source} comes after ${last}`)
    context.set({ count: count + 1, last: Number(id) })
  },
}

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

/** Records events as one stream, a batch after the other. The number of an event is its id. */
async function record(
  store: LogStore,
  from: number,
  to: number,
  recorded: (number: number) => unknown = () => {},
): Promise<void> {
  const fence = await store.claim('stream:upstream')
  let [known = null] = await store.streamPositions([fence.name])
  for (let first = from; first <= to; first += BATCH) {
    const length = Math.min(BATCH, to - first + 1)
    const entries = Array.from({ length }, (_, n) =>
      newEntry(change(`${first + n}`, SOURCES[(first + n) % SOURCES.length])),
    )
    const position = `${first + length - 1}`
    await store.append([{ fence, expect: known, position, entries }])
    known = position
    await recorded(first + length - 1)
  }
  await store.release(fence)
}

it(
  'readers that are ten minutes and 20,000 entries behind catch up, each entry once and each source in order',
  { timeout: 120_000 },
  async () => {
    const began = Date.now() - TIME
    let now = began
    const clock = () => now
    const connect = (owner: string) => natsStore({ servers: server.url, name: 'behind', owner, clock })
    const store = connect('recorder')
    await opened(store)
    const log = await opened(connect('readers'))
    const archive = log.consume('archive', {}, () => {})
    const first = log.process('sums', following)
    await record(store, 1, BATCH)
    const isRead = async () => {
      const { readers } = await log.stats()
      return readers.length === 2 && readers.every(({ lag }) => lag.entries === 0)
    }
    while (!(await isRead())) await turn()
    await archive.stop()
    await first.stop()

    await record(store, BATCH + 1, BEHIND, (number) => (now = began + (number / BEHIND) * TIME))
    const { readers } = await log.stats()
    expect(readers.map(({ lag }) => lag.entries)).toEqual([BEHIND - BATCH, BEHIND - BATCH])
    for (const { lag } of readers) expect(lag.seconds).toBeGreaterThan((0.98 * TIME) / 1_000)

    const received = new Received()
    // A batch each time that the consumer has caught up with another part.
    const more = record(store, BEHIND + 1, TOTAL, async (number) => {
      const behind = ((number - BEHIND) / MORE) * (BEHIND - BATCH)
      while (received.count < behind) await turn()
    })
    const done = Promise.withResolvers<void>()
    log.consume('archive', { concurrency: 8 }, (entry) => {
      received.add(entry)
      if (received.count >= TOTAL - BATCH) done.resolve()
    })
    const sums = log.process('sums', following)
    // The process ends with an error where an entry comes out of order.
    await Promise.race([done.promise, sums.done])
    await more
    while (!(await isRead())) await Promise.race([turn(), sums.done])

    expect(received.count).toBe(TOTAL - BATCH)
    expect(received.isOrdered).toBe(true)
    expect(new Set(received.counts)).toEqual(new Set([(TOTAL - BATCH) / SOURCES.length]))
    const { state } = await sums.snapshot()
    expect(Array.from(state.values(), ({ count }) => count)).toEqual(
      SOURCES.map(() => TOTAL / SOURCES.length),
    )
  },
)
