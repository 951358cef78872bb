import { setImmediate as turn } from 'node:timers/promises'
import { openLog } from 'rivulet'
import type { ProcessOptions } from 'rivulet'
import { describe, expect, it } from 'vitest'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { FencedError, LogInUseError, LogPositionError, ProcessVersionError } from '../../../src/log/errors.ts'
import { completedRun } from '../sqlite/events.ts'
import { change } from '../../operators/events.ts'
import { append, idsOf, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

/** Deleting the oldest entries. */
export function describeRetention(name: string, open: Open): void {
  describe(`${name}: retention`, () => {
    /** A log with the entries 1 to 5, recorded at 1,001 to 1,005. */
    async function withEntries() {
      let now = 1_000
      const opened = await open(() => now)
      const { log } = opened
      const start = await log.positionAt('start')
      const fence = await log.claim('stream')
      for (const id of ['1', '2', '3', '4', '5']) {
        now += 1
        await append(log, fence, change(id))
      }
      const entries = await readAll(log)
      return { ...opened, start, fence, entries, at: (i: number) => entries[i - 1]?.position ?? start }
    }

    const move = async (log: LogStore, reader: string, cursor: string) => {
      const fence = await log.claim(reader)
      const expected = (await log.reader(reader))?.cursor ?? null
      await log.commit(fence, { expect: expected, cursor, acknowledged: [] })
      await log.release(fence)
    }

    it('deletes the oldest entries, as many as it is asked for', async () => {
      const { log, connect } = await withEntries()
      expect(await log.retention.isTrimmed()).toBe(false)
      expect(await log.retention.trim({ limit: 2 })).toEqual({ deleted: 2, isDone: false, blockedBy: null })
      const second = await connect('second')
      expect(idsOf(await readAll(second))).toEqual(['3', '4', '5'])
      expect(await second.retention.isTrimmed()).toBe(true)
      expect(await log.retention.trim({ limit: 3 })).toEqual({ deleted: 3, isDone: true, blockedBy: null })
      expect(await readAll(second)).toEqual([])
      expect(await log.retention.trim({ limit: 3 })).toEqual({ deleted: 0, isDone: true, blockedBy: null })
    })

    it('deletes only entries that were recorded before a time', async () => {
      const { log } = await withEntries()
      const limit = { recordedBefore: 1_004, limit: 2 }
      expect(await log.retention.trim(limit)).toEqual({ deleted: 2, isDone: false, blockedBy: null })
      expect(await log.retention.trim(limit)).toEqual({ deleted: 1, isDone: true, blockedBy: null })
      expect(await log.retention.trim(limit)).toEqual({ deleted: 0, isDone: true, blockedBy: null })
      expect(idsOf(await readAll(log))).toEqual(['4', '5'])
    })

    it('deletes no more entries than have a size together', async () => {
      const { log, fence } = await withEntries()
      await log.retention.trim({ limit: 5 })
      await append(log, fence, ...['6', '7', '8', '9'].map((id) => change(id, 'm'.repeat(1_000))))
      expect(await log.retention.trim({ limit: 9, bytes: 1 })).toMatchObject({ deleted: 1, isDone: false })
      const rest = await log.retention.trim({ limit: 9, bytes: 2_000 })
      expect(rest.deleted).toBeLessThanOrEqual(2)
      expect(rest.deleted).toBeGreaterThan(0)
    })

    it('keeps what any reader has not acknowledged, and names that reader', async () => {
      const { log, connect, at } = await withEntries()
      await move(log, 'consumer:slow', at(2))
      await move(log, 'process:fast', at(4))
      const second = await connect('second')
      expect(await second.retention.trim({ limit: 9 })).toEqual({
        deleted: 2,
        isDone: true,
        blockedBy: 'consumer:slow',
      })
      await move(log, 'consumer:slow', at(5))
      expect(await second.retention.trim({ limit: 9 })).toEqual({
        deleted: 2,
        isDone: true,
        blockedBy: 'process:fast',
      })
      await move(log, 'process:fast', at(5))
      expect(await second.retention.trim({ limit: 9 })).toMatchObject({ deleted: 1, blockedBy: null })
      expect((await log.reader('consumer:slow'))?.cursor).toBe(at(5))
    })

    /** Runs a process until it has read everything, and returns the ids that it has got since it was new. */
    const run = async (store: LogStore, options: Partial<ProcessOptions<readonly string[]>>) => {
      const log = await openLog(store)
      const process = log.process<readonly string[]>('seen', {
        version: 1,
        key: () => 'ids',
        init: () => [],
        event: (ids, { id, type }, context) => context.set([...ids, type === 'log.gap' ? 'gap' : id]),
        ...options,
      })
      const behind = async () => (await log.stats()).readers.find(({ name: each }) => each === 'seen')?.lag
      while ((await behind())?.entries !== 0) await Promise.race([turn(), process.done])
      await process.stop()
      const ids = await process.get('ids')
      await log.close()
      return ids
    }

    it('does not wait for a process that does not hold it, which gets a gap and goes on', async () => {
      const { log, connect, fence } = await withEntries()
      const options = { holdsRetention: false }
      expect(await run(await connect('second'), options)).toEqual(['1', '2', '3', '4', '5'])
      await append(log, fence, change('6'), change('7'), change('8'))
      const own = { name: 'process:seen', holdsRetention: false }
      expect((await log.retention.stats()).readers).toMatchObject([{ ...own, behind: 3 }])

      expect((await log.retention.room()).neededBy).toBeNull()
      expect(await log.retention.trim({ limit: 7 })).toEqual({ deleted: 7, isDone: false, blockedBy: null })
      expect((await log.retention.stats()).readers).toMatchObject([{ ...own, behind: 1 }])
      expect(await run(await connect('third'), options)).toEqual(['1', '2', '3', '4', '5', 'gap', '8'])
    })

    it('waits for a process, or no longer, as its last start has said', async () => {
      const { log, connect, fence } = await withEntries()
      const holder = async () => (await log.retention.trim({ limit: 9 })).blockedBy
      const next = async (holdsRetention: boolean, id: string) => {
        await run(await connect(id), { holdsRetention })
        await append(log, fence, change(id))
      }
      await next(true, '6')
      expect(await holder()).toBe('process:seen')
      // Nothing is left to read when it starts.
      await run(await connect('free'), { holdsRetention: false })
      await append(log, fence, change('free'))
      expect(await holder()).toBeNull()
      await next(true, '7')
      expect(await holder()).toBe('process:seen')
      expect((await log.retention.room()).neededBy).toBe('process:seen')
      await next(false, '8')
      // Another version begins a new generation.
      await run(await connect('built'), { holdsRetention: false, version: 2, rebuild: 'available' })
      await append(log, fence, change('9'))
      expect(await holder()).toBeNull()
    })

    it('is not held by a process of the name of one that was removed', async () => {
      const { log, connect, fence } = await withEntries()
      await run(await connect('second'), { holdsRetention: false })
      await log.retention.remove('process:seen')
      expect(await log.processes.holdsRetention('process:seen')).toBe(true)
      await run(await connect('third'), {})
      await append(log, fence, change('6'))
      expect((await log.retention.trim({ limit: 9 })).blockedBy).toBe('process:seen')
    })

    it('is not held by a reader that its owner has removed, which keeps the claim', async () => {
      const { log, connect } = await withEntries()
      const fence = await log.claim('consumer:gone')
      await log.commit(fence, { expect: null, cursor: await log.positionAt('start'), acknowledged: [] })
      expect((await log.retention.trim({ limit: 1 })).blockedBy).toBe('consumer:gone')
      await log.retention.remove('consumer:gone', fence)
      expect(await log.reader('consumer:gone')).toBeUndefined()
      expect((await log.retention.trim({ limit: 1 })).deleted).toBe(1)
      await expect((await connect('other')).claim('consumer:gone')).rejects.toBeInstanceOf(LogInUseError)
      await log.release(fence)
      await expect(log.retention.remove('consumer:gone', fence)).rejects.toBeInstanceOf(FencedError)
    })

    it('builds a process again from what is left, after a gap, where it says so', async () => {
      const { log, connect, fence } = await withEntries()
      await run(await connect('second'), {})
      await log.retention.trim({ limit: 3 })
      await expect(run(await connect('third'), { version: 2, rebuild: true })).rejects.toBeInstanceOf(
        ProcessVersionError,
      )
      await append(log, fence, change('6'))
      const ids = await run(await connect('fourth'), { version: 2, rebuild: 'available' })
      expect(ids).toEqual(['gap', '4', '5', '6'])
    })

    it('gives the rest of the entries as before, at their positions', async () => {
      const { log, at, entries } = await withEntries()
      await log.retention.trim({ limit: 2 })
      expect(await readAll(log)).toEqual(entries.slice(2))
      expect(await readAll(log, at(2))).toEqual(entries.slice(2))
      expect(await readAll(log, at(4))).toEqual(entries.slice(4))
      expect(await readAll(log, await log.positionAt({ time: 1_001 }))).toEqual(entries.slice(2))
      expect(await readAll(log, await log.positionAt({ time: 1_004 }))).toEqual(entries.slice(3))
    })

    it('reports the deleted entries to a reader from before them, and goes on after them', async () => {
      const { log, start, at, entries } = await withEntries()
      await log.retention.trim({ limit: 3 })
      const page = await log.read(start, { limit: 1, types: ['task_run.state'] })
      expect(page).toEqual({
        entries: [
          {
            id: `gap:${start}:${page.position}`,
            source: '/log',
            type: 'log.gap',
            time: null,
            data: { from: start, to: page.position },
            received: '1970-01-01T00:00:01.003Z',
            via: 'log',
            position: page.position,
            recorded: 1_003,
            revision: 1,
            backfill: false,
          },
        ],
        lengths: [0],
        position: page.position,
        isEnd: false,
        gap: { from: start, to: page.position },
      })
      expect(await log.read(start, { limit: 1, types: ['task_run.state'] })).toEqual(page)
      expect(await readAll(log, page.position)).toEqual(entries.slice(3))
      expect((await log.read(at(3), { limit: 9 })).gap).toBeUndefined()
      expect((await log.read(at(2), { limit: 9 })).gap).toMatchObject({ from: at(2) })
    })

    it('reports deleted entries also where nothing is left, and then what is appended', async () => {
      const { log, start, fence } = await withEntries()
      await log.retention.trim({ limit: 9 })
      const page = await log.read(start, { limit: 9 })
      expect(page).toMatchObject({ entries: [{ type: 'log.gap' }], isEnd: true })
      expect(page.position).toBe(await log.positionAt('end'))
      expect(await log.positionAt('start')).toBe(page.position)
      await append(log, fence, change('6'))
      expect(idsOf(await readAll(log, page.position))).toEqual(['6'])
    })

    it('wakes a reader that waits before the deleted entries', async () => {
      const { log, start } = await withEntries()
      await log.retention.trim({ limit: 9 })
      await expect(log.wait(start, new AbortController().signal)).resolves.toBeUndefined()
    })

    it('takes the position of a deleted entry as a cursor, and none beyond the end', async () => {
      const { log, at } = await withEntries()
      await log.retention.trim({ limit: 3 })
      await move(log, 'consumer:late', at(1))
      expect((await log.reader('consumer:late'))?.cursor).toBe(at(1))
      expect(await log.retention.trim({ limit: 9 })).toMatchObject({ deleted: 0, blockedBy: 'consumer:late' })
      await expect(log.read(`${at(5)}9`, { limit: 1 })).rejects.toBeInstanceOf(LogPositionError)
    })

    it('keeps the identities of deleted entries: they are not recorded again', async () => {
      const { log, fence } = await withEntries()
      await append(log, fence, completedRun('r'))
      await log.retention.trim({ limit: 9 })
      expect(await log.retention.trimIdentities()).toBe(true)
      expect(await append(log, fence, change('1'), completedRun('r'))).toMatchObject({ entries: 0 })
      expect(await append(log, fence, completedRun('r', 'an output'))).toMatchObject({ entries: 1 })
      expect(await readAll(log)).toMatchObject([{ id: 'r:completed', revision: 2 }])
    })

    it('counts fewer bytes after entries were deleted', async () => {
      const { log, fence } = await withEntries()
      const text = 'x'.repeat(50_000)
      const empty = await log.retention.usage()
      await append(log, fence, ...['6', '7', '8', '9'].map((id) => change(id, text)))
      const full = await log.retention.usage()
      expect(full.bytes).toBeGreaterThan(empty.bytes + 150_000)
      await log.retention.trim({ limit: 9 })
      const trimmed = await log.retention.usage()
      expect(trimmed.bytes).toBeLessThan(full.bytes - 150_000)
    })

    it('deletes a reader that no open log has claimed, and nothing is kept for it', async () => {
      const { log, connect, at } = await withEntries()
      const second = await connect('second')
      const fence = await log.claim('consumer:c')
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [at(3)] })
      for (const each of [log, second]) {
        await expect(each.retention.remove('consumer:c')).rejects.toMatchObject({
          name: 'LogInUseError',
          claimed: 'consumer:c',
          owner: 'first',
        })
      }
      await log.release(fence)
      await second.retention.remove('consumer:c')
      expect(await log.reader('consumer:c')).toBeUndefined()
      expect(await log.retention.trim({ limit: 9 })).toMatchObject({ deleted: 5, blockedBy: null })
      await second.retention.remove('consumer:c')
      await second.retention.remove('never seen')
    })

    it('fences the last owner of a reader that is deleted', async () => {
      const { log, connect, loseClaims, at } = await withEntries()
      const fence = await log.claim('consumer:c')
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [] })
      await loseClaims(log)
      const second = await connect('second')
      await second.retention.remove('consumer:c')
      const late = log.commit(fence, { expect: null, cursor: at(2), acknowledged: [] })
      await expect(late).rejects.toBeInstanceOf(FencedError)
    })
  })
}
