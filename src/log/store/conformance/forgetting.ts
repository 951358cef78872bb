import { equal, hasLength, matches, same } from './checks.ts'
import type { ResearchEvent } from '../../../protocol/event.ts'
import { change, completedRun, fullRun, taskRun } from './events.ts'
import { append, idsOf, readAll } from './fixture.ts'
import type { Area } from './area.ts'
import { newEntry } from '../new-entry.ts'

const SOURCE = '/v1/monitors/gone'

const causedBy = (id: string, source: string): ResearchEvent => {
  const event = { ...change(id, 'output'), via: 'process' as const }
  return { ...event, cause: { process: 'p', source, id: '1', revision: 1, hops: 1 } }
}

/** Deleting all of a source. */
export function testForgetting({ describe, it, open, isExact }: Area): void {
  describe('forgetting a source', () => {
    it('deletes its entries, wherever they are, and no others', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      for (const id of ['1', '2', '3', '4']) await append(log, fence, change(id, 'gone'), change(id, 'kept'))
      same(await log.retention.forget(SOURCE), 4)
      const entries = await readAll(log)
      equal(idsOf(entries), ['1', '2', '3', '4'])
      equal(new Set(entries.map(({ source }) => source)), new Set(['/v1/monitors/kept']))
      const { entries: counted } = await log.retention.stats()
      same(isExact ? counted : 4, 4)
      same(await log.retention.forget(SOURCE), 0)
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
      equal(await readAll(log, start), kept(0))
      equal(await readAll(log, before[3]?.position), kept(4))
      same((await log.reader('stream'))?.cursor, before[1]?.position)
      equal(await log.retention.trim({ limit: 9 }), {
        deleted: kept(0).length - kept(2).length,
        isDone: true,
        blockedBy: kept(2).length > 0 ? 'stream' : null,
      })
      equal(await readAll(log, before[1]?.position), kept(2))
    })

    it('deletes all revisions, and what processes have appended because of it', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const { source } = completedRun('r')
      await append(log, fence, completedRun('r'), completedRun('r', 'text'))
      await append(log, fence, causedBy('a', source), causedBy('b', 'another'))
      same(await log.retention.forget(source), 3)
      equal(idsOf(await readAll(log)), ['b'])
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
      equal(idsOf(page.entries), [change('1').id])
      same(page.isEnd, true)
    })

    it('does not append later what a process appends because of it', async () => {
      const { log } = await open()
      const fence = await log.claim('process:p')
      await append(log, fence, change('1', 'gone'), change('1', 'kept'), change('1', 'trimmed'))
      const cause = (id: string, of: string) => {
        const { cause: made, ...event } = causedBy(id, change('1', of).source)
        return newEntry({ ...event, ...(made && { cause: { ...made, id: change('1', of).id } }) })
      }
      await log.retention.forget(SOURCE)
      const entries = [cause('a', 'gone'), cause('b', 'kept'), cause('c', 'unknown')]
      const cursor = await log.positionAt('end')
      await log.commit(fence, { expect: null, cursor, acknowledged: [], entries })
      equal(idsOf(await readAll(log)).slice(2), ['b', 'c'])
      // What retention has deleted may still have effects.
      await log.retention.trim({ limit: 2 })
      await log.commit(fence, { expect: cursor, cursor, acknowledged: [], entries: [cause('d', 'trimmed')] })
      equal(idsOf(await readAll(log, cursor)), ['b', 'c', 'd'])
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
      same(await log.retention.forget(SOURCE), 1)
      equal(idsOf(await readAll(log)), ['c'])
    })

    it('does not record a forgotten event again, but a more complete one', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, completedRun('r'), change('1', 'gone'))
      await log.retention.forget(SOURCE)
      await log.retention.forget(completedRun('r').source)
      matches(await append(log, fence, completedRun('r'), change('1', 'gone')), { entries: 0 })
      matches(await append(log, fence, completedRun('r', 'text')), { entries: 1 })
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
      matches(await log.deadLetters.list('consumer:c', start, 9), [{ entry: { id: second?.id } }])
      hasLength((await log.deadLetters.redeliveries('consumer:c', 0, 9)).deadLetters, 1)
      same((await log.retention.stats()).inbox.pending, 1)
      matches(await log.inbox.pending(null, 9), [{ id: 'wkept' }])
    })

    it('finds a source with any characters', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const source = '/a"b\\c\0\ud800/é\n'
      await append(log, fence, { ...change('1'), source }, change('2'))
      same(await log.retention.forget(source), 1)
      equal(idsOf(await readAll(log)), ['2'])
    })
  })
}
