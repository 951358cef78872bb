import { describe, expect, it } from 'vitest'
import type { ResearchEvent } from 'rivulet'
import { change, fullRun, taskRun } from '../../operators/events.ts'
import { completedRun } from '../sqlite/events.ts'
import { append, idsOf, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

const SOURCE = '/v1/monitors/gone'

const causedBy = (id: string, source: string): ResearchEvent => {
  const event = { ...change(id, 'output'), via: 'process' as const }
  return { ...event, cause: { process: 'p', source, id: '1', revision: 1, hops: 1 } }
}

/** Deleting all of a source. */
export function describeForgetting(name: string, open: Open, isExact: boolean): void {
  describe(`${name}: forgetting a source`, () => {
    it('deletes its entries, wherever they are, and no others', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      for (const id of ['1', '2', '3', '4']) await append(log, fence, change(id, 'gone'), change(id, 'kept'))
      expect(await log.retention.forget(SOURCE)).toBe(4)
      const entries = await readAll(log)
      expect(idsOf(entries)).toEqual(['1', '2', '3', '4'])
      expect(new Set(entries.map(({ source }) => source))).toEqual(new Set(['/v1/monitors/kept']))
      const { entries: counted } = await log.retention.stats()
      expect(isExact ? counted : 4).toBe(4)
      expect(await log.retention.forget(SOURCE)).toBe(0)
    })

    it('leaves all positions as they are, and reports no gap', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const start = await log.positionAt('start')
      const events = ['1', '2', '3'].flatMap((id) => [change(id, 'kept'), change(id, 'gone')])
      for (const event of events) await append(log, fence, event)
      const before = await readAll(log)
      await log.commit(fence, { expect: null, cursor: before[1]?.position ?? '', acknowledged: [] })
      await log.retention.forget(SOURCE)
      const kept = (from: number) => before.slice(from).filter(({ source }) => source !== SOURCE)
      expect(await readAll(log, start)).toEqual(kept(0))
      expect(await readAll(log, before[3]?.position)).toEqual(kept(4))
      expect((await log.reader('stream'))?.cursor).toBe(before[1]?.position)
      expect(await log.retention.trim({ limit: 9 })).toEqual({
        deleted: kept(0).length - kept(2).length,
        isDone: true,
        blockedBy: kept(2).length > 0 ? 'stream' : null,
      })
      expect(await readAll(log, before[1]?.position)).toEqual(kept(2))
    })

    it('deletes all revisions, and what processes have appended because of it', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const { source } = completedRun('r')
      await append(log, fence, completedRun('r'), completedRun('r', 'text'))
      await append(log, fence, causedBy('a', source), causedBy('b', 'another'))
      expect(await log.retention.forget(source)).toBe(3)
      expect(idsOf(await readAll(log))).toEqual(['b'])
    })

    it('reads up to a position before which entries were forgotten', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, change('1', 'kept'), change('1', 'gone'))
      const start = await log.positionAt('start')
      const until = await log.positionAt('end')
      await append(log, fence, change('2', 'kept'))
      await log.retention.forget(SOURCE)
      const page = await log.read(start, { limit: 9, until })
      expect(idsOf(page.entries)).toEqual([change('1').id])
      expect(page.isEnd).toBe(true)
    })

    it('does not append later what a process appends because of it', async () => {
      const { log } = await open()
      const fence = await log.claim('process:p')
      await append(log, fence, change('1', 'gone'), change('1', 'kept'), change('1', 'trimmed'))
      const cause = (id: string, of: string) => {
        const { cause: made, ...event } = causedBy(id, change('1', of).source)
        return { event: { ...event, ...(made && { cause: { ...made, id: change('1', of).id } }) } }
      }
      await log.retention.forget(SOURCE)
      const entries = [cause('a', 'gone'), cause('b', 'kept'), cause('c', 'unknown')]
      const cursor = await log.positionAt('end')
      await log.commit(fence, { expect: null, cursor, acknowledged: [], entries })
      expect(idsOf(await readAll(log)).slice(2)).toEqual(['b', 'c'])
      // What retention has deleted may still have effects.
      await log.retention.trim({ limit: 2 })
      await log.commit(fence, { expect: cursor, cursor, acknowledged: [], entries: [cause('d', 'trimmed')] })
      expect(idsOf(await readAll(log, cursor))).toEqual(['b', 'c', 'd'])
    })

    it('deletes what processes appended because of one another', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const { cause, ...event } = causedBy('b', '/processes/p')
      await append(
        log,
        fence,
        { ...event, ...(cause && { cause: { ...cause, origin: SOURCE } }) },
        change('c'),
      )
      expect(await log.retention.forget(SOURCE)).toBe(1)
      expect(idsOf(await readAll(log))).toEqual(['c'])
    })

    it('does not record a forgotten event again, but a more complete one', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, completedRun('r'), change('1', 'gone'))
      await log.retention.forget(SOURCE)
      await log.retention.forget(completedRun('r').source)
      expect(await append(log, fence, completedRun('r'), change('1', 'gone'))).toMatchObject({ entries: 0 })
      expect(await append(log, fence, completedRun('r', 'text'))).toMatchObject({ entries: 1 })
    })

    it('deletes its dead letters and its webhooks', async () => {
      const { log } = await open()
      const fence = await log.claim('consumer:c')
      await append(log, fence, fullRun('r'), fullRun('kept'))
      const entries = await readAll(log)
      const first = entries.find(({ id }) => id === fullRun('r').id)
      const second = entries.find(({ id }) => id === fullRun('kept').id)
      const deadLetters = [first, second].map((entry) => ({
        position: entry?.position ?? '',
        error: { name: 'Error', message: 'no luck' },
        attempts: 1,
      }))
      await log.commit(fence, {
        expect: null,
        cursor: await log.positionAt('end'),
        acknowledged: [],
        deadLetters,
      })
      await log.deadLetters.redeliver('consumer:c', 'all')
      const webhook = (id: string) => {
        const data = taskRun(id, 'completed')
        const payload = { type: 'task_run.status', timestamp: '2026-01-01T00:00:00Z', data }
        return log.inbox.put({ id: `w${id}`, timestamp: 1, payload }, JSON.stringify(payload))
      }
      await webhook('r')
      await webhook('kept')
      await log.retention.forget(first?.source ?? '')
      const start = await log.positionAt('start')
      expect(await log.deadLetters.list('consumer:c', start, 9)).toMatchObject([
        { entry: { id: second?.id } },
      ])
      expect((await log.deadLetters.redeliveries('consumer:c', 0, 9)).deadLetters).toHaveLength(1)
      expect((await log.retention.stats()).inbox.pending).toBe(1)
      expect(await log.inbox.pending(null, 9)).toMatchObject([{ id: 'wkept' }])
    })

    it('finds a source with any characters', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const source = '/a"b\\c\0\ud800/é\n'
      await append(log, fence, { ...change('1'), source }, change('2'))
      expect(await log.retention.forget(source)).toBe(1)
      expect(idsOf(await readAll(log))).toEqual(['2'])
    })
  })
}
