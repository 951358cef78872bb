import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { forget } from '../../../src/log/sqlite/forgetting.ts'
import { OpenSqliteLog } from '../../../src/log/sqlite/open-log.ts'
import type { Transactions } from '../../../src/log/sqlite/open-log.ts'
import type { Cause } from '../../../src/protocol/event.ts'
import { change } from '../../operators/events.ts'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { appendTo, completedRun, detections, readAll } from './events.ts'
import { openStore, scratchFile } from './scratch.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

const HOUR = 3_600_000

/** Deletes all that can be deleted. Returns how many steps it took. */
async function trimAll(log: LogStore): Promise<number> {
  let steps = 1
  while (!(await log.retention.trim({ limit: 1_000 })).isDone) steps += 1
  while (await log.retention.clean()) steps += 1
  return steps
}

/** Deletes this number of entries. One step may delete fewer, since its time is limited. */
async function trimExactly(log: LogStore, count: number): Promise<void> {
  for (let left = count; left > 0;) {
    const { deleted, isDone } = await log.retention.trim({ limit: left })
    left -= deleted
    if (isDone && left > 0) throw new Error(`${left} entries fewer than ${count}`)
  }
}

function countOf(file: string, table: string): number {
  const database = new DatabaseSync(file)
  const count = database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.['count']
  database.close()
  return Number(count)
}

describe('identities', () => {
  /** A log whose uptime passes as the test says, in steps of a minute. */
  function aging(minNewer: number) {
    const file = scratchFile()
    let clock = 1_000_000
    let appended = 0
    const log = openStore(file, {
      monotonic: () => clock,
      identityLimits: { minUptime: 48 * HOUR, minNewer },
    })
    const add = async (count: number) => {
      const first = appended + 1
      appended += count
      await appendTo(log, detections(first, appended), String(appended))
    }
    return {
      file,
      log,
      add,
      pass: async (ms: number, step = 60_000) => {
        for (let passed = 0; passed < ms; passed += step) {
          clock += step
          await add(1)
        }
      },
      restartMachine: () => (clock = 0),
    }
  }

  it('of deleted entries are kept for 48 hours of uptime, and then deleted', async () => {
    const { file, log, add, pass } = aging(0)
    for (let n = 0; n < 8; n++) await add(250)
    await pass(47 * HOUR, 5 * 60_000)
    await trimAll(log)
    expect(countOf(file, 'rivulet_entry')).toBe(0)
    expect(countOf(file, 'rivulet_identity')).toBe(2_000 + 47 * 12)
    await expect(appendTo(log, detections(1, 100))).resolves.toMatchObject({ entries: 0, duplicates: 100 })
    await pass(3 * HOUR, 5 * 60_000)
    await trimAll(log)
    // Of the last 48 hours, and up to an hour more.
    expect(countOf(file, 'rivulet_identity')).toBeLessThan(51 * 12)
    expect(countOf(file, 'rivulet_identity')).toBeGreaterThanOrEqual(48 * 12)
    await expect(appendTo(log, detections(1, 100))).resolves.toMatchObject({ entries: 100 })
  })

  it('are kept while there are fewer newer ones than the minimum', async () => {
    const { file, log, add, pass } = aging(5_000)
    for (let n = 0; n < 8; n++) await add(250)
    await pass(50 * HOUR, 5 * 60_000)
    await trimAll(log)
    expect(countOf(file, 'rivulet_identity')).toBe(2_000 + 50 * 12)
    for (let n = 0; n < 20; n++) await add(250)
    await trimAll(log)
    expect(countOf(file, 'rivulet_identity')).toBeLessThan(2_000 + 50 * 12 + 5_000)
    await expect(appendTo(log, detections(1, 1))).resolves.toMatchObject({ entries: 1 })
  })

  it('are kept while their entries are', async () => {
    const { file, log, add, pass } = aging(0)
    for (let n = 0; n < 8; n++) await add(250)
    const reader = await log.claim('consumer:slow')
    await log.commit(reader, { expect: null, cursor: await log.positionAt('start'), acknowledged: [] })
    await pass(60 * HOUR, 5 * 60_000)
    await trimAll(log)
    expect(countOf(file, 'rivulet_identity')).toBe(2_000 + 60 * 12)
  })

  it('do not age while the machine is off, or nothing is appended', async () => {
    const { file, log, add, pass, restartMachine } = aging(0)
    for (let n = 0; n < 8; n++) await add(250)
    await pass(40 * HOUR, 5 * 60_000)
    // Two days without an append, and a restart: five minutes each.
    await pass(48 * HOUR, 48 * HOUR)
    restartMachine()
    await pass(48 * HOUR, 48 * HOUR)
    await trimAll(log)
    expect(countOf(file, 'rivulet_identity')).toBe(2_000 + 40 * 12 + 2)
  })

  it('that got a new revision are as young as that', async () => {
    const { log, add, pass } = aging(0)
    await appendTo(log, [newEntry(completedRun('r'))], '0')
    for (let n = 0; n < 8; n++) await add(250)
    await pass(40 * HOUR, 5 * 60_000)
    await appendTo(log, [newEntry(completedRun('r', 'output'))], 'x')
    await pass(10 * HOUR, 5 * 60_000)
    await trimAll(log)
    await expect(appendTo(log, [newEntry(completedRun('r'))])).resolves.toMatchObject({ entries: 0 })
    await expect(appendTo(log, detections(1, 1))).resolves.toMatchObject({ entries: 1 })
  })
})

it('deletes large entries in steps', async () => {
  const log = openStore(scratchFile(), {})
  for (let n = 1; n <= 8; n++) await appendTo(log, detections(n, n, 'x'.repeat(1_500_000)), String(n))
  await expect(log.retention.trim({ limit: 100 })).resolves.toEqual({
    deleted: 2,
    isDone: false,
    blockedBy: null,
  })
  await expect(trimAll(log)).resolves.toBe(3)
  await expect(readAll(log)).resolves.toEqual([])
})

/** It is always the same time. */
const CLOCKS = { wall: () => 0, monotonic: () => 0 }

it('forgets what processes append meanwhile, one because of the other', async () => {
  const log = new OpenSqliteLog(scratchFile(), { owner: 'test' })
  onTestFinished(() => log.close())
  const source = '/v1/monitors/gone'
  const add = (id: string, cause?: Cause) => {
    const event = { ...change(id, cause === undefined ? 'gone' : 'output'), ...(cause && { cause }) }
    log.file.write('FULL', () => log.entries.append([newEntry(event)], CLOCKS))
  }
  let hops = 0
  const transactions: Transactions = {
    read: async (work) => log.file.read(() => work(log)),
    async write(durability, work) {
      const before = { source: hops === 0 ? source : '/v1/monitors/output', id: `${hops}`, revision: 1 }
      hops += 1
      if (hops <= 16) add(`${hops}`, { ...before, process: `p${hops % 2}`, origin: source, hops })
      return log.file.write(durability, () => work(log))
    },
    until: () => Promise.reject(new Error('not used')),
    opened: () => log,
    alone: async (work) => work(log),
    notify() {},
  }
  add('0')
  expect(await forget(transactions, source)).toBe(17)
  const { entries } = log.entries.read(log.entries.positionAt('start'), { limit: 100 })
  expect(entries).toEqual([])
})

it('uses the space of deleted entries again', async () => {
  const log = openStore(scratchFile(), {})
  const text = 'x'.repeat(2_000)
  const sizes: number[] = []
  for (let round = 0; round < 12; round++) {
    await appendTo(log, detections(round * 250 + 1, round * 250 + 250, text), String(round))
    const { bytes } = await log.retention.usage()
    sizes.push(bytes)
    if (round >= 2) await trimExactly(log, 250)
  }
  const [, , third = 0, ...later] = sizes
  expect(Math.max(...later)).toBeLessThan(third * 1.2)
})

it('leaves no text of a forgotten source in the files', async () => {
  const file = scratchFile()
  const log = openStore(file, {})
  const SECRET = 'a secret of this customer'
  const large = SECRET.repeat(2_000)
  await appendTo(log, [...detections(1, 200, SECRET), ...detections(201, 203, large)], '1')
  await appendTo(log, [newEntry(completedRun('kept', 'another text'))], '2')
  // Its pages are free: nothing overwrites them.
  await trimExactly(log, 100)
  const bytes = () => ['', '-wal'].map((suffix) => readFileSync(`${file}${suffix}`, 'latin1')).join('')
  expect(bytes()).toContain(SECRET)
  await expect(log.retention.forget('/v1/monitors/monitor_1')).resolves.toBe(103)

  expect(bytes()).not.toContain(SECRET)
  expect(countOf(file, 'rivulet_fill')).toBe(0)
  await expect(readAll(log)).resolves.toMatchObject([{ id: 'kept:completed' }])
})

describe('a full disk', () => {
  it('keeps a step from deleting, which does it once there is space', async () => {
    let database: DatabaseSync | undefined
    let isFull = false
    class Connection extends DatabaseSync {
      override exec(sql: string): void {
        if (isFull && sql === 'COMMIT' && this.isWriting) {
          throw Object.assign(new Error('database or disk is full'), { errcode: 13 })
        }
        super.exec(sql)
        this.isWriting = sql === 'BEGIN IMMEDIATE'
      }

      private isWriting = false
    }
    const log = openStore(scratchFile(), {
      connect: (path) => (database = new Connection(path, { timeout: 0 })),
    })
    await appendTo(log, detections(1, 50), '50')
    isFull = true
    const full = { name: 'LogFileError', message: expect.stringContaining('the disk is full') }
    await expect(log.retention.trim({ limit: 20 })).rejects.toMatchObject(full)
    expect(database?.isTransaction).toBe(false)
    isFull = false
    await expect(readAll(log)).resolves.toHaveLength(50)
    await expect(log.retention.trim({ limit: 20 })).resolves.toMatchObject({ deleted: 20 })
    await expect(readAll(log)).resolves.toHaveLength(30)
    expect((await log.retention.stats()).entries).toBe(30)
  })

  it('has room again once entries are deleted, although the file may not grow', async () => {
    let database: DatabaseSync | undefined
    const log = openStore(scratchFile(), {
      connect: (path) => (database = new DatabaseSync(path, { timeout: 0 })),
    })
    await appendTo(log, detections(1, 1), '0')
    database?.exec('PRAGMA max_page_count = 120')
    let end = 1
    const add = async () => {
      await appendTo(log, detections(end + 1, end + 20, 'x'.repeat(500)), String(end))
      end += 20
    }
    const untilFull = async (): Promise<unknown> => {
      for (;;) {
        const error: unknown = await add().catch((reason: unknown) => reason)
        if (error !== undefined) return error
      }
    }
    await expect(untilFull()).resolves.toMatchObject({ name: 'LogFileError', retryable: true })
    await trimExactly(log, 60)
    await expect(add()).resolves.toBeUndefined()
    await expect(readAll(log)).resolves.toHaveLength(end - 60)
  })
})
