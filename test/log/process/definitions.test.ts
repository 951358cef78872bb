import { setImmediate as turn } from 'node:timers/promises'
import { from as fromList, lastValueFrom, toArray } from 'rxjs'
import { ArgumentError } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { memoryStore, openLog, ProcessVersionError } from 'rivulet/log'
import type { EventLog, LogJob, MemoryStore } from 'rivulet/log'
import {
  aggregate,
  collect,
  count,
  define,
  from,
  hopping,
  inMemory,
  join,
  keyBy,
  ProcessError,
  session,
  sum,
  tumbling,
  where,
} from 'rivulet/streams'
import { describe, expect, it, onTestFinished } from 'vitest'
import { at, fromReadings, readings, short } from '../../streams/definitions/readings.ts'
import { tickAt } from '../../support/ticks.ts'
import { append } from '../append.ts'
import { entriesOf } from '../entries.ts'
import { caughtUp } from './windows.ts'

async function opened(store: MemoryStore = memoryStore()) {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return { store, log }
}

/** Events of so many seconds after the begin, whose numbers are these. */
const events = (...seconds: readonly number[]): readonly ResearchEvent[] =>
  seconds.map((number) => {
    const time = new Date(at(number)).toISOString()
    const data = { key: 'a', number }
    return { id: String(number), source: '/s', type: 'unknown', time, data, received: time, via: 'log' }
  })

const tick = (seconds: number) => tickAt(Date.now(), at(seconds))

/** What a process has appended, short. */
const resultsOf = async (log: EventLog, name = 'readings') =>
  short(
    (await entriesOf(log)).filter(
      ({ cause, type }) => cause?.process === name && (type === 'window.result' || type === 'stage.dropped'),
    ),
  )

/** Runs a definition until it has read all entries, and stops it. */
async function run(log: EventLog, job: LogJob, name = 'readings'): Promise<void> {
  // A failure must not be waited for.
  await Promise.race([caughtUp(log, name), job.done])
  await job.stop()
}

describe('a definition over a log', () => {
  it('appends each result once, however often it is stopped', async () => {
    const { store, log } = await opened()
    const definition = readings(tumbling('1m'))
    await append(store, [...events(1, 2), tick(30)])
    await run(log, log.process(definition))
    await append(store, [...events(59, 60), tick(60)])
    await run(log, log.process(definition))
    await append(store, [...events(3), tick(120)])
    await run(log, log.process(readings(tumbling('1m'))))
    expect(await resultsOf(log)).toEqual(['a 0-60: 1 2 59', 'a 60-120: 60'])
  })

  it('appends events of the process, which are the output of the entry that began the window', async () => {
    const { store, log } = await opened()
    await append(store, [...events(1, 2), tick(60)])
    await run(log, log.process(readings(tumbling('1m'))))
    const entries = await entriesOf(log)
    expect(entries.filter(({ type }) => type === 'window.result')).toMatchObject([
      {
        source: '/processes/readings',
        time: '2026-01-01T00:01:00.000Z',
        via: 'process',
        revision: 1,
        cause: { process: 'readings', source: '/s', id: '1', revision: 1 },
        data: { stage: 'windows', key: 'a', complete: true, values: { events: 2, sum: 3, all: [1, 2] } },
      },
    ])
  })

  it('gives a result whose tick was not complete as such', async () => {
    const { store, log } = await opened()
    await append(store, [...events(1), tickAt(Date.now(), at(60), false)])
    await run(log, log.process(readings(tumbling('1m'))))
    const result = (await entriesOf(log)).find(({ type }) => type === 'window.result')
    expect(result?.data).toMatchObject({ complete: false })
  })

  it('stops at an event for which a function throws, and goes on there once it is corrected', async () => {
    const { store, log } = await opened()
    const failingAt = (wrong: number) =>
      define(
        'readings',
        { version: 1 },
        fromReadings().pipe(
          keyBy(({ key, number }) => (number === wrong ? (7 as never) : key)),
          aggregate('windows', tumbling('1m'), { all: collect(({ number }) => number) }),
        ),
      )
    await append(store, [...events(1, 2, 3), tick(60)])
    const error: unknown = await log.process(failingAt(2)).done.catch((cause: unknown) => cause)
    expect(error).toBeInstanceOf(ProcessError)
    expect(error).toMatchObject({ process: 'readings', entry: { source: '/s', id: '2' } })
    await run(log, log.process(failingAt(-1)))
    expect(await resultsOf(log)).toEqual(['a 0-60: 1 2 3'])
  })

  it('stores that event as a dead letter and goes on with `onError`', async () => {
    const { store, log } = await opened()
    const definition = define(
      'readings',
      { version: 1 },
      fromReadings().pipe(
        keyBy(({ key }) => key),
        aggregate('windows', tumbling('1m'), {
          all: collect(({ number }) => number),
          sum: sum(({ number }) => (number === 2 ? NaN : number)),
        }),
      ),
    )
    await append(store, [...events(1, 2, 3), tick(60)])
    await run(log, log.process(definition, { onError: 'dead-letter' }))
    expect(await resultsOf(log)).toEqual(['a 0-60: 1 3'])
    const letters = []
    for await (const { entry } of log.deadLetters({ process: 'readings' }).list()) letters.push(entry?.id)
    expect(letters).toEqual(['2'])
  })

  it('stops at a state that is larger than `maxStateBytes`, and goes on with a greater one', async () => {
    const { store, log } = await opened()
    const definition = define(
      'readings',
      { version: 1 },
      fromReadings().pipe(
        keyBy(({ key }) => key),
        aggregate('windows', tumbling('1m'), {
          n: count(),
          all: collect(({ number }) => `${number}`.repeat(20_000)),
        }),
      ),
    )
    await append(store, [...events(1, 2, 3, 4), tick(60)])
    await expect(log.process(definition).done).rejects.toThrow(/over the limit of 65536 \(maxStateBytes\)/)
    await run(log, log.process(definition, { maxStateBytes: 262_144 }))
    expect(await resultsOf(log)).toHaveLength(1)
  })

  it.each([
    ['lateness', 1],
    ['after', ['other']],
    ['types', ['unknown']],
    ['version', 2],
    ['migrate', () => null],
    ['rebuild', 'yes'],
    ['share', 1],
    ['onError', 'skip'],
    ['maxStateBytes', 0],
    ['startAt', 'now'],
  ])('refuses the setting %s: %j', async (setting, value) => {
    const { log } = await opened()
    const start = () => log.process(readings(tumbling('1m')), { [setting]: value })
    expect(start).toThrow(ArgumentError)
    expect(start).toThrow(setting)
  })
})

describe('a definition that has changed', () => {
  const ran = async (share = false) => {
    const { store, log } = await opened(memoryStore({ partitions: share ? 4 : 1 }))
    await append(store, [...events(1, 61), tick(60)])
    const job = log.process(readings(tumbling('1m')), { share })
    await caughtUp(log, 'readings')
    await job.stop()
    return { store, log }
  }

  it.each([
    ['windows', readings(tumbling('2m'))],
    ['kinds of windows', readings(session('1m'))],
    ['steps', readings(hopping('1m', '30s'))],
    ['lateness', readings(tumbling('1m'), { lateness: '1s' })],
    ['backfill', readings(tumbling('1m'), { backfill: 'place' })],
  ])('is refused with the same version: other %s', async (_, changed) => {
    const { log } = await ran()
    const error: unknown = await log.process(changed).done.catch((cause: unknown) => cause)
    expect(error).toBeInstanceOf(ProcessVersionError)
    expect(error).toMatchObject({ process: 'readings', stored: 1, version: 1 })
    expect(String(error)).toContain('give it a higher version')
    await expect(log.process(changed, { rebuild: true }).done).rejects.toBeInstanceOf(ProcessVersionError)
  })

  it('is refused also if it is shared', async () => {
    const { log } = await ran(true)
    const { done } = log.process(readings(tumbling('2m')), { share: true })
    await expect(done).rejects.toBeInstanceOf(ProcessVersionError)
  })

  it('is refused with another version, unless it is built again', async () => {
    const { log } = await ran()
    const next = readings(tumbling('2m'), { version: 2 })
    await expect(log.process(next).done).rejects.toMatchObject({
      name: 'ProcessVersionError',
      stored: 1,
      version: 2,
      message: expect.stringContaining('rebuild'),
    })
  })

  it('is built again over the entries of before with `rebuild`, and appends the results from then on', async () => {
    const { store, log } = await ran()
    await append(store, [...events(62, 119)])
    const next = readings(tumbling('2m'), { version: 2 })
    await run(log, log.process(next, { rebuild: true }))
    await append(store, [...events(121), tick(120)])
    await run(log, log.process(next))
    expect(await resultsOf(log)).toEqual(['a 0-60: 1', 'a 0-120: 1 61 62 119'])
    const error: unknown = await log.process(readings(tumbling('1m'))).done.catch((cause: unknown) => cause)
    expect(error).toMatchObject({ name: 'ProcessVersionError', stored: 2, version: 1 })
  })

  it('does not append again what windows of before have had', async () => {
    const { store, log } = await ran()
    const next = readings(tumbling('30s'), { version: 2 })
    await run(log, log.process(next, { rebuild: true }))
    await append(store, [...events(91), tick(120)])
    await run(log, log.process(next))
    expect(await resultsOf(log)).toEqual(['a 0-60: 1', 'a 60-90: 61', 'a 90-120: 91'])
  })

  it('is refused if the name is that of a process of functions', async () => {
    const { log } = await opened()
    const job = log.process('readings', { version: 1, key: () => 'k', init: () => 0, event: () => {} })
    await caughtUp(log, 'readings')
    await job.stop()
    await expect(log.process(readings(tumbling('1m'))).done).rejects.toBeInstanceOf(ProcessVersionError)
  })

  it('goes on if only its functions have changed', async () => {
    const { store, log } = await ran()
    const doubled = define(
      'readings',
      { version: 1 },
      fromReadings().pipe(
        keyBy(({ key }) => key),
        aggregate('windows', tumbling('1m'), {
          events: count(),
          sum: sum(({ number }) => number),
          all: collect(({ number }) => 2 * (number ?? 0)),
        }),
      ),
    )
    await append(store, [...events(62), tick(120)])
    await run(log, log.process(doubled))
    expect(await resultsOf(log)).toEqual(['a 0-60: 1', 'a 60-120: 61 124'])
  })
})

describe('a definition over the results of another one', () => {
  const perMinute = readings(tumbling('1m'))
  const perHour = define(
    'per-hour',
    { version: 1 },
    from(perMinute).pipe(
      keyBy(({ data }) => data.key),
      aggregate('hours', tumbling('1h'), { all: collect(({ data }) => data.values.sum) }),
    ),
  )
  const minutes = (first: number, end: number) =>
    Array.from({ length: end - first }, (_, n) => (first + n) * 60)

  it('gets none of them late, whether the other one lags, is stopped, or starts later', async () => {
    const { store, log } = await opened()
    const second = log.process(perHour)
    await append(store, [...events(...minutes(0, 10)), tick(600)])
    await caughtUp(log, 'per-hour')
    const first = log.process(perMinute)
    await append(store, [...events(...minutes(10, 60)), tick(3_600)])
    await caughtUp(log, 'readings', 'per-hour')
    await first.stop()
    await append(store, [...events(...minutes(60, 120)), tick(7_200)])
    await caughtUp(log, 'per-hour')
    log.process(perMinute)
    // One more, since the first tick may come before a process knows that another one comes after it.
    for (const end of [7_200, 7_260, 7_320]) {
      await append(store, [tick(end)])
      await caughtUp(log, 'readings', 'per-hour')
    }
    expect(await resultsOf(log, 'per-hour')).toEqual([
      `a 0-3600: ${minutes(0, 60).join(' ')}`,
      `a 3600-7200: ${minutes(60, 120).join(' ')}`,
    ])
    await second.stop()
  })

  it('gets them also if both are shared', async () => {
    const { store, log } = await opened(memoryStore({ partitions: 4 }))
    log.process(perMinute, { share: true })
    log.process(perHour, { share: true })
    await append(store, [...events(...minutes(0, 60))])
    let end = 3_600
    while ((await resultsOf(log, 'per-hour')).length === 0) {
      await append(store, [tick((end += 1))])
      await turn()
    }
    expect((await resultsOf(log, 'per-hour')).map((text) => text.split(' ').toSorted())).toEqual([
      `a 0-3600: ${minutes(0, 60).join(' ')}`.split(' ').toSorted(),
    ])
  })
})

describe('a definition that reads another one', () => {
  const chained = () => {
    const minutes = readings(tumbling('1m'))
    const fives = define(
      'fives',
      { version: 1 },
      from(minutes).pipe(
        keyBy(({ data }) => data.key),
        aggregate('fives', tumbling('5m'), { minutes: count() }),
      ),
    )
    return { minutes, fives }
  }
  const counts = (outputs: readonly { readonly type: string; readonly data: unknown }[]) =>
    outputs.map(({ type, data }) => [type, Object(Object(data).values).minutes])

  it('has the same values in memory as over the log, at the end', async () => {
    const { store, log } = await opened()
    const { minutes, fives } = chained()
    await append(store, [tick(0)])
    const jobs = [log.process(minutes), log.process(fives)]
    for (let minute = 0; minute < 10; minute++) {
      await append(store, [...events(minute * 60), tick(minute * 60 + 60)])
      await caughtUp(log, 'readings', 'fives')
    }
    await append(store, [tick(700)])
    await caughtUp(log, 'readings', 'fives')
    for (const job of jobs) await job.stop()
    const entries = await entriesOf(log)
    const appended = entries.filter(
      ({ type, cause }) => type === 'window.result' && cause?.process === 'fives',
    )
    const inOnePass = await lastValueFrom(fromList(entries).pipe(inMemory(fives), toArray()))
    expect(counts(appended)).toEqual([
      ['window.result', 5],
      ['window.result', 5],
    ])
    expect(counts(inOnePass)).toEqual(counts(appended))
  })

  it('has the results of a left join without a partner in its windows, and none of them late', async () => {
    const { store, log } = await opened()
    const of = (isLeft: boolean) =>
      fromReadings().pipe(
        where(({ number }) => (number ?? 0) % 2 === (isLeft ? 0 : 1)),
        keyBy(({ key }) => key),
      )
    const pairs = define(
      'pairs',
      { version: 1 },
      of(true).pipe(join('pairs', of(false), { within: '10m', kind: 'left' })),
    )
    const lonely = define(
      'lonely',
      { version: 1 },
      from(pairs).pipe(
        keyBy(({ data }) => data.key),
        aggregate('minutes', tumbling('1m'), { alone: count(({ data }) => data.right === null) }),
      ),
    )
    const jobs = [log.process(pairs), log.process(lonely)]
    await append(store, [tick(0), ...events(0, 60, 120)])
    for (let minute = 1; minute < 20; minute++) {
      await append(store, [tick(minute * 60)])
      await caughtUp(log, 'pairs', 'lonely')
    }
    for (const job of jobs) await job.stop()
    const entries = await entriesOf(log)
    const results = entries.flatMap(({ type, data }) => (type === 'window.result' ? [data] : []))
    expect(results.map(({ start, values }) => [Date.parse(start) - at(0), values['alone']])).toEqual([
      [600_000, 1],
      [660_000, 1],
      [720_000, 1],
    ])
    expect(entries.filter(({ type }) => type === 'stage.dropped')).toEqual([])
  })
})

it('goes on after entries that were deleted before it has read them, if it does not hold them', async () => {
  const { store, log } = await opened(memoryStore())
  const definition = readings(tumbling('1m'))
  await append(store, [...events(1), tick(0)])
  await run(log, log.process(definition, { holdsRetention: false }))
  await append(store, [...events(2, 3, 4), tick(50)])
  await store.retention.trim({ limit: 4 })
  await append(store, [...events(5), tick(100)])
  await run(log, log.process(definition, { holdsRetention: false }))
  expect(await resultsOf(log)).toHaveLength(1)
})
