import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { memoryStore } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { migrateLog, UNDIVIDED } from 'rivulet/log/store'
import type { LogStore } from 'rivulet/log/store'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { checkpointOf } from '../../src/log/process/progress.ts'
import { NO_TIME } from '../../src/streams/clocks.ts'
import { COPIED_PAGE } from '../../src/log/store/copy-store.ts'
import type { CopySource } from '../../src/log/store/copy-store.ts'
import { change } from '../operators/events.ts'
import { append, entriesOf, readAll } from './conformance/fixture.ts'
import { scratchFolder } from './sqlite/scratch.ts'

function opened(folder: string, name: string): LogStore {
  const log = sqliteStore(join(folder, `${name}.db`))
  onTestFinished(() => log.close())
  return log
}

type CopyStore = NonNullable<LogStore['copying']>
type Source = Awaited<ReturnType<CopyStore['source']>>
type Target = Awaited<ReturnType<CopyStore['target']>>

/** A store as another author could write it: arrays, of which copying alone is of interest here. */
function arrayStore(): Pick<LogStore, 'copying'> {
  let head: Parameters<Target['begin']>[0] = { entries: 0, last: 0, trimmed: { number: 0, recorded: 0 } }
  const entries: Parameters<Target['addEntries']>[0][] = []
  const records: Parameters<Target['add']>[0][] = []
  const source = async (): Promise<Source> => ({
    head,
    partitions: UNDIVIDED,
    file: undefined,
    numberOf: async (position) => Number(position),
    async *entries() {
      yield* entries
    },
    async *records() {
      yield* records
    },
    checkUnchanged: async () => {},
    close: async () => {},
  })
  const target = async (): Promise<Target> => ({
    partitionCount: 1,
    begin: async (given) => void (head = given),
    addEntries: async (page) => void entries.push(page),
    add: async (record) => void records.push(record),
    written: source,
    positionOf: async (number) => String(number),
    finish: async () => {},
    close: async () => {},
  })
  return { copying: { source, target } }
}

describe('migrateLog', () => {
  it('makes a log that goes on, of one without entries and of a process without a state', async () => {
    const folder = scratchFolder()
    const first = opened(folder, 'first')
    const cursor = await first.positionAt('start')
    const process = {
      checkpoint: checkpointOf({ version: 1, start: cursor, clocks: NO_TIME }),
      state: [],
      timers: [],
    }
    await first.commit(await first.claim('process:p'), { expect: null, cursor, acknowledged: [], process })
    await first.close()
    const second = opened(folder, 'second')
    await migrateLog(opened(folder, 'first'), second)
    expect(await append(second, await second.claim('stream'), change('1'))).toMatchObject({ entries: 1 })
    const expected = (await second.reader('process:p'))?.cursor ?? null
    const next = { ...process, state: [{ key: 'a', state: '1' }] }
    const fence = await second.claim('process:p')
    await second.commit(fence, { expect: expected, cursor: expected ?? '', acknowledged: [], process: next })
    expect(await second.processes.states('process:p', ['a'])).toEqual(['1'])
  })

  it('ends with the reason of its signal, and leaves nothing', async () => {
    const folder = scratchFolder()
    const from = opened(folder, 'from')
    const fence = await from.claim('stream')
    for (let at = 0; at < 600; at += 200) {
      const events = Array.from({ length: 200 }, (_, n) => change(`e${at + n}`))
      await from.append([{ fence, expect: null, entries: entriesOf(...events) }])
    }
    await from.release(fence)
    const stop = new AbortController()
    const counts: number[] = []
    const onProgress = (copied: number, entries: number) => {
      counts.push(copied)
      if (copied > 0 && copied < entries) stop.abort(new Error('enough'))
    }
    const migrated = migrateLog(from, opened(folder, 'to'), { onProgress, signal: stop.signal })
    await expect(migrated).rejects.toThrow('enough')
    expect(counts[0]).toBe(0)
    expect(await migrateLog(from, opened(folder, 'to'))).toMatchObject({ entries: 600, streams: 0 })
    expect(await readAll(opened(folder, 'to'))).toHaveLength(600)
  })

  it('reads long entries a few at a time', async () => {
    const from = opened(scratchFolder(), 'from')
    const fence = await from.claim('stream')
    const long = { ...change('long'), cursor: 'x'.repeat(300_000) }
    for (let n = 0; n < 10; n++) await append(from, fence, { ...long, id: `e${n}` })
    await from.release(fence)
    const copying = from.copying
    const source = await copying?.source()
    const lengths: number[] = []
    for await (const page of source?.entries() ?? []) {
      lengths.push(page.reduce((length, { json }) => length + json.length, 0))
    }
    await source?.close()
    expect(lengths).toHaveLength(3)
    expect(Math.max(...lengths)).toBeLessThan(COPIED_PAGE.length + 310_000)
  })

  it('names the file whose disk is full, and leaves nothing', async () => {
    const folder = scratchFolder()
    const from = opened(folder, 'from')
    const fence = await from.claim('stream')
    await append(from, fence, { ...change('1'), cursor: 'x'.repeat(300_000) })
    await from.release(fence)
    const { exec } = DatabaseSync.prototype
    const limited = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (
      this: DatabaseSync,
      sql,
    ) {
      exec.call(this, sql)
      if (sql.includes('CREATE TABLE')) exec.call(this, 'PRAGMA max_page_count = 60')
    })
    onTestFinished(() => limited.mockRestore())
    await expect(migrateLog(from, opened(folder, 'to'))).rejects.toMatchObject({
      name: 'LogFileError',
      message: expect.stringMatching(/to\.db could not be written, since the disk is full/),
    })
    expect(readdirSync(folder).filter((name) => name.startsWith('to'))).toEqual([])
  })

  it('refuses a divided consumer whose parts are too far apart for the commits of one reader', async () => {
    const folder = scratchFolder()
    const to = opened(folder, 'to')
    /** A log of two partitions, in which one part of a consumer is behind by this many entries of the other one. */
    const apart = (count: number) => {
      const partitions = { count: 2, of: (source: string) => Number(source.endsWith('b')) }
      const source: CopySource = {
        head: { entries: count + 1, last: count + 1, trimmed: { number: 0, recorded: 0 } },
        partitions,
        file: undefined,
        numberOf: () => Promise.reject(new Error('no effects have one')),
        async *entries() {
          for (let number = 1; number <= count + 1; number++) {
            const json = JSON.stringify(change(`e${number}`, number === 1 ? 'a' : 'b'))
            yield [{ number, recorded: 1, revision: 1, completeness: 0, backfill: false, json }]
          }
        },
        async *records() {
          const name = { kind: 'name', position: null } as const
          yield { ...name, name: 'consumer.0:far', reader: { cursor: 0, acknowledged: [] } }
          yield { ...name, name: 'consumer.1:far', reader: { cursor: count + 1, acknowledged: [] } }
        },
        async checkUnchanged() {},
        async close() {},
      }
      return Object.assign(memoryStore(), {
        copying: { source: async () => source, target: () => Promise.reject(new Error('it is a source')) },
      })
    }
    await expect(migrateLog(apart(25_000), to)).rejects.toMatchObject({
      name: 'LogUnsupportedError',
      message: expect.stringMatching(/"consumer:far" are too far apart.*Let it go on in the old log/),
    })
    await migrateLog(apart(5_000), to)
    // It moves on.
    const fence = await to.claim('consumer:far')
    const { cursor = '', acknowledged = [] } = (await to.reader('consumer:far')) ?? {}
    expect(acknowledged).toHaveLength(5_000)
    await to.commit(fence, { expect: cursor, cursor, acknowledged })
  })

  it('notices what is written to a log that cannot be locked, until the new one is complete', async () => {
    const folder = scratchFolder()
    const from = opened(folder, 'from')
    await from.positionAt('end')
    const steps: string[] = []
    const stepwise = async (): Promise<CopySource> => {
      const source = await from.copying?.source()
      if (source === undefined) throw new Error('a file can be copied')
      const check = source.checkUnchanged.bind(source)
      return Object.assign(source, {
        checkUnchanged: () => {
          steps.push('checked')
          return check()
        },
      })
    }
    const to = opened(folder, 'to')
    const target = await to.copying?.target()
    if (target === undefined) throw new Error('a file can be made')
    const written = target.written.bind(target)
    target.written = () => {
      steps.push('compared')
      return written()
    }
    const source = Object.assign(memoryStore(), { copying: { source: stepwise, target: async () => target } })
    await migrateLog(source, source)
    expect(steps.at(-1)).toBe('checked')
  })

  it('makes a file wait that is made by another process', async () => {
    const folder = scratchFolder()
    const from = opened(folder, 'from')
    await from.positionAt('end')
    let second: Promise<unknown> = Promise.resolve()
    const first = migrateLog(from, opened(folder, 'to'), {
      onProgress() {
        second = migrateLog(opened(folder, 'other'), opened(folder, 'to')).catch((error: unknown) => error)
      },
    })
    await opened(folder, 'other').positionAt('end')
    await first
    expect(await second).toMatchObject({ name: 'LogFileError' })
  })

  it('copies a log into a store of another author, and back', async () => {
    const folder = scratchFolder()
    const from = opened(folder, 'from')
    await append(from, await from.claim('stream'), change('a'), change('b'))
    await from.close()
    const own = arrayStore()
    const back = opened(folder, 'back')
    const migrated = await migrateLog(from, own)

    expect(migrated).toMatchObject({ entries: 2 })
    expect(await migrateLog(own, back)).toEqual(migrated)
    expect((await readAll(back)).map(({ id }) => id)).toEqual(['a', 'b'])
  })

  it('refuses stores that cannot be copied and wrong options', async () => {
    const folder = scratchFolder()
    const [file, memory] = [opened(folder, 'file'), memoryStore()]
    await expect(migrateLog(memory, file)).rejects.toMatchObject({ argument: 'from' })
    await expect(migrateLog(file, memory)).rejects.toMatchObject({ argument: 'to' })
    const options: object = { progress: 1 }
    await expect(migrateLog(file, file, options)).rejects.toMatchObject({ argument: 'progress' })
  })
})
