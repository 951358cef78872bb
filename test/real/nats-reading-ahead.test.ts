import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { natsLog } from '../../src/log/nats-log.ts'
import { Connection } from '../../src/log/nats/connection.ts'
import { MessageCursor } from '../../src/log/nats/message-cursor.ts'
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
  const [log, other] = [name, `${name} again`].map((owner) => natsLog({ servers: server.url, name, owner }))
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

/** Reads two pages of 100. So it has 400 more at hand, and the next ones after them are being read where there are enough. */
async function readAhead(log: LogStore): Promise<Position> {
  const first = await log.read(await log.positionAt('start'), { limit: 100 })
  const second = await log.read(first.position, { limit: 100 })
  expect(idsOf([...first.entries, ...second.entries])).toEqual(ids(1, 200))
  return second.position
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
    const { log, more } = await filled('end', 600)
    const position = await readAhead(log)
    await more(601, 602)
    const page = await log.read(position, { limit: 1_000 })
    expect(idsOf(page.entries)).toEqual(ids(201, 602))
    expect(page.isEnd).toBe(true)
  })

  it('gets nothing beyond `until`, and all of it later', async () => {
    const { log } = await filled('until', 1_500)
    const position = await readAhead(log)
    const until = position.replace(/\d+$/, '250')
    const page = await log.read(position, { limit: 1_000, until })
    expect(idsOf(page.entries)).toEqual(ids(201, 250))
    expect(page).toMatchObject({ position: until, isEnd: true })
    expect(entriesOf(await pagesAfter(log, page.position))).toEqual(ids(251, 1_500))
  })

  it('gets nothing that the same log has forgotten since', async () => {
    const { log } = await filled('forgotten-here', 1_500)
    const position = await readAhead(log)
    await log.retention.forget(OTHER)
    expect(entriesOf(await pagesAfter(log, position))).toEqual(kept(ids(201, 1_500)))
  })

  it('gets nothing that another process has forgotten ten seconds ago', async () => {
    const { log, other } = await filled('forgotten-elsewhere', 1_500)
    const position = await readAhead(log)
    await other.retention.forget(OTHER)
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_001)
    onTestFinished(() => clock.mockRestore())
    expect(entriesOf(await pagesAfter(log, position))).toEqual(kept(ids(201, 1_500)))
  })

  it('gets a gap for what was trimmed since and not read yet, and misses nothing else', async () => {
    const { log, other } = await filled('trimmed', 2_000)
    const position = await readAhead(log)
    await other.retention.trim({ limit: 1_500 })
    const pages = await pagesAfter(log, position)
    const gap = pages.findIndex((page) => page.gap !== undefined)
    expect(gap).toBeGreaterThan(0)
    const before = entriesOf(pages.slice(0, gap))
    expect(before).toEqual(ids(201, 200 + before.length))
    expect(pages[gap]?.position).toBe(position.replace(/\d+$/, '1500'))
    expect(entriesOf(pages.slice(gap + 1))).toEqual(ids(1_501, 2_000))
  })

  it('passes over entries that were deleted while they were at hand or behind them', async () => {
    const { log, other } = await filled('holes', 2_000)
    const position = await readAhead(log)
    await other.retention.forget(OTHER)
    const seen = entriesOf(await pagesAfter(log, position))
    // What it had read already may come.
    expect(kept(seen)).toEqual(kept(ids(201, 2_000)))
    const late = seen.filter((id) => Number(id) > 1_200)
    expect(late).toEqual(kept(late))
    expect(seen).toEqual(seen.toSorted((a, b) => Number(a) - Number(b)))
  })
})

it('a reader of a process whose event loop is blocked keeps its place at the server', async () => {
  await filled('blocked', 1_000)
  const connection = await Connection.open({
    client: { servers: server.url },
    log: 'blocked',
    partitions: 1,
    replicas: 1,
    lease: undefined,
  })
  onTestFinished(() => connection.nats.close())
  const stream = connection.names.events
  const places = async () => (await connection.jsm.consumers.list(stream).next()).map(({ name }) => name)
  const cursor = new MessageCursor(connection, { stream })
  await cursor.pull(100)
  const before = await places()
  const pulled = cursor.pull(100)
  const began = performance.now()
  while (performance.now() - began < 600);
  expect(await pulled).toBe(false)
  expect(cursor.messages).toHaveLength(100)
  expect(await places()).toEqual(before)
})
