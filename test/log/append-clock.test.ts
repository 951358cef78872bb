import { setImmediate as turn } from 'node:timers/promises'
import { ArgumentError, createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { Entry, EventLog } from 'rivulet/log'
import { describe, expect, it, onTestFinished } from 'vitest'
import { entriesOf } from './entries.ts'
import { monitored } from './record/monitored.ts'

const paid = (id: string) => ({ id, source: '/orders/1', type: 'order.paid', data: {} })

async function opened(tick: number, store = memoryStore()): Promise<EventLog> {
  const log = await openLog(store.connect(), { tick })
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

const ticksOf = async (log: EventLog) =>
  (await entriesOf(log)).flatMap((entry) => (entry.type === 'log.tick' ? [entry] : []))

/** Resolves once the log has so many ticks. */
async function ticked(
  log: EventLog,
  count: number,
): Promise<readonly Extract<Entry, { type: 'log.tick' }>[]> {
  for (;;) {
    const ticks = await ticksOf(log)
    if (ticks.length >= count) return ticks
    await turn()
  }
}

it('lets time pass in a log that has events of an application and no recording', async () => {
  const log = await opened(1)
  const fired = Promise.withResolvers<number>()
  log.process('silence', {
    version: 1,
    types: ['order.paid' as 'unknown'],
    key: ({ source }) => source,
    init: () => null,
    event: (_state, { recorded }, context) => context.timer('end', recorded + 5, { clock: 'event' }),
    timer: (_state, due, context) => fired.resolve(context.now('event') - due),
  })
  await log.append(paid('1'))
  expect(await fired.promise).toBeGreaterThanOrEqual(0)
  const [tick] = await ticksOf(log)
  expect(tick?.data).toEqual({ at: tick?.data.at, through: tick?.data.at, complete: true })
})

it('does not tick in a log without an append, or with `tick: Infinity`', async () => {
  const store = memoryStore()
  const [idle, silent] = [await opened(1, store), await opened(Infinity, store)]
  await silent.append(paid('1'))
  const other = await opened(1)
  await other.append(paid('1'))
  // As long as that takes.
  await ticked(other, 5)
  expect(await ticksOf(idle)).toEqual([])
})

it('ticks in one open log at a time, and in another one once that is closed', async () => {
  const store = memoryStore()
  const [one, two] = [await opened(1, store), await opened(1, store)]
  await one.append(paid('1'))
  await two.append(paid('2'))
  const numbers = (await ticked(one, 20)).map(({ id }) => Number(id.replace('tick:', '')))
  expect(numbers).toEqual(numbers.map((_, n) => n + 1))
  await one.close()
  const before = (await ticksOf(two)).length
  expect((await ticked(two, before + 5)).length).toBeGreaterThanOrEqual(before + 5)
})

it('leaves time to a recording once the log has one, also one that waits', async () => {
  const store = memoryStore()
  const log = await opened(1, store)
  await log.append(paid('1'))
  await ticked(log, 2)
  // Nobody listens there.
  const client = createClient({ apiKey: 'key', baseUrl: 'http://127.0.0.1:9' })
  const recording = log.record({ client, taskGroups: ['tgrp_1'], tick: 1 })
  let last = (await ticksOf(log)).at(-1)
  for (let n = 2; last === undefined || last.data.through === last.data.at; n++) {
    await log.append(paid(`${n}`))
    await turn()
    last = (await ticksOf(log)).at(-1)
  }
  const count = (await ticksOf(log)).length
  expect((await ticked(log, count + 5)).at(-1)?.data.through).toBe(last.data.through)
  await recording.stop()
})

describe('time in a log with a recording that has stopped', () => {
  it('waits for it', async () => {
    const log = await opened(1)
    const client = createClient({ apiKey: 'key', baseUrl: 'http://127.0.0.1:9' })
    const recording = log.record({ client, taskGroups: ['tgrp_1'], tick: 1 })
    const [last] = (await ticked(log, 3)).slice(-1)
    await recording.stop()
    await log.append(paid('1'))
    const count = (await ticksOf(log)).length
    const ticks = (await ticked(log, count + 10)).slice(count)
    expect(new Set(ticks.map(({ data }) => data.through))).toEqual(new Set([last?.data.through]))
  })

  it('goes on once that has lasted for longer than 15 minutes', async () => {
    const { client, log: recorded, service, watched, pass, root } = await monitored()
    const recording = recorded.record({ client, monitors: watched('a'), maxHold: Infinity })
    await pass(30)
    await service.stop()
    await pass(90, 10)
    await recording.stop()
    const before = (await ticksOf(recorded)).at(-1)?.data
    expect(before).toMatchObject({ complete: true })
    const log = await openLog(root.connect(), { tick: 1 })
    onTestFinished(() => log.close())
    await log.append(paid('1'))
    const count = (await ticksOf(log)).length
    for (const { data } of (await ticked(log, count + 3)).slice(count)) {
      expect(data.complete).toBe(false)
      expect(Date.parse(data.at) - Date.parse(data.through ?? '')).toBe(900_000)
    }
  })
})

it('refuses a wrong time between ticks', async () => {
  await expect(openLog(memoryStore(), { tick: 0 })).rejects.toThrow(ArgumentError)
  await expect(openLog(memoryStore(), { tick: Number.NaN })).rejects.toThrow(ArgumentError)
})

it('goes on once all sources of a recording have ended, so that timers of its last events fire', async () => {
  const log = await opened(1)
  const client = createClient({
    baseUrl: 'http://127.0.0.1',
    apiKey: null,
    fetch: async () => Response.json({ error: { message: 'it is gone' } }, { status: 404 }),
  })
  const fired = Promise.withResolvers<void>()
  log.process('end', {
    version: 1,
    types: ['source.failed'],
    key: ({ source }) => source,
    init: () => null,
    event: (_state, { recorded }, context) => context.timer('end', recorded + 1_000, { clock: 'event' }),
    timer: () => fired.resolve(),
  })
  await log.record({ client, monitors: ['monitor_1'] }).done
  await fired.promise
  expect((await entriesOf(log)).map(({ type }) => type)).toContain('source.failed')
})
