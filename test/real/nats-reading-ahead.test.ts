import { execFileSync } from 'node:child_process'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { LogServerError } from '../../src/log/errors.ts'
import { natsStore } from '../../src/log/nats/index.ts'
import { Connection } from '../../src/log/nats/server/connection.ts'
import { MessageCursor } from '../../src/log/nats/server/message-cursor.ts'
import { SourceOrder } from '../../src/log/nats/entries/source-order.ts'
import type { LogStore, Page, Position } from '../../src/log/store/contract.ts'
import { append, idsOf } from '../log/conformance/fixture.ts'
import { change } from '../operators/events.ts'
import { NatsServer } from './nats/server.ts'

/** Entries of one append, which are of one source. Of two sources, those that follow each other are in no certain order. */
const BATCH = 50
const MONITORS = ['one', 'other'] as const
/** The source of every second batch. */
const OTHER = change('1', MONITORS[1]).source

let server: NatsServer

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

/** The ids of the entries from one number to another. */
const ids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => String(from + n))

const batchOf = (id: string) => Math.floor((Number(id) - 1) / BATCH)

/** Those that are left once the other source is forgotten. */
const kept = (all: readonly string[]) => all.filter((id) => batchOf(id) % 2 === 0)

/** A log with so many entries, of two sources in turn, and another one that is opened once more. */
async function filled(name: string, count: number) {
  const [log, other] = [name, `${name} again`].map((owner) => natsStore({ servers: server.url, name, owner }))
  if (log === undefined || other === undefined) throw new Error('two logs')
  onTestFinished(async () => {
    await log.close()
    await other.close()
  })
  const fence = await other.claim('writer')
  const more = async (from: number, to: number) => {
    const batches = Object.values(Object.groupBy(ids(from, to), (id) => batchOf(id)))
    for (const batch of batches) {
      await append(other, fence, ...(batch ?? []).map((id) => change(id, MONITORS[batchOf(id) % 2])))
    }
  }
  await more(1, count)
  return { log, other, more }
}

/** Pages of 100 that are read one after the other, so that the reader gets more and more at once. */
const PAGES = 6

/** Reads 600 entries. So it has 400 more at hand, and 500 after them are being read where there are as many. */
async function readAhead(log: LogStore): Promise<Position> {
  const count = countPulled()
  // However slow it is, it is a fast reader.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  let position = await log.positionAt('start')
  const seen: string[] = []
  for (let n = 0; n < PAGES; n++) {
    const page = await log.read(position, { limit: 100 })
    seen.push(...idsOf(page.entries))
    position = page.position
  }
  clock.mockRestore()
  expect(seen).toEqual(ids(1, 600))
  expect(count()).toBeGreaterThan(600)
  return position
}

/** The pages up to the end. */
async function pagesAfter(log: LogStore, after: Position): Promise<readonly Page[]> {
  const pages: Page[] = []
  for (let position = after; pages.at(-1)?.isEnd !== true;) {
    const page = await log.read(position, { limit: 100 })
    pages.push(page)
    position = page.position
  }
  return pages
}

const entriesOf = (pages: readonly Page[]) => idsOf(pages.flatMap(({ entries }) => entries))

describe('a reader of a log at a NATS server that has read ahead', () => {
  it('gets each entry once and in order, in pages of any length', async () => {
    const { log } = await filled('pages', 2_500)
    const seen: string[] = []
    const limits = [100, 1, 100, 333, 7, 600, 2]
    let page: Page | undefined
    for (let n = 0; page?.isEnd !== true; n++) {
      const after = page?.position ?? (await log.positionAt('start'))
      page = await log.read(after, { limit: limits[n % limits.length] ?? 1 })
      seen.push(...idsOf(page.entries))
    }
    expect(seen).toEqual(ids(1, 2_500))
  })

  it('comes to the end only with what was appended before the call', async () => {
    const { log, more } = await filled('end', 1_000)
    const position = await readAhead(log)
    await more(1_001, 1_002)
    const page = await log.read(position, { limit: 1_000 })
    expect(idsOf(page.entries)).toEqual(ids(601, 1_002))
    expect(page.isEnd).toBe(true)
  })

  it('gets nothing beyond `until`, and all of it later', async () => {
    const { log } = await filled('until', 2_000)
    const position = await readAhead(log)
    const { position: until } = await log.read(position, { limit: 50 })
    const page = await log.read(position, { limit: 1_000, until })
    expect(idsOf(page.entries)).toEqual(ids(601, 650))
    expect(page).toMatchObject({ position: until, isEnd: true })
    expect(entriesOf(await pagesAfter(log, page.position))).toEqual(ids(651, 2_000))
  })

  it('gets nothing that the same log has forgotten since', async () => {
    const { log } = await filled('forgotten-here', 2_000)
    const position = await readAhead(log)
    await log.retention.forget(OTHER)
    expect(entriesOf(await pagesAfter(log, position))).toEqual(kept(ids(601, 2_000)))
  })

  it('gets nothing that another process has forgotten ten seconds ago', async () => {
    const { log, other } = await filled('forgotten-elsewhere', 2_000)
    const position = await readAhead(log)
    await other.retention.forget(OTHER)
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
    onTestFinished(() => clock.mockRestore())
    expect(entriesOf(await pagesAfter(log, position))).toEqual(kept(ids(601, 2_000)))
  })

  it('gets a gap for what was trimmed since and not read yet, and misses nothing else', async () => {
    const { log, other } = await filled('trimmed', 2_500)
    const position = await readAhead(log)
    await other.retention.trim({ limit: 2_000 })
    const pages = await pagesAfter(log, position)
    const gap = pages.findIndex((page) => page.gap !== undefined)
    expect(gap).toBeGreaterThan(0)
    const before = entriesOf(pages.slice(0, gap))
    expect(before).toEqual(ids(601, 600 + before.length))
    expect(pages[gap]?.position).toBe(await other.positionAt('start'))
    expect(entriesOf(pages.slice(gap + 1))).toEqual(ids(2_001, 2_500))
  })

  it('passes over entries that were deleted while they were at hand or behind them', async () => {
    const { log, other } = await filled('holes', 2_500)
    const position = await readAhead(log)
    await other.retention.forget(OTHER)
    const seen = entriesOf(await pagesAfter(log, position))
    // What it had read already may come.
    expect(kept(seen)).toEqual(kept(ids(601, 2_500)))
    const late = seen.filter((id) => Number(id) > 1_500)
    expect(late).toEqual(kept(late))
    expect(seen).toEqual(seen.toSorted((a, b) => Number(a) - Number(b)))
  })

  it('gets nothing that was forgotten while it read a page', async () => {
    const { log } = await filled('forgotten-meanwhile', 2_000)
    const position = await readAhead(log)
    const release = holdAt(650)
    const reading = log.read(position, { limit: 100 })
    await log.retention.forget(OTHER)
    release()
    const page = await reading
    expect(entriesOf(await pagesAfter(log, page.position))).toEqual(kept(ids(701, 2_000)))
  })

  it('keeps what the one of two at the same place has read that has read further', async () => {
    const { log } = await filled('two', 2_000)
    const count = countPulled()
    const start = await log.positionAt('start')
    let positions: readonly Position[] = [start, start]
    for (let read = 0; read < 2_000; read += 100) {
      const pages = await Promise.all(positions.map((position) => log.read(position, { limit: 100 })))
      for (const { entries } of pages) expect(idsOf(entries)).toEqual(ids(read + 1, read + 100))
      positions = pages.map(({ position }) => position)
    }
    expect(count()).toBeLessThan(4_500)
  })

  it('has read little more than it has got where it is slow', async () => {
    const { log } = await filled('slow', 500)
    const count = countPulled()
    const now = performance.now.bind(performance)
    let later = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + later)
    onTestFinished(() => clock.mockRestore())
    let position = await log.positionAt('start')
    for (let n = 1; n <= 50; n++) {
      const page = await log.read(position, { limit: 1 })
      expect(idsOf(page.entries)).toEqual([String(n)])
      position = page.position
      later += 500
    }
    expect(count()).toBeLessThan(70)
  })

  it('is forgotten where it does not come back for ten seconds', async () => {
    const { log } = await filled('idle', 2_000)
    const { connection } = await connected('idle')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    await readAhead(log)
    expect(await placesOf(connection)).toHaveLength(1)
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
    onTestFinished(() => clock.mockRestore())
    vi.advanceTimersByTime(10_001)
    vi.useRealTimers()
    await expect.poll(() => placesOf(connection)).toEqual([])
  })
})

describe('readers of the same entries that have read ahead', () => {
  const common = { limit: 500, isCommon: true }

  async function readAheadTogether(log: LogStore): Promise<Position> {
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
    const first = await log.read(await log.positionAt('start'), common)
    const second = await log.read(first.position, common)
    clock.mockRestore()
    expect(idsOf([...first.entries, ...second.entries])).toEqual(ids(1, 1_000))
    return second.position
  }

  it('get nothing that the same log has forgotten since', async () => {
    const { log } = await filled('common-forgotten', 2_500)
    const position = await readAheadTogether(log)
    await log.retention.forget(OTHER)
    const { entries } = await log.read(position, common)
    expect(entries.length).toBeGreaterThan(0)
    expect(idsOf(entries)).toEqual(kept(idsOf(entries)))
  })

  it('get nothing that was forgotten before the call, also while another one reads there', async () => {
    const { log } = await filled('common-meanwhile', 1_000)
    const start = await log.positionAt('start')
    const release = holdAt(250)
    const reading = log.read(start, common)
    await log.retention.forget(OTHER)
    const next = log.read(start, common)
    release()
    await reading
    const { entries } = await next
    expect(entries.length).toBeGreaterThan(0)
    expect(idsOf(entries)).toEqual(kept(idsOf(entries)))
  })

  it('come to the end only with what was appended before the call', async () => {
    const { log, more } = await filled('common-end', 1_500)
    const position = await readAheadTogether(log)
    await more(1_501, 1_502)
    const page = await log.read(position, { ...common, limit: 1_000 })
    expect(page.isEnd).toBe(true)
    expect(idsOf(page.entries)).toEqual(ids(1_001, 1_502))
  })
})

describe('the cursor of a reader', () => {
  it('keeps its place at the server where the event loop was blocked', async () => {
    await filled('blocked', 1_000)
    const { connection } = await connected('blocked')
    const stream = connection.names.events
    const cursor = new MessageCursor(connection, { stream })
    await cursor.pull(100)
    const before = await placesOf(connection)
    const pulled = cursor.pull(100)
    // It has been sent then.
    await turn()
    blockUntilSent(stream, before[0] ?? '', 200)
    expect(await pulled).toBe(false)
    expect(cursor.messages).toHaveLength(100)
    expect(await placesOf(connection)).toEqual(before)
  })

  it('rejects where the connection is closed, and nothing else rejects', async () => {
    await filled('closed', 1_000)
    const { connection } = await connected('closed')
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const cursor = new MessageCursor(connection, { stream: connection.names.events })
    await cursor.pull(100)
    await connection.nats.close()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    await expect(cursor.pull(100)).rejects.toBeInstanceOf(LogServerError)
    expect(vi.getTimerCount()).toBe(0)
    vi.runAllTimers()
    await turn()
    await turn()
    expect(unhandled).toEqual([])
  })
})

/** The connection of a log of {@link filled}, without the log. */
async function connected(log: string) {
  const settings = { partitions: 1, replicas: 1, lease: undefined }
  const connection = await Connection.open({ client: { servers: server.url }, log, ...settings })
  onTestFinished(() => connection.nats.close())
  return { connection }
}

/** The readers' places that the server has. */
async function placesOf({ jsm, names }: Connection): Promise<readonly string[]> {
  return (await jsm.consumers.list(names.events).next()).map(({ name }) => name)
}

/** Holds up the first read that comes to a number, until it is released. */
function holdAt(sequence: number): () => void {
  const held = Promise.withResolvers<void>()
  const counts = SourceOrder.prototype.counts
  let isHeld = false
  const spy = vi.spyOn(SourceOrder.prototype, 'counts').mockImplementation(function (
    this: SourceOrder,
    message,
  ) {
    const known = counts.call(this, message)
    if (message.sequence !== sequence || isHeld) return known
    isHeld = true
    return held.promise.then(() => known)
  })
  onTestFinished(() => spy.mockRestore())
  return held.resolve
}

/** Counts the messages that cursors have read from now on. */
function countPulled(): () => number {
  let count = 0
  const pull = MessageCursor.prototype.pull
  const spy = vi.spyOn(MessageCursor.prototype, 'pull').mockImplementation(async function (
    this: MessageCursor,
    limit,
  ) {
    const isEnd = await pull.call(this, limit)
    count += this.messages.length
    return isEnd
  })
  onTestFinished(() => spy.mockRestore())
  return () => count
}

/** Blocks the event loop until the server has sent so many messages of a place. */
function blockUntilSent(stream: string, place: string, count: number): void {
  const program = `
    import { jetstreamManager } from '@nats-io/jetstream'
    import { connect } from '@nats-io/transport-node'
    const nats = await connect({ servers: process.argv[1] })
    const { consumers } = await jetstreamManager(nats)
    while ((await consumers.info(process.argv[2], process.argv[3])).delivered.consumer_seq < ${count});
    await nats.close()`
  execFileSync(process.execPath, ['--input-type=module', '-e', program, server.url, stream, place])
}
