import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { memoryLog, openLog } from 'rivulet'
import { exactlyOnce, migrateLog, sqliteLog } from 'rivulet/log/sqlite'
import type { Entry, LogStore } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { change } from '../operators/events.ts'
import { append, entriesOf, readAll } from './conformance/fixture.ts'
import { scratchFolder } from './sqlite/scratch.ts'

function opened(folder: string, name: string): LogStore {
  const log = sqliteLog(join(folder, `${name}.db`))
  onTestFinished(() => log.close())
  return log
}

describe('migrateLog', () => {
  it('lets a consumer with effects of its own database go on, once its position there is that of the new log', async () => {
    const folder = scratchFolder()
    const database = new DatabaseSync(':memory:')
    onTestFinished(() => database.close())
    database.exec('CREATE TABLE seen (id TEXT)')
    const insert = database.prepare('INSERT INTO seen VALUES (?)')
    /** Consumes until this entry. */
    const consume = async (store: LogStore, last: string) => {
      const log = await openLog(store)
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const effect = ({ id }: Entry) => {
        insert.run(id)
        if (id === last) resolve()
      }
      const job = log.consume('ledger', { startAt: 'start' }, exactlyOnce(database, { effect }))
      job.done.catch(reject)
      await promise.finally(() => job.stop().catch(() => {}))
      await log.close()
    }
    const first = opened(folder, 'first')
    await append(first, await first.claim('stream'), change('1'), change('2'), change('3'))
    await consume(first, '3')
    const second = () => opened(folder, 'second')
    await migrateLog(opened(folder, 'first'), second())
    const writer = second()
    await append(writer, await writer.claim('stream'), change('3'), change('4'), change('5'))

    await expect(consume(second(), '5')).rejects.toMatchObject({ name: 'LogPositionError' })
    // As docs/scale.md says.
    const { readers } = await writer.retention.stats()
    const cursor = readers.find(({ name }) => name === 'consumer:ledger')?.cursor ?? null
    database
      .prepare("UPDATE rivulet_effect_cursor SET token = 0, cursor = ?, acknowledged = '[]' WHERE reader = ?")
      .run(cursor, 'consumer:ledger')
    await consume(second(), '5')
    const seen = database.prepare('SELECT id FROM seen').all()
    expect(seen.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5'])
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

  it('refuses logs of other kinds and wrong options', async () => {
    const folder = scratchFolder()
    const [file, memory] = [opened(folder, 'file'), memoryLog()]
    await expect(migrateLog(memory, file)).rejects.toMatchObject({ argument: 'from' })
    await expect(migrateLog(file, memory)).rejects.toMatchObject({ argument: 'to' })
    const options: object = { progress: 1 }
    await expect(migrateLog(file, file, options)).rejects.toMatchObject({ argument: 'progress' })
  })
})
