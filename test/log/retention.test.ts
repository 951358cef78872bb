import { setImmediate as turn } from 'node:timers/promises'
import { firstValueFrom, toArray, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { iterate, ofType } from 'rivulet/operators'
import { openLog } from '../../src/log/event-log/open-log.ts'
import { LogFileError, LogGapError, LogInUseError } from '../../src/log/errors.ts'
import { Recorder } from '../../src/log/record/recorder.ts'
import { excessOf, Retention } from '../../src/log/event-log/retention.ts'
import type { RetentionOptions } from '../../src/log/event-log/retention.ts'
import { ArgumentError } from '../../src/protocol/argument-error.ts'
import { change, fullRun } from '../operators/events.ts'
import { append } from './append.ts'
import { idsOf, readAll } from './conformance/fixture.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

const MB = 1024 * 1024

/** A change with a text of a kilobyte. */
const large = (id: string) => change(id, 'm'.repeat(1_000))

function never(error: unknown): void {
  throw error
}

/** Moves a reader to a position, as its owner does. */
async function moveReader(store: SimulatedStore, name: string, cursor: string): Promise<void> {
  const fence = await store.claim(name)
  const expected = (await store.reader(name))?.cursor ?? null
  await store.commit(fence, { expect: expected, cursor, acknowledged: [] })
  await store.release(fence)
}

/** Resolves once the condition is true. The test's own timeout ends a wait for what never happens. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn()
}

/** A recorder with a stream, whose retention runs in virtual time. */
async function recording(store: SimulatedStore, options: RetentionOptions) {
  const scheduler = new VirtualTimeScheduler()
  const retention = new Retention(store.retention, options, scheduler)
  const pauses: (string | null)[] = []
  const recorder = new Recorder(store, never, { retention, onPause: (reader) => pauses.push(reader) })
  const stream = await recorder.open('s')
  let added = 0
  return {
    recorder,
    pauses,
    /** Adds events and resolves when they are appended, and what follows is done. */
    async add(count: number, make = large): Promise<void> {
      for (let n = 0; n < count; n++) stream.add(make(`${++added}`), { text: () => `${added}` })
      await recorder.flushed()
      await settled()
    },
    /** A paused recorder looks whether there is room. */
    async later(): Promise<void> {
      scheduler.maxFrames = scheduler.now() + 1_000
      scheduler.flush()
      await settled()
    },
    async close(): Promise<void> {
      await recorder.close()
      await retention.stop()
    },
  }

  /** The store works in microtasks: a turn is enough for each step. */
  async function settled(): Promise<void> {
    for (let turns = 0; turns < 200; turns++) await turn()
  }
}

describe('what a log has beyond its limits', () => {
  const usage = { bytes: 0, walBytes: 0, newest: 10_000, isTimeCertain: true }
  const excess = (bytes: number, maxBytes: number) => excessOf({ ...usage, bytes }, maxBytes, undefined).bytes

  it('is what is older than the newest entry by more than the maximum age', () => {
    expect(excessOf(usage, 100 * MB, undefined).recordedBefore).toBeUndefined()
    expect(excessOf(usage, 100 * MB, 1_000).recordedBefore).toBe(9_000)
    const uncertain = { ...usage, isTimeCertain: false }
    expect(excessOf(uncertain, 100 * MB, 1_000).recordedBefore).toBeUndefined()
  })

  it('is what leaves no room for the write-ahead log: an eighth of the maximum, at most 64 MiB', () => {
    expect(excess(80 * MB, 80 * MB)).toBe(10 * MB)
    expect(excess(69 * MB, 80 * MB)).toBe(-1 * MB)
    expect(excess(8_001 * MB, 8_064 * MB)).toBe(1 * MB)
  })

  it('is a write-ahead log that needs more than that', () => {
    expect(excessOf({ ...usage, walBytes: 12 * MB }, 100 * MB, undefined).isWalTooLarge).toBe(false)
    expect(excessOf({ ...usage, walBytes: 13 * MB }, 100 * MB, undefined).isWalTooLarge).toBe(true)
  })
})

describe('a recorder', () => {
  it('deletes nothing within the limits', async () => {
    const store = simulatedStore()
    const { add, close } = await recording(store, {})
    await add(1_000)
    await close()
    expect(await readAll(store)).toHaveLength(1_000)
  })

  it('deletes old entries as time passes, also when only a tick comes', async () => {
    let now = 1_000
    const store = simulatedStore({ clock: () => now })
    const { add, close } = await recording(store, { maxAge: 10_000 })
    await add(900)
    now += 5_000
    await add(10)
    expect(await readAll(store)).toHaveLength(910)
    now += 5_001
    await add(1)
    expect(await readAll(store)).toHaveLength(11)
    await close()
  })

  it('keeps a log at its maximum size, whatever comes', async () => {
    const store = simulatedStore()
    const { add, close, pauses } = await recording(store, { maxBytes: 1 * MB })
    for (let round = 0; round < 12; round++) {
      await add(300)
      expect((await store.retention.usage()).bytes).toBeLessThan(1 * MB)
    }
    const entries = await readAll(store)
    expect(idsOf(entries).at(-1)).toBe('3600')
    expect(entries.length).toBeGreaterThan(200)
    expect(pauses).toEqual([])
    await close()
  })

  it('keeps what a reader needs, pauses and names it, and goes on when the reader has moved', async () => {
    const store = simulatedStore()
    const start = await store.positionAt('start')
    await moveReader(store, 'consumer:slow', start)
    const { recorder, add, later, close, pauses } = await recording(store, { maxBytes: 1 * MB })
    await add(300)
    expect(recorder.gate.closed).toBe(false)
    await add(700)
    expect(pauses).toEqual(['consumer:slow'])
    expect(recorder.gate.closed).toBe(true)
    await later()
    expect(recorder.gate.closed).toBe(true)
    expect(await readAll(store)).toHaveLength(1_000)

    await moveReader(store, 'consumer:slow', (await readAll(store))[899]?.position ?? start)
    await later()
    expect(pauses).toEqual(['consumer:slow', null])
    expect(recorder.gate.closed).toBe(false)
    expect((await readAll(store)).length).toBeGreaterThanOrEqual(100)
    await close()
  })

  it('that is closed while it is paused leaves no timer behind, and the next one goes on', async () => {
    const store = simulatedStore()
    await moveReader(store, 'consumer:slow', await store.positionAt('start'))
    const scheduler = new VirtualTimeScheduler()
    const retention = new Retention(store.retention, { maxBytes: 1 * MB }, scheduler)
    const first = new Recorder(store, never, { retention })
    const stream = await first.open('s')
    for (let n = 0; n < 1_000; n++) stream.add(large(`${n}`))
    await until(() => retention.pausedBy !== null && scheduler.actions.length > 0)
    await first.close()
    await until(() => scheduler.actions.every(({ closed }) => closed))

    const second = new Recorder(store, never, { retention })
    await second.open('s')
    expect(second.gate.closed).toBe(true)
    await until(() => scheduler.actions.some(({ closed }) => !closed))
    await second.close()
    await retention.stop()
  })

  it('goes on when the reader is removed', async () => {
    const store = simulatedStore()
    await moveReader(store, 'consumer:gone', await store.positionAt('start'))
    const { recorder, add, later, close } = await recording(store, { maxBytes: 1 * MB })
    await add(1_000)
    expect(recorder.gate.closed).toBe(true)
    await store.retention.remove('consumer:gone')
    await later()
    expect(recorder.gate.closed).toBe(false)
    await close()
  })

  it('is paused from the beginning where the log is too large, and not with a larger maximum', async () => {
    const store = simulatedStore()
    await moveReader(store, 'process:slow', await store.positionAt('start'))
    const first = await recording(store, { maxBytes: 1 * MB })
    await first.add(1_000)
    await first.close()
    const second = await recording(store.connect(), { maxBytes: 1 * MB })
    expect(second.recorder.gate.closed).toBe(true)
    await second.close()
    const third = await recording(store.connect(), { maxBytes: 10 * MB })
    expect(third.recorder.gate.closed).toBe(false)
    await third.close()
  })

  it('keeps nothing for a reader beyond the maximum age but what it needs, and does not pause', async () => {
    let now = 1_000
    const store = simulatedStore({ clock: () => now })
    await moveReader(store, 'consumer:slow', await store.positionAt('start'))
    const { recorder, add, close } = await recording(store, { maxAge: 10_000 })
    await add(10)
    now += 20_000
    await add(1)
    expect(await readAll(store)).toHaveLength(11)
    expect(recorder.gate.closed).toBe(false)
    await close()
  })

  it('goes on recording when a step of retention fails, and does it again', async () => {
    let isFull = true
    const store = simulatedStore({
      faults(write) {
        if (write === 'retention' && isFull) throw new Error('the disk is full')
      },
    })
    const { add, close } = await recording(store, { maxBytes: 1 * MB })
    await add(1_200)
    expect(await readAll(store)).toHaveLength(1_200)
    isFull = false
    await add(1)
    expect((await readAll(store)).length).toBeLessThan(1_000)
    await close()
  })
})

it('a log that is asked at intervals is looked at soon after an append, and not after each one', async () => {
  const store = simulatedStore()
  let looks = 0
  const { usage } = store.retention
  Object.assign(store.retention, {
    interval: 200,
    usage: () => {
      looks += 1
      return usage.call(store.retention)
    },
  })
  const { add, later, close } = await recording(store, { maxBytes: 1 * MB })
  for (let n = 0; n < 10; n++) await add(120)
  expect(looks).toBe(1)
  expect(await readAll(store)).toHaveLength(1_200)
  await later()
  expect((await readAll(store)).length).toBeLessThan(1_000)
  const since = looks
  await later()
  expect(looks).toBe(since)
  await close()
})

it('a recorder fails when entries cannot be deleted for good, since the log would grow without a limit', async () => {
  const damaged = new LogFileError('log.db', 'is damaged')
  let isDamaged = false
  const store = simulatedStore({
    faults(write) {
      if (write === 'retention' && isDamaged) throw damaged
    },
  })
  const failures: unknown[] = []
  const retention = new Retention(store.retention, { maxBytes: 1 * MB })
  const recorder = new Recorder(store, (error) => failures.push(error), { retention })
  const stream = await recorder.open('s')
  isDamaged = true
  for (let n = 0; n < 1_200; n++) stream.add(large(`${n}`))
  await recorder.close()
  await retention.stop()
  expect(failures).toEqual([damaged])
})

it('the log says which reader has paused its recorders, also where that could not be stored at first', async () => {
  let isBroken = false
  const store = simulatedStore({
    faults: (write) => {
      if (isBroken && write === 'retention') throw new Error('the disk is full')
    },
  })
  await moveReader(store, 'consumer:slow', await store.positionAt('start'))
  const { add, later, close, pauses } = await recording(store, { maxBytes: 12_000 })
  await add(2)
  const { trim } = store.retention
  store.retention.trim = async (limit) => {
    const trimmed = await trim.call(store.retention, limit)
    isBroken = true
    return trimmed
  }
  await add(10)
  expect(pauses).toEqual(['consumer:slow'])
  expect((await store.retention.stats()).pausedBy).toBe(null)
  store.retention.trim = trim
  isBroken = false
  await later()
  expect((await store.retention.stats()).pausedBy).toBe('consumer:slow')
  await close()
})

describe('openLog', () => {
  it.each([
    { retention: { maxAge: -1 } },
    { retention: { maxBytes: 0 } },
    { retention: { maxBytes: 1.5 } },
    { retention: { maxsize: 5 } },
    { retain: {} },
  ])('refuses the options %j', async (options) => {
    await expect(openLog(simulatedStore(), options as object)).rejects.toBeInstanceOf(ArgumentError)
  })
})

describe('a consumer that was overtaken', () => {
  /** A log of a consumer whose cursor is before entries that were deleted. */
  async function overtaken() {
    const store = simulatedStore()
    const start = await store.positionAt('start')
    await append(store, [change('1'), change('2'), change('3')])
    await store.retention.trim({ limit: 2 })
    // As a cursor that is kept in another database may be.
    await moveReader(store, 'consumer:late', start)
    const log = await openLog(store)
    onTestFinished(() => log.close())
    return { store, log, start }
  }

  it('gets an entry that says so, whatever its other filters are, and acknowledges it as any other', async () => {
    const { store, log, start } = await overtaken()
    const seen: unknown[] = []
    for await (const entry of iterate(
      log.consume('late', { types: ['monitor.event_stream', 'log.gap'], where: (e) => e.id === '3' }),
    )) {
      seen.push(entry.type === 'log.gap' ? entry.data.from : entry.id)
      if (seen.length === 2) break
    }
    expect(seen).toEqual([start, '3'])
    await log.close()
    const again = store.connect()
    const { cursor = '' } = (await again.reader('consumer:late')) ?? {}
    expect(cursor).not.toBe(start)
    expect(await again.read(cursor, { limit: 9 })).toMatchObject({ entries: [{ id: '3' }] })
  })

  it('that wants all types gets it too', async () => {
    const { log } = await overtaken()
    const gap = log.consume('late').pipe(ofType('log.gap'))
    expect(await firstValueFrom(gap)).toMatchObject({ source: '/log', via: 'log' })
  })

  it('errors where its types leave gaps out, and names the positions', async () => {
    const { log, start } = await overtaken()
    const entries = log.consume('late', { types: ['monitor.event_stream'] })
    const error: unknown = await firstValueFrom(entries.pipe(toArray())).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(LogGapError)
    expect(error).toMatchObject({ consumer: 'consumer:late', from: start })
  })

  it('and was removed begins anew, without a gap', async () => {
    const { log } = await overtaken()
    await log.remove({ consumer: 'late' })
    expect(await firstValueFrom(log.consume('late'))).toMatchObject({ id: '3' })
  })

  it('a new one begins at the first entry that is left, also where entries are deleted at that moment', async () => {
    const log = await trimmedAtFirstCommit()
    expect(await firstValueFrom(log.consume('new'))).toMatchObject({ id: '3' })
  })
})

/** A log of three entries, of which two are deleted while its first reader begins. */
async function trimmedAtFirstCommit() {
  const store = simulatedStore()
  await append(store, [change('1'), change('2'), change('3')])
  const racing = store.connect()
  const { commit } = racing
  racing.commit = async (...args) => {
    racing.commit = commit.bind(racing)
    await store.retention.trim({ limit: 2 })
    await racing.commit(...args)
  }
  const log = await openLog(racing)
  onTestFinished(() => log.close())
  return log
}

it('a new process begins at the first entry that is left, also where entries are deleted at that moment', async () => {
  const log = await trimmedAtFirstCommit()
  const run = (version: number) =>
    log.process('p', {
      version,
      rebuild: true,
      types: ['monitor.event_stream'],
      key: ({ id }) => id,
      init: () => ({ in: 0 }),
      event: (_state, _entry, context) => context.set({ in: version }),
    })
  const first = run(1)
  const seen = await Promise.race([first.done, firstValueFrom(first.changes())])
  await first.stop()
  expect(seen).toMatchObject({ key: '3', state: { in: 1 } })
  // It has all that the process ever saw.
  const second = run(2)
  const rebuilt = async () => {
    while ((await second.get('3'))?.in !== 2) await turn()
  }
  await Promise.race([second.done, rebuilt()])
  await second.stop()
})

it('log.read reports a gap to a reader from before it', async () => {
  const store = simulatedStore()
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const start = await log.positionAt('start')
  await append(store, [change('1'), change('2')])
  await store.retention.trim({ limit: 1 })
  const page = await log.read(start, { types: ['task_run.state'] })
  expect(page).toMatchObject({ entries: [{ type: 'log.gap' }], isEnd: false })
  expect(await log.read(page.position)).toMatchObject({ entries: [{ id: '2' }], isEnd: true })
})

describe('log.remove', () => {
  it('refuses a consumer that is running, in this process or another one', async () => {
    const store = simulatedStore()
    const log = await openLog(store)
    const other = await openLog(store.connect())
    onTestFinished(() => other.close())
    onTestFinished(() => log.close())
    await append(store, [change('1')])
    const isHandled = Promise.withResolvers<void>()
    const running = log.consume('busy', () => isHandled.resolve())
    await isHandled.promise
    await expect(log.remove({ consumer: 'busy' })).rejects.toBeInstanceOf(LogInUseError)
    await expect(other.remove({ consumer: 'busy' })).rejects.toBeInstanceOf(LogInUseError)
    await running.stop()
    await other.remove({ consumer: 'busy' })
    expect(await store.reader('consumer:busy')).toBeUndefined()
  })

  it('lets a consumer begin anew, without its dead letters', async () => {
    const store = simulatedStore()
    await append(store, [fullRun('r')])
    const log = await openLog(store)
    onTestFinished(() => log.close())
    const fence = await store.claim('consumer:c')
    const cursor = await store.positionAt('end')
    const error = { name: 'Error', message: 'no luck' }
    const deadLetters = [{ position: cursor, error, attempts: 1 }]
    await store.commit(fence, { expect: null, cursor, acknowledged: [], deadLetters })
    await store.release(fence)
    await log.remove({ consumer: 'c' })
    expect((await store.deadLetters.counts()).size).toBe(0)
    expect(await firstValueFrom(log.consume('c'))).toMatchObject({ type: 'task_run.state' })
  })

  it.each([{}, { consumer: '' }, { consumer: 'a', process: 'b' }, { consumers: 'a' }, null])(
    'refuses %j',
    async (reader) => {
      const log = await openLog(simulatedStore())
      onTestFinished(() => log.close())
      await expect(log.remove(reader as never)).rejects.toBeInstanceOf(ArgumentError)
    },
  )
})

it('log.stats has the lag of each reader in entries and seconds', async () => {
  let now = 1_000
  const store = simulatedStore({ clock: () => now, owner: 'this one' })
  const log = await openLog(store)
  onTestFinished(() => log.close())
  await append(store, [change('1'), change('2')])
  await moveReader(store, 'consumer:c', await store.positionAt('start'))
  await moveReader(store, 'process:p', await store.positionAt('end'))
  now = 8_500
  expect(await log.stats()).toMatchObject({
    entries: 2,
    oldest: 1_000,
    newest: 1_000,
    pausedBy: null,
    readers: [
      { kind: 'consumer', name: 'c', lag: { entries: 2, seconds: 7.5 }, oldestUnacknowledged: 1_000 },
      { kind: 'process', name: 'p', lag: { entries: 0, seconds: 0 }, oldestUnacknowledged: null },
    ],
  })
})
