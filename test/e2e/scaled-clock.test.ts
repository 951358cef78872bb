/* oxlint-disable no-await-in-loop -- each document is written after the one before was noticed */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { FollowedMonitorEvent, MonitorSnapshot } from 'rivulet'
import type { ResearchService } from 'rivulet/service'
import type { Observable } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { folderOf } from '../service/corpus/folder.ts'
import { expectedSignature, startReceiver } from '../service/webhooks/receiver.ts'
import { all, scaledResearch, type ScaledResearch } from './research.ts'
import { FIRST, history, readme, tracked, type Facts } from './tracked-facts.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const DAYS = 30

/** A day takes 100 ms of real time. */
const MONTH_IN_SECONDS = DAY / 100
/**
 * 48 hours take 4 s of real time. Only on a machine that needs 3 s to notice a refusal does a webhook that is refused for
 * 6 hours expire.
 */
const TWO_DAYS_IN_SECONDS = (48 * HOUR) / 4_000

/** A test fails when it waits longer than this, in ms of real time. The expected wait is a fraction of a second. */
const DEADLINE = 40_000
const TEST = { timeout: 3 * DEADLINE }
const SOON = { interval: 2, timeout: DEADLINE }

/** Replaces a document as one change: the service never reads a part of it. */
async function replace(docs: string, files: Readonly<Record<string, string>>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-written-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    await writeFile(join(folder, 'written'), content)
    await rename(join(folder, 'written'), join(docs, path))
  }
}

/** Everything that a stream has emitted so far, until the test ends. */
function collected<T>(stream: Observable<T>): readonly T[] {
  const values: T[] = []
  const subscription = stream.subscribe((value) => values.push(value))
  onTestFinished(() => subscription.unsubscribe())
  return values
}

/** Resolves when the clock of the service has reached this time. */
function reached({ clock }: ResearchService, time: number): Promise<void> {
  return new Promise((resolve) => {
    clock.schedule(Math.max(0, time - clock.now()), resolve)
  })
}

/** A daily monitor is executed at most once on each of its days, and missed days are not made up for one by one. */
function expectOneExecutionPerDay(times: readonly number[], createdAt: number): void {
  const days = times.map((time) => Math.floor((time - createdAt) / DAY))
  expect(days).toEqual([...new Set(days)].toSorted((a, b) => a - b))
}

const timesOf = (events: readonly FollowedMonitorEvent[]): number[] =>
  events.flatMap((event) => (event.type === 'monitor.completion' ? [Date.parse(event.data.timestamp)] : []))

const idsOf = (events: readonly { readonly id: string }[]): string[] => events.map(({ id }) => id)

/** The last execution of a cancelled monitor may still be running, so that its events are final only when it has ended. */
async function cancelled({ client }: ScaledResearch, monitorId: string) {
  await client.monitors.cancel(monitorId)
  const listed = await all(client.monitors.events(monitorId, { include_completions: true }))
  return { monitor: await client.monitors.get(monitorId), events: listed.toReversed() }
}

describe('a month of a daily monitor in seconds', () => {
  it('reports each new passage once and in order, and is executed at most once a day', TEST, async () => {
    const both = await scaledResearch(MONTH_IN_SECONDS)
    const { client, docs, service } = both
    const { monitor_id, created_at } = await client.monitors.create({
      type: 'event_stream',
      frequency: '1d',
      settings: { query: 'spring tide' },
    })
    const createdAt = Date.parse(created_at)
    const live = collected(client.monitors.follow(monitor_id, { pollInterval: 0, include_completions: true }))

    const news: string[] = []
    for (let n = 1; service.clock.now() < createdAt + DAYS * DAY; n++) {
      const isNews = n % 3 === 1
      const text = isNews ? `Gauge ${n} measured a spring tide.` : `The sea was calm ${n} times.`
      const before = live.length
      await replace(docs, { [`note-${n}.md`]: `# Note ${n}\n\n${text}\n` })
      if (isNews) news.push(text)
      const isNoticed = () => (isNews ? passagesOf(live).length === news.length : live.length > before)
      await expect.poll(isNoticed, SOON).toBe(true)
    }
    const { monitor, events } = await cancelled(both, monitor_id)
    const lastRunAt = Date.parse(monitor.last_run_at ?? '')
    await expect.poll(() => live.findLast(({ id }) => id === events.at(-1)?.id), SOON).toBeDefined()

    expect(passagesOf(live)).toEqual(news)
    expect(idsOf(live).filter((id) => idsOf(events).includes(id))).toEqual(idsOf(events))
    expect(new Set(idsOf(live)).size).toBe(live.filter(({ type }) => type.startsWith('monitor.')).length)
    expectOneExecutionPerDay(timesOf(live), createdAt)
    expect(lastRunAt).toBeGreaterThanOrEqual(createdAt + (DAYS - 1) * DAY)
    const days = Math.floor((lastRunAt - createdAt) / DAY)
    expect(timesOf(live).length + news.length).toBeLessThanOrEqual(days + 1)
  })
})

function passagesOf(events: readonly FollowedMonitorEvent[]): string[] {
  return events.flatMap((event) =>
    event.type === 'monitor.event_stream'
      ? [String(event.data.output.content).trim().split('\n').at(-1) ?? '']
      : [],
  )
}

describe('a month of a snapshot monitor in seconds', () => {
  it(
    'reports each change of the documents once, each beginning where the one before ended',
    TEST,
    async () => {
      const both = await tracked((options) => scaledResearch(MONTH_IN_SECONDS, options))
      const { client, docs, service, run } = both
      const { monitor_id, created_at } = await client.monitors.create({
        type: 'snapshot',
        frequency: '1d',
        settings: { task_run_id: run },
      })
      const createdAt = Date.parse(created_at)
      const live = collected<MonitorSnapshot>(client.monitors.snapshots(monitor_id, { pollInterval: 0 }))

      const written: string[] = []
      const noticed: string[] = []
      for (const { day, after } of history()) {
        await reached(service, createdAt + day * DAY)
        written.push(dateOf(service.clock.now()))
        await replace(docs, readme(after, day))
        await expect.poll(() => live.at(-1)?.current?.content, SOON).toEqual(after)
        noticed.push(dateOf(service.clock.now()))
      }
      const last = Date.parse((await client.monitors.get(monitor_id)).last_run_at ?? '')
      const hasRun = async () => Date.parse((await client.monitors.get(monitor_id)).last_run_at ?? '')
      await expect.poll(hasRun, SOON).toBeGreaterThan(last)
      const { monitor, events } = await cancelled(both, monitor_id)

      // An execution that reads while a document changes may see its fields change one after another.
      for (const field of ['license', 'maintainer'] as const) {
        const values = live.flatMap(({ changed }) => {
          const value: unknown = Object(changed?.content)[field]
          return value === undefined ? [] : [value]
        })
        expect(values).toEqual(changesOf(field))
      }
      const states = [FIRST, ...live.map(({ current }) => current?.content)]
      expect(live.map(({ previous }) => previous?.content)).toEqual(states.slice(0, -1))
      for (const { changed, previous, current } of live) {
        expect(current?.content).toEqual({ ...Object(previous?.content), ...Object(changed?.content) })
      }
      const dates = live.map(({ event }) => event.data.event_date ?? '')
      expect(dates).toEqual(dates.toSorted())
      for (const [n, date] of written.entries()) {
        const until = noticed[n] ?? ''
        expect(dates.filter((reported) => reported >= date && reported <= until).length).toBeGreaterThan(0)
      }
      expect(idsOf(events.filter(({ type }) => type === 'monitor.snapshot'))).toEqual(
        live.map(({ event }) => event.id).filter((id) => idsOf(events).includes(id)),
      )
      expect(new Set(live.map(({ event }) => event.id)).size).toBe(live.length)
      expectOneExecutionPerDay(timesOf(events), createdAt)
      expect(Object(monitor.output).latest_snapshot?.content).toEqual(history().at(-1)?.after)
    },
  )
})

const dateOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** The values of a field after each of its changes. */
function changesOf(field: keyof Facts): string[] {
  return history().flatMap(({ before, after }) => (before[field] === after[field] ? [] : [after[field]]))
}

describe('a webhook over 48 hours in seconds', () => {
  it('is sent again, ever later, until the 48 hours are over, with the same id and body', TEST, async () => {
    const startedAt = Date.now()
    const data = join(await folderOf({}), 'service.db')
    const both = await tracked((options) => scaledResearch(TWO_DAYS_IN_SECONDS, { ...options, data }))
    const { service } = both
    const times: number[] = []
    const receiver = await startReceiver(() => {
      times.push(service.clock.now())
      return 503
    })
    await announced(both, receiver.url)
    await expect.poll(() => givenUp(data), SOON).toHaveLength(1)
    const endedAt = service.clock.now()

    const [createdAt = 0] = givenUp(data)
    expect(endedAt + delayAfter(times.length)).toBeGreaterThan(createdAt + 48 * HOUR)
    expect(times.length).toBeLessThanOrEqual(16)
    for (const [n, time] of times.slice(1).entries()) {
      expect(time - (times[n] ?? 0)).toBeGreaterThanOrEqual(delayAfter(n + 1))
    }
    const { received } = receiver
    expect(new Set(received.map(({ id }) => id)).size).toBe(1)
    expect(new Set(received.map(({ body }) => body.toString())).size).toBe(1)
    // The clock of the service is days ahead of the time that header and body tell.
    const bodyTime = Date.parse(JSON.parse(received[0]?.body.toString() ?? '').timestamp)
    expect(bodyTime).toBeGreaterThanOrEqual(startedAt - 1_000)
    expect(Math.abs((received[0]?.timestamp ?? 0) * 1_000 - bodyTime)).toBeLessThan(DEADLINE)
    for (const hook of received) {
      expect(hook.timestamp * 1_000).toBeGreaterThanOrEqual(bodyTime - 2_000)
      expect(hook.timestamp * 1_000).toBeLessThanOrEqual(Date.now())
      expect(hook.signatures).toContain(expectedSignature(service.webhookSecret, hook))
    }
  })

  it('is delivered once when its receiver is up again', TEST, async () => {
    const both = await tracked((options) => scaledResearch(TWO_DAYS_IN_SECONDS, options))
    const { client, service } = both
    const statuses: number[] = []
    const receiver = await startReceiver(() => {
      const status = service.clock.now() < up ? 503 : 200
      statuses.push(status)
      return status
    })
    // The attempt after 5.7 hours is refused. The next one is after 11 hours, or later on a slow machine.
    const up = service.clock.now() + 6 * HOUR
    const monitorId = await announced(both, receiver.url)
    await expect.poll(() => statuses.at(-1), SOON).toBe(200)
    await reached(service, service.clock.now() + 48 * HOUR)

    expect(statuses).toEqual([...statuses.slice(0, -1).map(() => 503), 200])
    const { data } = JSON.parse(receiver.received[0]?.body.toString() ?? '')
    expect(data.monitor_id).toBe(monitorId)
    const events = await all(client.monitors.events(monitorId, { event_group_id: data.event.event_group_id }))
    expect(events).toMatchObject([
      { type: 'monitor.snapshot', data: { changed_output: { content: { license: 'ISC' } } } },
    ])
  })
})

/** When the webhooks were created that the service has given up, in Unix ms of its clock. */
function givenUp(data: string): number[] {
  const database = new DatabaseSync(data, { readOnly: true })
  try {
    const rows = database.prepare('SELECT created_at FROM webhooks WHERE next_attempt_at IS NULL').all()
    return rows.map((row) => Number(row['created_at']))
  } finally {
    database.close()
  }
}

/** The delay after the n-th failed attempt (§6.1). */
const delayAfter = (n: number): number => 5_000 * 2 ** (n - 1)

/** A monitor that has one webhook to send; its id. */
async function announced(
  { client, docs, run }: ScaledResearch & { readonly run: string },
  url: string,
): Promise<string> {
  const { monitor_id } = await client.monitors.create({
    type: 'snapshot',
    frequency: '30d',
    settings: { task_run_id: run },
    webhook: { url, event_types: ['monitor.event.detected'] },
  })
  const hasRun = async () => (await client.monitors.get(monitor_id)).last_run_at
  await expect.poll(hasRun, SOON).toEqual(expect.any(String))
  await replace(docs, readme({ ...FIRST, license: 'ISC' }, 1))
  await client.monitors.trigger(monitor_id)
  return monitor_id
}
