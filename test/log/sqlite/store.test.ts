import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Position } from '../../../src/log/store/contract.ts'
import { sqliteStore } from '../../../src/log/sqlite/index.ts'
import { originalText, storedText } from '../../../src/protocol/stored-text.ts'
import { ArgumentError } from '../../../src/protocol/argument-error.ts'
import { LogFileError, LogInUseError } from '../../../src/log/errors.ts'
import { RANGE_AFTER, RANGE_FROM } from '../../../src/log/sqlite/processes.ts'
import { SqliteLogStore } from '../../../src/log/sqlite/store.ts'
import { appendTo, completedRun, detections, readAll } from './events.ts'
import { runProgram } from './processes.ts'
import { openLog, scratchFile } from './scratch.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

/** Runs statements on the file, as a user of the SQLite shell does. */
function change(file: string, sql: string): void {
  const database = new DatabaseSync(file)
  database.exec(sql)
  database.close()
}

describe('an argument that cannot be right', () => {
  it.each(['', ' ', ':memory:'])('is refused at the call: the file %o', (file) => {
    expect(() => sqliteStore(file)).toThrow(ArgumentError)
  })

  it('is refused at the call: options', () => {
    expect(() => sqliteStore('log.db', { owner: '' })).toThrow(ArgumentError)
    // @ts-expect-error: a misspelled option
    expect(() => sqliteStore('log.db', { ownr: 'me' })).toThrow('did you mean owner?')
    // @ts-expect-error: not a function
    expect(() => sqliteStore('log.db', { clock: 5 })).toThrow(ArgumentError)
  })
})

describe('states by prefix', () => {
  it('are found by the primary key, without a look at other keys', async () => {
    const file = scratchFile()
    await openLog(file).positionAt('start')
    const database = new DatabaseSync(file)
    onTestFinished(() => database.close())

    for (const sql of [RANGE_FROM, RANGE_AFTER]) {
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(1, 'a', 'b', 10)

      expect(plan.map((step) => step['detail'])).toEqual([
        'SEARCH rivulet_state USING PRIMARY KEY (generation=? AND key>? AND key<?)',
      ])
    }
  })
})

describe('a release', () => {
  it('that fails while another program has the file is tried again, and frees no later claim', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const file = scratchFile()
    const log = new SqliteLogStore(file, { owner: 'first', clock: Date.now, patience: 0 })
    onTestFinished(() => log.close())
    const fences = [await log.claim('stays'), await log.claim('again')]
    const other = new DatabaseSync(file)
    onTestFinished(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    for (const fence of fences) await expect(log.release(fence)).rejects.toBeInstanceOf(LogFileError)
    // Also when the next attempt fails.
    await vi.advanceTimersByTimeAsync(60_000)
    other.exec('ROLLBACK')
    await log.claim('again')
    const second = openLog(file)
    await expect(second.claim('stays')).rejects.toBeInstanceOf(LogInUseError)
    await vi.advanceTimersByTimeAsync(60_000)
    // After the writes that are under way.
    await appendTo(log, detections(1, 1), 'a')
    await expect(second.claim('stays')).resolves.toMatchObject({ name: 'stays' })
    await expect(second.claim('again')).rejects.toBeInstanceOf(LogInUseError)
  })
})

describe('an append', () => {
  it('of a more complete duplicate is the next revision, also when the earlier entry was deleted', async () => {
    const file = scratchFile()
    const log = openLog(file)
    await appendTo(log, [newEntry(completedRun('r'))], 'a')
    change(file, 'DELETE FROM rivulet_entry')
    const appended = await appendTo(log, [newEntry(completedRun('r', 'the output'))], 'b')

    expect(appended).toMatchObject({ entries: 1, duplicates: 0 })
    await expect(readAll(log)).resolves.toMatchObject([{ id: 'r:completed', revision: 2 }])
  })

  it('never takes a position again, also when all entries were deleted', async () => {
    const file = scratchFile()
    const log = openLog(file)
    const { end } = await appendTo(log, detections(1, 3), 'a')
    change(file, 'DELETE FROM rivulet_entry; DELETE FROM rivulet_identity')
    await appendTo(log, detections(4, 4), 'b')

    await expect(log.read(end, { limit: 10 })).resolves.toMatchObject({ entries: [{ id: 'mevt_4' }] })
    await expect(readAll(log)).resolves.toHaveLength(1)
    await expect(log.positionAt('start')).resolves.toBe(end)
    await expect(log.positionAt({ time: 0 })).resolves.toBe(end)
  })
})

describe('a page', () => {
  it('ends before large events take much memory', async () => {
    const log = openLog(scratchFile())
    for (let number = 1; number <= 6; number++) {
      await appendTo(log, detections(number, number, 'x'.repeat(700_000)), String(number))
    }
    const page = await log.read(await log.positionAt('start'), { limit: 100 })

    expect(page).toMatchObject({ entries: [{ id: 'mevt_1' }, { id: 'mevt_2' }], isEnd: false })
    expect(page.position).toBe(page.entries.at(-1)?.position)
    await expect(readAll(log)).resolves.toHaveLength(6)
  })

  it('looks at a bounded number of entries for a rare type, and goes on from there', async () => {
    const log = openLog(scratchFile())
    const count = 25 * 250
    for (let number = 0; number < count; number += 250) {
      await appendTo(log, detections(number + 1, number + 250), String(number))
    }
    await appendTo(log, [newEntry(completedRun('r'))], 'last')
    const pages = []
    let position: Position = await log.positionAt('start')
    for (let isEnd = false; !isEnd;) {
      const page = await log.read(position, { limit: 100, types: ['task_run.state'] })
      pages.push(page.entries.map(({ id }) => id))
      ;({ position, isEnd } = page)
    }

    expect(pages).toEqual([[], ['r:completed']])
    expect(position).toBe(await log.positionAt('end'))
  })

  it('skips a wide gap of deleted entries at once', async () => {
    const file = scratchFile()
    const log = openLog(file)
    const start = await log.positionAt('start')
    await appendTo(log, detections(1, 1), 'a')
    change(
      file,
      'UPDATE rivulet_entry SET position = 1000000000; UPDATE rivulet_log SET last_position = 1000000000',
    )

    const page = await log.read(start, { limit: 10, types: ['monitor.event_stream'] })
    expect(page).toMatchObject({ entries: [{ id: 'mevt_1' }], isEnd: true })
  })

  it.each(['not JSON', '[]', 'null', '{"id":"1"}'])(
    'with an event that cannot be read, %s, rejects and names it',
    async (event) => {
      const file = scratchFile()
      const log = openLog(file)
      const start = await log.positionAt('start')
      await appendTo(log, detections(1, 3))
      change(file, `UPDATE rivulet_entry SET event = '${event}' WHERE position = 2`)

      await expect(log.read(start, { limit: 10 })).rejects.toMatchObject({
        name: 'LogFileError',
        message: expect.stringContaining('give it up with: DELETE FROM rivulet_entry WHERE position = 2'),
      })
      await expect(log.read(start, { limit: 1 })).resolves.toMatchObject({ entries: [{ id: 'mevt_1' }] })
      change(file, 'DELETE FROM rivulet_entry WHERE position = 2')
      await expect(readAll(log)).resolves.toMatchObject([{ id: 'mevt_1' }, { id: 'mevt_3' }])
    },
  )
})

it('a log keeps its process alive while a call waits for entries, and only then', async () => {
  await expect(runProgram('lifetime-process.ts', scratchFile())).resolves.toEqual({
    ended: 0,
    message: { before: 0, during: 1, after: 0 },
  })
})

it('names, positions and types that UTF-8 does not have are kept apart', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', '\0', '\ud800', '\udc00', '\ufffd') })
  fc.assert(
    fc.property(text, (original) => {
      const stored = storedText(original)
      expect(stored.isWellFormed()).toBe(true)
      expect(stored).not.toContain('\0')
      expect(originalText(stored)).toBe(original)
    }),
  )
})

it('reads by types that UTF-8 does not have', async () => {
  const log = openLog(scratchFile())
  const [entry] = detections(1, 1)
  if (entry === undefined) throw new Error('no entry')
  const of = (id: string, type: string) => newEntry(Object.assign({ ...entry.event }, { id, type }))
  await appendTo(log, [of('1', 'a\0b'), of('2', 'a\0c'), of('3', '\ud800'), of('4', '\ud801')])

  const page = await log.read(await log.positionAt('start'), { limit: 9, types: ['a\0c', '\ud801'] })
  expect(page.entries.map(({ id }) => id)).toEqual(['2', '4'])
})
