import { setImmediate as turn } from 'node:timers/promises'
import { findAllSource, groupSource, monitorSource, runSource } from 'rivulet'
import { LogClosedError, LogValueError, openLog } from 'rivulet/log'
import type { RetentionOptions } from 'rivulet/log'
import { describe, expect, it, onTestFinished } from 'vitest'
import { EVENT_TYPES } from '../../src/protocol/event-types.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStoreOptions } from '../../src/log/memory/store.ts'
import { idsOfSource, sentInvoices } from './conformance/append.ts'
import { readAll } from './conformance/fixture.ts'

const EVENT = { id: 'sent', source: '/invoices/42', type: 'invoice.sent', data: { amount: 100 } }

async function opened(options: SimulatedStoreOptions = {}, retention: RetentionOptions = {}) {
  const store = simulatedStore(options)
  const log = await openLog(store, { retention })
  onTestFinished(() => log.close())
  return { store, log }
}

/** Data that can be read once. */
function throwingAgain() {
  let reads = 0
  return {
    get amount() {
      reads += 1
      if (reads > 1) throw new Error('boom')
      return reads
    },
  }
}

/** An event of a kilobyte. */
const large = (n: number) => ({ ...EVENT, id: `${n}`, data: 'x'.repeat(1_000) })

describe('log.append', () => {
  it.each(EVENT_TYPES)('refuses the type %s of this package', async (type) => {
    const { log } = await opened()
    await expect(log.append({ ...EVENT, type })).rejects.toMatchObject({ argument: 'event.type' })
  })

  it.each([
    'invoice',
    '',
    'invoice sent.now',
    'monitor.sent',
    'alert.acknowledged',
    'log.note',
    'monitors.snapshot',
    'alret.firing',
    'taskgroup.status',
    'task.run_state',
    'monitr.event_steam',
    'a.b.c.d.e.f.g',
    `a.${'b'.repeat(61)}`,
  ])('refuses the type %j, which a rule could not name either', async (type) => {
    const { log } = await opened()
    await expect(log.append({ ...EVENT, type })).rejects.toMatchObject({ argument: 'event.type' })
  })

  it.each([
    'resource.failed',
    'job.progress',
    'task.state',
    'course.live',
    'blog.tick',
    'dog.gap',
    'alarm.firing',
    'error.seen',
    'monitors.added',
  ])('takes the type %s, though one of this package is similar', async (type) => {
    const { store, log } = await opened()
    await log.append({ ...EVENT, type })
    expect(await readAll(store)).toMatchObject([{ type }])
  })

  it.each([
    monitorSource('monitor_1'),
    groupSource('tgrp_1'),
    runSource('trun_1'),
    findAllSource('findall_1'),
    '/v1/webhooks',
    '/v2/new',
    '/log',
    '/log/clock',
    '/rules/outage',
    '/processes/counts',
    '/gateway',
    '/subjects/me',
    '',
    'a'.repeat(1_025),
    '/lone/\ud800',
  ])('refuses the source %j', async (source) => {
    const { log } = await opened()
    await expect(log.append({ ...EVENT, source })).rejects.toMatchObject({ argument: 'event.source' })
  })

  it.each([
    '/invoices',
    'https://billing.example',
    'urn:billing',
    '/logs',
    '/village',
    '/rules-of-ours',
    '日本',
  ])('takes the source %j', async (source) => {
    const { store, log } = await opened()
    await log.append({ ...EVENT, source })
    expect(await readAll(store)).toMatchObject([{ source }])
  })

  it.each([
    'yesterday',
    '2026-01-31',
    '',
    '2026-02-20T12:00:00',
    '2026-02-30T12:00:00Z',
    '2026-02-29T12:00:00Z',
    '2100-02-29T12:00:00Z',
    '2026-04-31T12:00:00+02:00',
    '2026-01-31T24:00:00Z',
  ])('refuses the time %j', async (time) => {
    const { log } = await opened()
    await expect(log.append({ ...EVENT, time })).rejects.toMatchObject({ argument: 'event.time' })
  })

  it('refuses a field that it does not know, and names the nearest one', async () => {
    const { log } = await opened()
    const event = { ...EVENT, sourec: '/invoices' }
    await expect(log.append([EVENT, event])).rejects.toThrow(
      'events[1] has no option sourec; did you mean source?',
    )
  })

  const circle: { self?: unknown } = {}
  circle.self = circle
  let deep: unknown = 1
  for (let n = 0; n < 100_000; n++) deep = [deep]

  it.each([
    ['undefined', undefined],
    ['a function', () => {}],
    ['a bigint', 1n],
    ['a circle', circle],
    ['what is nested too deeply', deep],
    ['what becomes nothing', { toJSON: () => undefined }],
    ['what is too large', 'x'.repeat(16 * 1024 * 1024)],
  ])('refuses data that is %s, and appends nothing of the call', async (_, data) => {
    const { store, log } = await opened()
    await expect(log.append([EVENT, { ...EVENT, id: '2', data }])).rejects.toBeInstanceOf(LogValueError)
    expect(await readAll(store)).toEqual([])
  })

  it.each(['2024-02-29T12:00:00Z', '2000-02-29T23:59:59.999-12:00', '0001-01-31T00:00:00Z'])(
    'takes the time %j',
    async (time) => {
      const { store, log } = await opened()
      await log.append({ ...EVENT, time })
      expect(await readAll(store)).toMatchObject([{ time }])
    },
  )

  const boom = () => {
    throw new Error('boom')
  }
  const revoked = Proxy.revocable([], {})
  revoked.revoke()

  it.each([
    [
      'a getter that throws',
      {
        ...EVENT,
        get data() {
          return boom()
        },
      },
    ],
    [
      'a getter in its data that throws',
      {
        ...EVENT,
        data: {
          get amount() {
            return boom()
          },
        },
      },
    ],
    ['a name that is a Proxy', { ...EVENT, id: new Proxy({}, { get: boom, ownKeys: boom }) }],
    ['a Proxy that throws', new Proxy(EVENT, { ownKeys: boom })],
    ['data that throws when it is read again', { ...EVENT, data: throwingAgain() }],
    ['a list that throws', new Proxy([EVENT], { get: boom })],
    ['a Proxy that was revoked', revoked.proxy],
  ])('rejects with a typed error for %s, and appends nothing of the call', async (_, event) => {
    const { store, log } = await opened()
    const appended = log.append(event as typeof EVENT)
    await expect(appended).rejects.toMatchObject({ code: expect.stringMatching(/^(argument|log_value)$/) })
    expect(await readAll(store)).toEqual([])
  })

  it('names the event that cannot be read', async () => {
    const { log } = await opened()
    const event = new Proxy(EVENT, { ownKeys: boom })
    await expect(log.append([EVENT, event])).rejects.toMatchObject({
      message: expect.stringContaining('events[1]'),
      cause: new Error('boom'),
    })
  })

  it('appends an event of 8 million characters', async () => {
    const { store, log } = await opened()
    const data = 'x'.repeat(8_000_000)
    await log.append([EVENT, { ...EVENT, id: '2', data }, { ...EVENT, id: '3' }])
    expect(idsOfSource(await readAll(store), EVENT.source)).toEqual(['sent', '2', '3'])
  })

  it('appends nothing for no events', async () => {
    const { store, log } = await opened()
    expect(await log.append([])).toEqual({ entries: 0, duplicates: 0 })
    expect(await readAll(store)).toEqual([])
  })

  it('has no effect of later changes of an event', async () => {
    const { store, log } = await opened()
    const data = { amount: 100 }
    const appended = log.append({ ...EVENT, data })
    data.amount = 0
    await appended
    expect(await readAll(store)).toMatchObject([{ data: { amount: 100 } }])
  })

  it('appends the events of a call that fit into one transaction together, or not at all', async () => {
    let writes = 0
    const { store, log } = await opened({
      faults(write, step) {
        if (write !== 'append' || step !== 'before') return
        writes += 1
        if (writes === 2) throw new Error('crashed')
      },
    })
    // 256 and 44.
    const events = sentInvoices(300)
    await expect(log.append(events)).rejects.toThrow('crashed')
    expect(await readAll(store)).toHaveLength(256)

    expect(await log.append(events)).toEqual({ entries: 44, duplicates: 256 })
    expect(idsOfSource(await readAll(store))).toEqual(events.map(({ id }) => id))
  })

  it('goes on after a call that failed', async () => {
    let failures = 1
    const { store, log } = await opened({
      faults(write, step) {
        if (write === 'append' && step === 'before' && failures-- > 0) throw new Error('crashed')
      },
    })
    const [first, second] = [log.append(sentInvoices(1)), log.append(EVENT)]
    await expect(first).rejects.toThrow('crashed')
    expect(await second).toEqual({ entries: 1, duplicates: 0 })
    expect(await readAll(store)).toHaveLength(1)
  })

  it('is observed as an append', async () => {
    const { log } = await opened()
    const seen: unknown[] = []
    log.observe({
      async append(entries, proceed) {
        const { duplicates } = await proceed()
        seen.push([entries.map(({ id }) => id), duplicates])
        return proceed()
      },
    })
    await log.append(sentInvoices(2))
    await log.append(sentInvoices(1))
    expect(seen).toEqual([
      [['sent-1', 'sent-2'], 0],
      [['sent-1'], 1],
    ])
  })
})

describe('log.append while the log is paused', () => {
  const MB = 1024 * 1024
  const events = (count: number, from = 0) => Array.from({ length: count }, (_, n) => large(from + n))

  /** A log of 1 MB that is full, a reader that needs its first entry, and a call that waits. */
  async function full() {
    const { store, log } = await opened({}, { maxBytes: MB })
    const fence = await store.claim('consumer:slow')
    const start = await store.positionAt('start')
    await store.commit(fence, { expect: null, cursor: start, acknowledged: [] })
    let appended = 0
    for (;;) {
      const call = log.append(events(20, appended))
      appended += 20
      const outcome = await Promise.race([call, turns(200)])
      if (outcome !== undefined) continue
      return {
        store,
        log,
        call,
        async readAllOf() {
          const end = await store.positionAt('end')
          await store.commit(fence, { expect: start, cursor: end, acknowledged: [] })
        },
      }
    }
  }

  async function turns(count: number): Promise<void> {
    for (let n = 0; n < count; n++) await turn()
  }

  it('waits, and goes on once the reader has', async () => {
    const { log, call, readAllOf } = await full()
    const { bytes, pausedBy } = await log.stats()
    expect(pausedBy).toBe('consumer:slow')
    expect(bytes).toBeLessThan(1.1 * MB)
    await readAllOf()
    expect(await call).toEqual({ entries: 20, duplicates: 0 })
    expect((await log.stats()).pausedBy).toBeNull()
  })

  it('is refused when the log is closed, with all calls behind it', async () => {
    const { log, call } = await full()
    const calls = [call, log.append(EVENT)]
    const closed = log.close()
    for (const each of calls) await expect(each).rejects.toBeInstanceOf(LogClosedError)
    await closed
  })

  it('waits until its signal is aborted, and the calls around it stay', async () => {
    const { log, call, readAllOf } = await full()
    const stopping = new AbortController()
    const second = log.append({ ...EVENT, id: 'second' }, { signal: stopping.signal })
    const third = log.append({ ...EVENT, id: 'third' })
    stopping.abort(new Error('enough'))
    await expect(second).rejects.toThrow('enough')
    await readAllOf()
    expect(await Promise.all([call, third])).toMatchObject([{ entries: 20 }, { entries: 1 }])
    expect(await log.append({ ...EVENT, id: 'second' })).toMatchObject({ entries: 1 })
  })

  it('does not wait for the consumer whose handler appends, however much that is', async () => {
    const { log } = await opened({}, { maxBytes: MB })
    // As many as there is room for.
    await log.append(events(600))
    const end = await log.positionAt('end')
    const pausedBy = new Set<string | null>()
    const done = Promise.withResolvers<void>()
    const job = log.consume('mails', { concurrency: 1 }, async (entry) => {
      if (!/^\d+$/.test(entry.id)) return
      await log.append({ ...EVENT, id: `mail ${entry.id}`, data: 'x'.repeat(3_000) })
      pausedBy.add((await log.stats()).pausedBy)
      if (entry.position === end) done.resolve()
    })
    await done.promise
    await job.stop()
    expect(pausedBy).toContain('consumer:mails')
  })

  it('waits for a consumer of another open log of the same program', async () => {
    const { store, log } = await opened({}, { maxBytes: MB })
    const other = await openLog(store.connect(), { retention: { maxBytes: MB } })
    onTestFinished(() => other.close())
    const stuck = Promise.withResolvers<void>()
    const job = log.consume('mails', () => stuck.promise)
    await log.append(events(1_200))
    expect((await log.stats()).pausedBy).toBe('consumer:mails')

    await log.append(events(20, 1_200))
    const call = other.append(events(20, 1_220))
    expect(await Promise.race([call, turns(200)])).toBeUndefined()

    stuck.resolve()
    expect(await call).toEqual({ entries: 20, duplicates: 0 })
    await job.stop()
  })
})
