import { LogClosedError, openLog } from 'rivulet/log'
import type { AppEvent, Entry, EventLog } from 'rivulet/log'
import { ArgumentError } from 'rivulet'
import { filter, firstValueFrom } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { inFrontOf } from '../../../src/log/store/in-front-of.ts'
import { readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

/** Events of an application, `count` of each source. */
export function sentInvoices(count: number, sources: readonly string[] = ['/invoices']): readonly AppEvent[] {
  return Array.from({ length: count }, (_, n) => n + 1).flatMap((n) =>
    sources.map((source) => ({ id: `sent-${n}`, source, type: 'invoice.sent', data: { n } })),
  )
}

/** The ids of the entries of one source, in their order. */
export function idsOfSource(entries: readonly Entry[], source = '/invoices'): readonly string[] {
  return entries.filter((entry) => entry.source === source).map(({ id }) => id)
}

const ids = (count: number) => Array.from({ length: count }, (_, n) => `sent-${n + 1}`)

/** Events of an application, as a log over any store appends them. */
export function describeAppend(name: string, open: Open): void {
  describe(`${name}: events of an application`, () => {
    /** Two open logs of one log, which the test closes with their stores. */
    async function two() {
      const { log: store, connect, loseClaims } = await open()
      const second = await connect('second')
      const logs: readonly EventLog[] = [await openLog(store), await openLog(second)]
      const [log, other] = logs
      if (log === undefined || other === undefined) throw new Error('two logs')
      return { store, second, log, other, loseClaims }
    }

    it('are entries as all others, with when they were received, and without a time if they have none', async () => {
      const { store, log } = await two()
      const time = '2026-01-31T12:00:00Z'
      const event = { id: 'sent', source: '/invoices/42', type: 'invoice.sent', data: { amount: 100 } }

      expect(await log.append({ ...event, time })).toEqual({ entries: 1, duplicates: 0 })
      expect(await log.append({ ...event, id: 'sent again' })).toEqual({ entries: 1, duplicates: 0 })
      const [first, second] = await readAll(store)
      expect(first).toMatchObject({ ...event, time, via: 'app', revision: 1, backfill: false })
      expect(second).toMatchObject({ id: 'sent again', time: null })
      expect(Date.parse(first?.received ?? '')).not.toBeNaN()
    })

    it('are appended once, whoever appends them how often, each source in order', async () => {
      const { store, log, other } = await two()
      const sources = ['/invoices', '/orders']
      const events = sentInvoices(40, sources)
      const calls = [log, other, log, other].map((each) => each.append(events))
      const counts = await Promise.all(calls)

      expect(counts.map(({ entries, duplicates }) => entries + duplicates)).toEqual([80, 80, 80, 80])
      expect(counts.reduce((sum, { entries }) => sum + entries, 0)).toBe(80)
      const entries = await readAll(store)
      for (const source of sources) expect(idsOfSource(entries, source)).toEqual(ids(40))
    })

    it('keep the order of the calls, also of those that do not wait for each other', async () => {
      const { store, log } = await two()
      await Promise.all(sentInvoices(20).map((event) => log.append(event)))

      expect(idsOfSource(await readAll(store))).toEqual(ids(20))
    })

    it('may be more than one append has', async () => {
      const { store, log } = await two()

      expect(await log.append(sentInvoices(600))).toEqual({ entries: 600, duplicates: 0 })
      expect(await log.append(sentInvoices(601))).toEqual({ entries: 1, duplicates: 600 })
      expect(idsOfSource(await readAll(store))).toEqual(ids(601))
    })

    it('are not appended at all if one of a call is refused', async () => {
      const { store, log } = await two()
      const events = [...sentInvoices(300), { id: '', source: '/invoices', type: 'invoice.sent', data: 1 }]

      await expect(log.append(events)).rejects.toMatchObject({ argument: 'events[300].id' })
      await expect(log.append(events)).rejects.toBeInstanceOf(ArgumentError)
      expect(await readAll(store)).toEqual([])
    })

    it('are appended by a log whose claim was lost, and taken over by another one', async () => {
      const { store, log, other, loseClaims } = await two()
      const [first, second, third] = sentInvoices(3).map((event) => [event])
      await log.append(first ?? [])
      await loseClaims(store)
      // It takes the name over.
      expect(await other.append(second ?? [])).toEqual({ entries: 1, duplicates: 0 })

      expect(await log.append(third ?? [])).toEqual({ entries: 1, duplicates: 0 })
      expect(await other.append(sentInvoices(3))).toEqual({ entries: 0, duplicates: 3 })
      expect(idsOfSource(await readAll(store))).toEqual(ids(3))
    })

    it('need one claimed name for all logs that are open after each other', async () => {
      const { connect } = await open()
      const claimed = new Set<string>()
      for (const [n, event] of sentInvoices(4).entries()) {
        const store = await connect(`log ${n}`)
        const observed = inFrontOf(store, {
          claim(claiming, options) {
            claimed.add(claiming)
            return store.claim(claiming, options)
          },
        })
        await using log = await openLog(observed)
        await log.append(event)
      }

      expect(claimed).toEqual(new Set(['stream:app:1']))
    })

    it('are appended before the log is closed, and refused afterwards', async () => {
      const { second, log, other } = await two()
      const appended = sentInvoices(5).map((event) => log.append(event))
      await log.close()
      const late = log.append(sentInvoices(6))

      expect(await Promise.all(appended)).toEqual(appended.map(() => ({ entries: 1, duplicates: 0 })))
      await expect(late).rejects.toBeInstanceOf(LogClosedError)
      expect(idsOfSource(await readAll(second))).toEqual(ids(5))
      await other.close()
    })

    it('reach consumers and processes', async () => {
      const { log } = await two()
      const counts = log.process('counts', {
        version: 1,
        where: ({ via }) => via === 'app',
        key: (entry) => entry.source,
        init: () => 0,
        event: (count, _, context) => context.set(count + 1),
      })
      const consumed = Promise.withResolvers<Entry>()
      const job = log.consume('audit', consumed.resolve)
      await log.append(sentInvoices(2))

      expect(await consumed.promise).toMatchObject({ id: 'sent-1', via: 'app' })
      await firstValueFrom(counts.changes().pipe(filter(({ state }) => state === 2)))
      await Promise.all([counts.stop(), job.stop()])
    })
  })
}
