import { equal, matches, ok, rejects, same } from './checks.ts'
import { setImmediate as turn } from 'node:timers/promises'
import { openLog } from '../../event-log/open-log.ts'
import type { ProcessOptions } from '../../process/process.ts'
import type { LogStore } from '../contract.ts'
import { FencedError, LogInUseError, LogPositionError, ProcessVersionError } from '../../errors.ts'
import { change, completedRun } from './events.ts'
import { append, idsOf, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** Deleting the oldest entries. */
export function testRetention({ describe, it, open }: Area): void {
  describe('retention', () => {
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
      equal(await log.retention.trim({ limit: 2 }), { deleted: 2, isDone: false, blockedBy: null })
      const second = await connect('second')
      equal(idsOf(await readAll(second)), ['3', '4', '5'])
      equal(await log.retention.trim({ limit: 3 }), { deleted: 3, isDone: true, blockedBy: null })
      equal(await readAll(second), [])
      equal(await log.retention.trim({ limit: 3 }), { deleted: 0, isDone: true, blockedBy: null })
    })

    it('deletes only entries that were recorded before a time', async () => {
      const { log } = await withEntries()
      const limit = { recordedBefore: 1_004, limit: 2 }
      equal(await log.retention.trim(limit), { deleted: 2, isDone: false, blockedBy: null })
      equal(await log.retention.trim(limit), { deleted: 1, isDone: true, blockedBy: null })
      equal(await log.retention.trim(limit), { deleted: 0, isDone: true, blockedBy: null })
      equal(idsOf(await readAll(log)), ['4', '5'])
    })

    it('deletes no more entries than have a size together', async () => {
      const { log, fence } = await withEntries()
      await log.retention.trim({ limit: 5 })
      await append(log, fence, ...['6', '7', '8', '9'].map((id) => change(id, 'm'.repeat(1_000))))
      matches(await log.retention.trim({ limit: 9, bytes: 1 }), { deleted: 1, isDone: false })
      const rest = await log.retention.trim({ limit: 9, bytes: 2_000 })
      ok(rest.deleted <= 2)
      ok(rest.deleted > 0)
    })

    it('keeps what any reader has not acknowledged, and names that reader', async () => {
      const { log, connect, at } = await withEntries()
      await move(log, 'consumer:slow', at(2))
      await move(log, 'process:fast', at(4))
      const second = await connect('second')
      equal(await second.retention.trim({ limit: 9 }), {
        deleted: 2,
        isDone: true,
        blockedBy: 'consumer:slow',
      })
      await move(log, 'consumer:slow', at(5))
      equal(await second.retention.trim({ limit: 9 }), {
        deleted: 2,
        isDone: true,
        blockedBy: 'process:fast',
      })
      await move(log, 'process:fast', at(5))
      matches(await second.retention.trim({ limit: 9 }), { deleted: 1, blockedBy: null })
      same((await log.reader('consumer:slow'))?.cursor, at(5))
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
      equal(await run(await connect('second'), options), ['1', '2', '3', '4', '5'])
      await append(log, fence, change('6'), change('7'), change('8'))
      const own = { name: 'process:seen', holdsRetention: false }
      matches((await log.retention.stats()).readers, [{ ...own, behind: 3 }])

      same((await log.retention.room()).neededBy, null)
      equal(await log.retention.trim({ limit: 7 }), { deleted: 7, isDone: false, blockedBy: null })
      matches((await log.retention.stats()).readers, [{ ...own, behind: 1 }])
      equal(await run(await connect('third'), options), ['1', '2', '3', '4', '5', 'gap', '8'])
    })

    it('waits for a process, or no longer, as its last start has said', async () => {
      const { log, connect, fence } = await withEntries()
      const holder = async () => (await log.retention.trim({ limit: 9 })).blockedBy
      const next = async (holdsRetention: boolean, id: string) => {
        await run(await connect(id), { holdsRetention })
        await append(log, fence, change(id))
      }
      await next(true, '6')
      same(await holder(), 'process:seen')
      // Nothing is left to read when it starts.
      await run(await connect('free'), { holdsRetention: false })
      await append(log, fence, change('free'))
      same(await holder(), null)
      await next(true, '7')
      same(await holder(), 'process:seen')
      same((await log.retention.room()).neededBy, 'process:seen')
      await next(false, '8')
      // Another version begins a new generation.
      await run(await connect('built'), { holdsRetention: false, version: 2, rebuild: 'available' })
      await append(log, fence, change('9'))
      same(await holder(), null)
    })

    it('is not held by a process of the name of one that was removed', async () => {
      const { log, connect, fence } = await withEntries()
      await run(await connect('second'), { holdsRetention: false })
      await log.retention.remove('process:seen')
      same(await log.reader('process:seen'), undefined)
      await run(await connect('third'), {})
      await append(log, fence, change('6'))
      same((await log.retention.trim({ limit: 9 })).blockedBy, 'process:seen')
    })

    it('is not held by a reader that its owner has removed, which keeps the claim', async () => {
      const { log, connect } = await withEntries()
      const fence = await log.claim('consumer:gone')
      await log.commit(fence, { expect: null, cursor: await log.positionAt('start'), acknowledged: [] })
      same((await log.retention.trim({ limit: 1 })).blockedBy, 'consumer:gone')
      await log.retention.remove('consumer:gone', fence)
      same(await log.reader('consumer:gone'), undefined)
      same((await log.retention.trim({ limit: 1 })).deleted, 1)
      await rejects((await connect('other')).claim('consumer:gone'), LogInUseError)
      await log.release(fence)
      await rejects(log.retention.remove('consumer:gone', fence), FencedError)
    })

    it('builds a process again from what is left, after a gap, where it says so', async () => {
      const { log, connect, fence } = await withEntries()
      await run(await connect('second'), {})
      await log.retention.trim({ limit: 3 })
      await rejects(run(await connect('third'), { version: 2, rebuild: true }), ProcessVersionError)
      await append(log, fence, change('6'))
      const ids = await run(await connect('fourth'), { version: 2, rebuild: 'available' })
      equal(ids, ['gap', '4', '5', '6'])
    })

    it('gives the rest of the entries as before, at their positions', async () => {
      const { log, at, entries } = await withEntries()
      await log.retention.trim({ limit: 2 })
      equal(await readAll(log), entries.slice(2))
      equal(await readAll(log, at(2)), entries.slice(2))
      equal(await readAll(log, at(4)), entries.slice(4))
      equal(await readAll(log, await log.positionAt({ time: 1_001 })), entries.slice(2))
      equal(await readAll(log, await log.positionAt({ time: 1_004 })), entries.slice(3))
    })

    it('reports the deleted entries to a reader from before them, and goes on after them', async () => {
      const { log, start, at, entries } = await withEntries()
      await log.retention.trim({ limit: 3 })
      const page = await log.read(start, { limit: 1, types: ['task_run.state'] })
      equal(page, {
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
      equal(await log.read(start, { limit: 1, types: ['task_run.state'] }), page)
      equal(await readAll(log, page.position), entries.slice(3))
      same((await log.read(at(3), { limit: 9 })).gap, undefined)
      matches((await log.read(at(2), { limit: 9 })).gap, { from: at(2) })
    })

    it('reports deleted entries also where nothing is left, and then what is appended', async () => {
      const { log, start, fence } = await withEntries()
      await log.retention.trim({ limit: 9 })
      const page = await log.read(start, { limit: 9 })
      matches(page, { entries: [{ type: 'log.gap' }], isEnd: true })
      same(page.position, await log.positionAt('end'))
      same(await log.positionAt('start'), page.position)
      await append(log, fence, change('6'))
      equal(idsOf(await readAll(log, page.position)), ['6'])
    })

    it('wakes a reader that waits before the deleted entries', async () => {
      const { log, start } = await withEntries()
      await log.retention.trim({ limit: 9 })
      await log.wait(start, new AbortController().signal)
    })

    it('takes the position of a deleted entry as a cursor, and none beyond the end', async () => {
      const { log, at } = await withEntries()
      await log.retention.trim({ limit: 3 })
      await move(log, 'consumer:late', at(1))
      same((await log.reader('consumer:late'))?.cursor, at(1))
      matches(await log.retention.trim({ limit: 9 }), { deleted: 0, blockedBy: 'consumer:late' })
      await rejects(log.read(`${at(5)}9`, { limit: 1 }), LogPositionError)
    })

    it('keeps the identities of deleted entries: they are not recorded again', async () => {
      const { log, fence } = await withEntries()
      await append(log, fence, completedRun('r'))
      await log.retention.trim({ limit: 9 })
      same(await log.retention.clean(), false)
      matches(await append(log, fence, change('1'), completedRun('r')), { entries: 0 })
      matches(await append(log, fence, completedRun('r', 'an output')), { entries: 1 })
      matches(await readAll(log), [{ id: 'r:completed', revision: 2 }])
    })

    it('counts fewer bytes after entries were deleted', async () => {
      const { log, fence } = await withEntries()
      const text = 'x'.repeat(50_000)
      const empty = await log.retention.usage()
      await append(log, fence, ...['6', '7', '8', '9'].map((id) => change(id, text)))
      const full = await log.retention.usage()
      ok(full.bytes > empty.bytes + 150_000)
      await log.retention.trim({ limit: 9 })
      const trimmed = await log.retention.usage()
      ok(trimmed.bytes < full.bytes - 150_000)
    })

    it('deletes a reader that no open log has claimed, and nothing is kept for it', async () => {
      const { log, connect, at } = await withEntries()
      const second = await connect('second')
      const fence = await log.claim('consumer:c')
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [at(3)] })
      for (const each of [log, second]) {
        await rejects(each.retention.remove('consumer:c'), {
          name: 'LogInUseError',
          claimed: 'consumer:c',
          owner: 'first',
        })
      }
      await log.release(fence)
      await second.retention.remove('consumer:c')
      same(await log.reader('consumer:c'), undefined)
      matches(await log.retention.trim({ limit: 9 }), { deleted: 5, blockedBy: null })
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
      await rejects(late, FencedError)
    })
  })
}
