/* oxlint-disable no-await-in-loop -- days follow one another */
import { take } from 'rxjs'
import type { MonitorSnapshot } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { write } from '../service/corpus/folder.ts'
import { startReceiver } from '../service/webhooks/receiver.ts'
import { all, research, type Research } from './research.ts'
import { CHANGES, FIRST, history, readme, tracked } from './tracked-facts.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const DAYS = 30

/** Lets time pass, and waits until a monitor of the service was executed. */
async function pass({ service, clock }: Research, ms: number): Promise<void> {
  const before = service.records().monitor_events.length
  clock.advance(ms)
  await executed(service, before + 1)
}

function executed(service: Research['service'], count: number): Promise<void> {
  return expect
    .poll(() => service.records().monitor_events.length, { interval: 2, timeout: 10_000 })
    .toBeGreaterThanOrEqual(count)
}

describe('a month of a daily monitor', () => {
  it(
    'reports each new passage on its day, and a completion on every other',
    { timeout: 60_000 },
    async () => {
      const both = await research()
      const { client, docs, service } = both
      const { monitor_id } = await client.monitors.create({
        type: 'event_stream',
        frequency: '1d',
        settings: { query: 'spring tide' },
      })
      await executed(service, 1)
      const begin = both.clock.now()

      const expected: unknown[] = ['completion']
      for (let day = 1; day <= DAYS; day++) {
        const isNews = day % 7 === 3
        const text = isNews ? `Gauge ${day} measured a spring tide.` : `On day ${day} the sea was calm.`
        await write(docs, { [`day-${day}.md`]: `# Day ${day}\n\n${text}\n` })
        await pass(both, DAY)
        expected.push(isNews ? text : 'completion')
      }

      const events = (
        await all(client.monitors.events(monitor_id, { include_completions: true }))
      ).toReversed()
      const found = events.map((event) =>
        event.type === 'monitor.event_stream'
          ? lastLine(event.data.output.content)
          : event.type.slice('monitor.'.length),
      )
      expect(found).toEqual(expected)
      const times = events.flatMap((event) =>
        event.type === 'monitor.completion' ? [Date.parse(event.data.timestamp)] : [],
      )
      expect(times.every((time) => (time - begin) % DAY === 0)).toBe(true)
      expect((await client.monitors.get(monitor_id)).last_run_at).toBe(
        new Date(begin + DAYS * DAY).toISOString(),
      )
    },
  )
})

function lastLine(content: unknown): string {
  return String(content).trim().split('\n').at(-1) ?? ''
}

describe('a snapshot monitor', () => {
  it('is refused for a run that is active, and for one that has failed', async () => {
    const held = Promise.withResolvers<never>()
    const { client } = await research({ processor: { run: () => held.promise } })
    const { run_id } = await client.tasks.create({ input: 'tidelib', processor: 'base' })
    const create = async () =>
      await client.monitors.create({ type: 'snapshot', frequency: '1d', settings: { task_run_id: run_id } })

    await expect(create()).rejects.toMatchObject({ status: 422 })
    held.reject(new Error('no evidence'))
    await expect.poll(async () => (await client.tasks.get(run_id)).status).toBe('failed')
    await expect(create()).rejects.toThrow('Expected a completed run')
  })
})

describe('a month of a snapshot monitor', () => {
  it(
    'reports each change of the documents once, with what was before and after',
    { timeout: 60_000 },
    async () => {
      const both = await tracked(research)
      const { client, docs, service, run } = both
      const changes = history()
      const { monitor_id } = await client.monitors.create({
        type: 'snapshot',
        frequency: '1d',
        settings: { task_run_id: run },
      })
      await executed(service, 1)
      const begin = both.clock.now()
      const live: MonitorSnapshot[] = []
      const following = client.monitors.snapshots(monitor_id, { pollInterval: 0 }).pipe(take(changes.length))
      const subscription = following.subscribe((snapshot) => live.push(snapshot))
      onTestFinished(() => subscription.unsubscribe())

      for (let day = 1; day <= DAYS; day++) {
        const facts = changes.findLast((change) => change.day <= day)?.after ?? FIRST
        await write(docs, readme(facts, day))
        await pass(both, DAY)
        expect((await client.monitors.get(monitor_id)).output?.latest_snapshot?.content).toEqual(facts)
      }
      await expect.poll(() => live.length, { timeout: 10_000 }).toBe(changes.length)

      const dateOf = (day: number) => new Date(begin + day * DAY).toISOString().slice(0, 10)
      expect(
        live.map(({ event, changed, previous, current }) => [
          event.data.event_date,
          changed?.content,
          previous?.content,
          current?.content,
        ]),
      ).toEqual(changes.map(({ day, before, after }) => [dateOf(day), CHANGES[day], before, after]))
      for (const { changed, previous } of live) {
        expect(changed?.basis.map(({ field }) => field).toSorted()).toEqual(
          Object.keys(Object(changed?.content)).toSorted(),
        )
        expect(previous?.basis.map(({ field }) => field)).toEqual(['maintainer', 'license'])
      }
      const listed = await all(client.monitors.events(monitor_id, { include_completions: true }))
      expect(listed).toHaveLength(DAYS + 1)
      expect(listed.filter(({ type }) => type === 'monitor.snapshot')).toHaveLength(changes.length)
    },
  )
})

/** Waits until the next attempt is due at this time, and advances the clock to it. */
async function retry({ clock }: Research, at: number): Promise<void> {
  await expect.poll(() => clock.next, { interval: 2, timeout: 10_000 }).toBe(at)
  clock.advance(at - clock.now())
}

describe('a webhook whose receiver is down', () => {
  it(
    'is sent again over 48 hours until it is received, and names listed events',
    { timeout: 60_000 },
    async () => {
      const both = await tracked(research)
      const { client, docs, clock, run } = both
      const up = clock.now() + 30 * DAY + 40 * HOUR
      const receiver = await startReceiver(() => (clock.now() < up ? 503 : 200))
      const { monitor_id } = await client.monitors.create({
        type: 'snapshot',
        frequency: '30d',
        settings: { task_run_id: run },
        webhook: { url: receiver.url, event_types: ['monitor.event.detected'] },
      })
      await executed(both.service, 1)
      await write(docs, readme({ ...FIRST, license: 'ISC' }, 1))
      await pass(both, 30 * DAY)
      const detected = clock.now()

      // 5 s, and then twice the delay each time: the sixteenth attempt is the first one after 40 hours.
      const expected = Array.from({ length: 16 }, (_, n) => 5_000 * (2 ** n - 1))
      for (const [n, elapsed] of expected.entries()) {
        await (n === 0 ? undefined : retry(both, detected + elapsed))
        await expect.poll(() => receiver.received.length, { interval: 2, timeout: 10_000 }).toBe(n + 1)
      }
      await pass(both, detected + 30 * DAY - clock.now())

      expect(receiver.received).toHaveLength(expected.length)
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
      const [hook] = receiver.received
      const { data } = JSON.parse(hook?.body.toString() ?? '')
      expect(data.monitor_id).toBe(monitor_id)
      const events = await all(
        client.monitors.events(monitor_id, { event_group_id: data.event.event_group_id }),
      )
      expect(events).toMatchObject([
        { type: 'monitor.snapshot', data: { changed_output: { content: { license: 'ISC' } } } },
      ])
    },
  )
})
