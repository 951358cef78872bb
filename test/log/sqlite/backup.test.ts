import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Entry, Fence, LogStore, Position } from '../../../src/log/store/contract.ts'
import { LogPositionError } from '../../../src/log/errors.ts'
import { openLog as openEventLog } from '../../../src/log/event-log/open-log.ts'
import { EffectDatabase } from '../../../src/log/sqlite/effect-database.ts'
import { exactlyOnce } from '../../../src/log/sqlite/exactly-once.ts'
import { begin } from '../../../src/log/process/begin.ts'
import { appendTo, detections, readAll } from './events.ts'
import { startLogProcess } from './processes.ts'
import { openLog, scratchFile, scratchFolder } from './scratch.ts'

/** What SQLite finds wrong in a file. */
function integrityOf(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true })
  const found = database.prepare('PRAGMA integrity_check').get()?.['integrity_check']
  database.close()
  return found
}

/** Resolves once the condition holds. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

/** Whether there are tables for effects. */
function isCreated(database: DatabaseSync): boolean {
  const found = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'rivulet_effect_cursor'").get()
  return found !== undefined
}

const withoutPosition = (entries: readonly Entry[]) => entries.map((entry) => ({ ...entry, position: '' }))

describe('a backup', () => {
  it('is a log of its own, with the same entries, streams and readers', async () => {
    const log = openLog(scratchFile(), { owner: 'the source' })
    await appendTo(log, detections(1, 5), '5')
    const entries = await readAll(log)
    const cursor = entries[1]?.position ?? ''
    const ahead = entries[3]?.position ?? ''
    const reader = await log.claim('consumer:c')
    await log.commit(reader, { expect: null, cursor, acknowledged: [ahead] })
    const file = scratchFile()
    await log.backup(file)

    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    expect(readdirSync(dirname(file))).toEqual(['log.db'])
    expect(integrityOf(file)).toBe('ok')
    const copy = openLog(file)
    const copied = await readAll(copy)
    expect(withoutPosition(copied)).toEqual(withoutPosition(entries))
    expect(await copy.reader('consumer:c')).toEqual({
      cursor: copied[1]?.position,
      acknowledged: [copied[3]?.position],
    })
    await expect(copy.streamPositions(['s'])).resolves.toEqual(['5'])
  })

  it('refuses positions of its source, and the source those of the copy', async () => {
    const log = openLog(scratchFile())
    await appendTo(log, detections(1, 5))
    const file = scratchFile()
    await log.backup(file)
    const copy = openLog(file)
    const position = await log.positionAt('end')
    await expect(copy.read(position, { limit: 1 })).rejects.toBeInstanceOf(LogPositionError)
    await expect(log.read(await copy.positionAt('end'), { limit: 1 })).rejects.toBeInstanceOf(
      LogPositionError,
    )
  })

  it('has no claims, and fences of the source are void in it', async () => {
    const log = openLog(scratchFile())
    const fence = await log.claim('s')
    const file = scratchFile()
    await log.backup(file)
    const copy = openLog(file)
    const late = { fence, expect: null, entries: detections(1, 1) }
    await expect(copy.append([late])).rejects.toMatchObject({ name: 'FencedError' })
    await expect(copy.claim('s')).resolves.toMatchObject({ name: 's' })
    // The source goes on.
    await expect(log.append([late])).resolves.toMatchObject({ entries: 1 })
  })

  it('keeps the claims of its source, which other processes see', async () => {
    const file = scratchFile()
    const log = openLog(file, { owner: 'the source' })
    await log.claim('s')
    await log.backup(scratchFile())
    const other = startLogProcess(file)
    await expect(other.call('claim', 's')).rejects.toMatchObject({ name: 'LogInUseError' })
    await expect(other.call('claim', 'another')).resolves.toMatchObject({ token: 1 })
  })

  it('is of one moment, while two processes write without a pause', async () => {
    const file = scratchFile()
    const log = openLog(file)
    for (let n = 0; n < 8_000; n += 250)
      await appendTo(log, detections(n + 1, n + 250, 'x'.repeat(300)), String(n + 250))
    const writers = [startLogProcess(file), startLogProcess(file)]
    const fences = (await Promise.all(
      writers.map((writer, index) => writer.call('claim', `stream ${index}`)),
    )) as Fence[]
    const done = new AbortController()
    const writing = writers.map(async (writer, index) => {
      let last = 0
      for (; !done.signal.aborted; last++) {
        const first = (index + 1) * 1_000_000 + last * 5
        await writer.call('append', [
          {
            fence: fences[index],
            expect: last === 0 ? null : String(last),
            position: String(last + 1),
            entries: detections(first, first + 4),
          },
        ])
      }
      return last
    })
    const target = scratchFile()
    await log.backup(target).finally(() => done.abort())
    const written = await Promise.all(writing)

    expect(Math.min(...written)).toBeGreaterThan(0)
    expect(integrityOf(target)).toBe('ok')
    const copy = openLog(target)
    const numbers = (await readAll(copy)).map(({ id }) => Number(id.slice('mevt_'.length)))
    const positions = await copy.streamPositions(['stream 0', 'stream 1'])
    for (const [index, position] of positions.entries()) {
      const own = numbers.filter((number) => Math.floor(number / 1_000_000) === index + 1)
      // Whole appends, up to the position of the stream.
      expect(own).toEqual(
        Array.from({ length: Number(position ?? 0) * 5 }, (_, n) => (index + 1) * 1_000_000 + n),
      )
    }
    expect((await log.retention.stats()).entries).toBe(8_000 + (written[0] ?? 0) * 5 + (written[1] ?? 0) * 5)
  })

  it('refuses a file that exists, and leaves it as it is', async () => {
    const log = openLog(scratchFile())
    const file = scratchFile()
    writeFileSync(file, 'notes')
    await expect(log.backup(file)).rejects.toMatchObject({
      name: 'LogFileError',
      file,
      message: expect.stringContaining('exists already: name a new file'),
    })
    expect(readFileSync(file, 'utf8')).toBe('notes')
    expect(readdirSync(dirname(file))).toEqual(['log.db'])
  })

  it('into a folder that does not exist rejects, and names the copy', async () => {
    const log = openLog(scratchFile())
    await appendTo(log, detections(1, 1))
    const folder = join(scratchFolder(), 'missing')
    const file = join(folder, 'copy.db')
    await expect(log.backup(file)).rejects.toMatchObject({ name: 'LogFileError', file })
    expect(existsSync(folder)).toBe(false)
    await expect(readAll(log)).resolves.toHaveLength(1)
  })

  it('has processes that go on from where they were, in the midst of being built again too', async () => {
    const log = openLog(scratchFile())
    await appendTo(log, detections(1, 5))
    const run = async (store: LogStore, version: number, end: Position) => {
      const opened = await openEventLog(store)
      let calls = 0
      const counts = opened.process('counts', {
        version,
        rebuild: true,
        key: () => 'all',
        init: () => ({ seen: 0 }),
        event: ({ seen }, _entry, context) => {
          calls += 1
          context.set({ seen: seen + 1 })
        },
      })
      let isFailed = false
      counts.done.catch(() => (isFailed = true))
      const isAtEnd = async () => (await store.reader('process:counts'))?.cursor === end
      await until(async () => isFailed || (calls >= 5 && (await isAtEnd())))
      await counts.stop()
      return counts.get('all')
    }
    await run(log, 1, await log.positionAt('end'))
    // As a process that was killed after it began to be built again.
    const fence = await log.claim('process:counts')
    const settings = { version: 2, rebuild: true }
    const { signal } = new AbortController()
    const claimed = { store: log, fence, name: 'counts', signal }
    const { cursor } = await begin(claimed, settings)
    expect(cursor).toBe(await log.positionAt('start'))
    await log.release(fence)

    const file = scratchFile()
    await log.backup(file)
    const copy = openLog(file)
    await expect(run(copy, 2, await copy.positionAt('end'))).resolves.toEqual({ seen: 5 })
    await expect(run(copy, 3, await copy.positionAt('end'))).resolves.toEqual({ seen: 5 })
  })

  it("has effects of the log's own file, whose consumers go on in it", async () => {
    const source = scratchFile()
    const log = openLog(source)
    await appendTo(log, detections(1, 3))
    const run = async (store: LogStore, file: string, isRefused = false) => {
      const database = new DatabaseSync(file)
      database.exec('CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL)')
      const insert = database.prepare('INSERT INTO effect VALUES (?)')
      const opened = await openEventLog(store)
      const job = opened.consume(
        'ledger',
        { deadLetters: 'log', retries: 0 },
        exactlyOnce(database, {
          effect: ({ id }) => {
            if (id === 'mevt_2' && isRefused) throw new Error('not this one')
            insert.run(id)
          },
        }),
      )
      const end = await store.positionAt('end')
      const cursor = () => database.prepare('SELECT cursor FROM rivulet_effect_cursor').get()?.['cursor']
      let isEnded = false
      const ended = job.done.finally(() => (isEnded = true))
      await Promise.race([ended, until(() => isEnded || (isCreated(database) && cursor() === end))])
      await job.stop()
      const ids = database.prepare('SELECT id FROM effect ORDER BY rowid').all()
      database.close()
      return ids.map(({ id }) => id)
    }
    await expect(run(log, source, true)).resolves.toEqual(['mevt_1', 'mevt_3'])
    const file = scratchFile()
    await log.backup(file)
    const copy = openLog(file)
    await appendTo(copy, detections(4, 5), '2')
    const [letter] = await copy.deadLetters.list('consumer:ledger', null, 9)
    await copy.deadLetters.redeliver('consumer:ledger', letter?.entry.position ?? '')
    const applied = await run(copy, file)
    expect(applied.toSorted()).toEqual(['mevt_1', 'mevt_2', 'mevt_3', 'mevt_4', 'mevt_5'])
  })

  it("has the states in copies that are kept beside effects of the log's own file", async () => {
    const source = scratchFile()
    const log = openLog(source)
    await appendTo(log, detections(1, 1))
    const cursor = await log.positionAt('end')
    const effects = new DatabaseSync(source)
    const kept = { deadLetters: [], applied: [], redelivered: [], sent: [] }
    await new EffectDatabase(effects).moved.store(
      'ledger',
      ['consumer:ledger'],
      () => new Map([['consumer:ledger', { ...kept, state: { cursor, acknowledged: [] } }]]),
    )
    effects.close()
    const file = scratchFile()
    await log.backup(file)
    const copied = new DatabaseSync(file)
    const moved = await new EffectDatabase(copied).moved.peek('consumer:ledger')
    copied.close()
    expect(moved?.state?.cursor).toBe(await openLog(file).positionAt('end'))
  })

  it("has what an effect of the log's own file has committed by itself, as applied", async () => {
    const source = scratchFile()
    const log = openLog(source)
    await appendTo(log, detections(1, 3))
    const run = async (store: LogStore, file: string, isCommitting: boolean) => {
      const database = new DatabaseSync(file)
      database.exec('CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL)')
      const insert = database.prepare('INSERT INTO effect VALUES (?)')
      const ids = () => database.prepare('SELECT id FROM effect ORDER BY rowid').all()
      const effect = ({ id }: { readonly id: string }) => {
        insert.run(id)
        if (isCommitting && id === 'mevt_2') database.exec('COMMIT')
      }
      const job = (await openEventLog(store)).consume('ledger', exactlyOnce(database, { effect }))
      let isEnded = false
      const ended = job.done.catch(() => (isEnded = true))
      await Promise.race([ended, until(() => isEnded || ids().at(-1)?.['id'] === 'mevt_3')])
      await job.stop().catch(() => {})
      const found = ids().map(({ id }) => id)
      database.close()
      return found
    }
    await expect(run(log, source, true)).resolves.toEqual(['mevt_1', 'mevt_2'])
    const file = scratchFile()
    await log.backup(file)
    await expect(run(openLog(file), file, false)).resolves.toEqual(['mevt_1', 'mevt_2', 'mevt_3'])
  })

  it('of a backup is a log again', async () => {
    const log = openLog(scratchFile())
    await appendTo(log, detections(1, 3), '3')
    const [first, second] = [scratchFile(), scratchFile()]
    await log.backup(first)
    const copy = openLog(first)
    await copy.backup(second)
    const again = openLog(second)
    const fence = await again.claim('s')
    await again.append([{ fence, expect: '3', position: '4', entries: detections(3, 4) }])
    await expect(readAll(again)).resolves.toHaveLength(4)
    await expect(readAll(copy)).resolves.toHaveLength(3)
  })
})
