import { setImmediate as turn } from 'node:timers/promises'
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openLog } from 'rivulet/log'
import type { EventLog, ProcessOptions } from 'rivulet/log'
import type { ProcessContext } from 'rivulet/streams'
import { iterate } from 'rivulet/operators'
import { change } from '../operators/events.ts'
import { tickAt } from '../support/ticks.ts'
import { append } from './append.ts'
import { readAll } from './conformance/fixture.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore, SimulatedStoreOptions } from '../../src/log/memory/store.ts'

interface Count {
  readonly seen: number
}

const HOUR = 3_600_000

/** A process that counts the entries of each source. */
const counting: ProcessOptions<Count> = {
  version: 1,
  key: (entry) => entry.source,
  init: () => ({ seen: 0 }),
  event: ({ seen }, _entry, context) => context.set({ seen: seen + 1 }),
}

const M = '/v1/monitors/m'

async function opened(options: SimulatedStoreOptions = {}) {
  const store = simulatedStore(options)
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return { store, log }
}

/** Opens the same log once more. */
async function again(store: SimulatedStore): Promise<EventLog> {
  const log = await openLog(store.connect())
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

/** Resolves when the process has read everything, also what it has appended. */
async function caughtUp(store: SimulatedStore, name = 'p'): Promise<void> {
  while ((await store.reader(`process:${name}`))?.cursor !== (await store.positionAt('end'))) await turn()
}

const output = async (store: SimulatedStore) =>
  (await readAll(store)).filter(({ cause }) => cause !== undefined)

describe('a process', () => {
  it('keeps a state for each key, which every open log reads', async () => {
    const { store, log } = await opened()
    await append(store, [change('1', 'a'), change('2', 'b'), change('3', 'a')])
    const process = log.process('p', counting)
    await caughtUp(store)
    const expected = [
      ['/v1/monitors/b', { seen: 1 }],
      ['/v1/monitors/a', { seen: 2 }],
    ]
    for (const each of [process, (await again(store)).state<Count>('p')]) {
      expect(await each.get('/v1/monitors/a')).toEqual({ seen: 2 })
      expect(await each.get('unknown')).toBeUndefined()
      expect([...(await each.snapshot()).state]).toEqual(expected)
    }
  })

  it('resumes where it was stopped, and counts nothing twice', async () => {
    const { store, log } = await opened()
    await append(store, [change('1'), change('2')])
    const first = log.process('p', counting)
    await caughtUp(store)
    await first.stop()
    await append(store, [change('3')])
    const second = log.process('p', counting)
    await caughtUp(store)
    expect(await second.get(M)).toEqual({ seen: 3 })
  })

  it('gets only entries of its types that `where` and `key` want', async () => {
    const { store, log } = await opened()
    await append(store, [change('1'), tickAt(1), change('2'), change('3')])
    const process = log.process('p', {
      ...counting,
      types: ['monitor.event_stream'],
      where: (entry) => entry.id !== '2',
      key: (entry) => (entry.id === '3' ? undefined : entry.data.output.type),
    })
    await caughtUp(store)
    expect([...(await process.snapshot()).state]).toEqual([['text', { seen: 1 }]])
  })

  it('calls `event` once for each of several keys, whichever write crashes', async () => {
    const names = Array.from({ length: 1_200 }, (_, n) => `k${n}`)
    const several: ProcessOptions<Count> = {
      ...counting,
      key: ({ id }) => (id === 'none' ? [] : [...names, 'k0']),
      event: ({ seen }, _entry, context) => {
        context.set({ seen: seen + 1 })
        if (context.key.endsWith('00')) context.append({ type: 'unknown', data: context.key })
      },
    }
    let isCrashing = true
    let crashes = 0
    for (let crash = 1; isCrashing; crash++) {
      const { store, log } = await opened()
      await append(store, [change('1'), change('none'), change('2')])
      let writes = 0
      const crashing = store.connect({
        faults: (_write, step) => {
          if ((writes += 1) === crash) throw new Error(`crashed ${step}`)
        },
      })
      const { done } = (await openLog(crashing)).process('p', several)
      isCrashing = await Promise.race([
        done.then(
          () => false,
          () => true,
        ),
        caughtUp(store).then(() => false),
      ])
      crashing.loseClaims()
      const process = log.process('p', several)
      await append(store, [change('3')])
      await caughtUp(store)
      const { state } = await process.snapshot()
      expect(state.size).toBe(1_200)
      expect([...state.values()].filter(({ seen }) => seen !== 3)).toEqual([])
      const appended = (await output(store)).map(({ data }) => data)
      const once = names.filter((name) => name.endsWith('00')).toSorted()
      expect(appended).toEqual([...once, ...once, ...once])
      crashes = crash
      await log.close()
    }
    expect(crashes).toBeGreaterThan(8)
  })

  it('follows changes from a snapshot without a gap, removed keys included', async () => {
    const { store, log } = await opened()
    await append(store, [change('1', 'a'), change('2', 'b')])
    const process = log.process('p', {
      ...counting,
      event: ({ seen }, entry, context) => context.set(entry.id === 'end' ? null : { seen: seen + 1 }),
    })
    await caughtUp(store)
    const { position } = await process.snapshot()
    const following = firstValueFrom(process.changes(position).pipe(take(3), toArray()))
    await append(store, [change('3', 'c'), change('4', 'a'), change('end', 'b')])
    const changes = await following
    expect(changes.map(({ key, state }) => [key.at(-1), state])).toEqual([
      ['c', { seen: 1 }],
      ['a', { seen: 2 }],
      ['b', null],
    ])
    for (const [n, each] of changes.entries()) {
      const rest = process.changes(each.position, { live: false }).pipe(toArray())
      expect(await lastValueFrom(rest)).toEqual(changes.slice(n + 1))
    }
  })

  it('gives changes to a slow loop one after the other', async () => {
    const { store, log } = await opened()
    const sources = Array.from({ length: 1_200 }, (_, n) => `m${n}`)
    await append(
      store,
      sources.slice(0, 250).map((source) => change('1', source)),
    )
    const process = log.process('p', counting)
    await caughtUp(store)
    const keys: string[] = []
    for await (const { key } of iterate(process.changes(undefined, { live: false }), { highWaterMark: 2 })) {
      keys.push(key)
      if (keys.length % 50 === 0) await turn()
    }
    expect(keys).toEqual(sources.slice(0, 250).map((source) => `/v1/monitors/${source}`))
  })

  it('completes changes and ends the job when the log is closed', async () => {
    const { store, log } = await opened()
    await append(store, [change('1')])
    const process = log.process('p', counting)
    await caughtUp(store)
    const seen: string[] = []
    const completed = Promise.withResolvers<void>()
    process.changes().subscribe({ next: ({ key }) => seen.push(key), complete: completed.resolve })
    while (seen.length === 0) await turn()
    await log.close()
    await completed.promise
    expect(seen).toEqual([M])
    await process.done
  })

  it('is read by the prefix of its keys, page by page', async () => {
    const { store, log } = await opened()
    await append(store, [change('1', 'a'), change('2', 'b'), change('3', 'b2'), change('4', 'b2')])
    const process = log.process('p', counting)
    await caughtUp(store)

    const first = await process.page({ prefix: '/v1/monitors/b', limit: 1 })
    const [after = ''] = first.states.keys()
    const second = await log
      .state<Count>('p')
      .page({ prefix: '/v1/monitors/b', after, since: first.position })

    expect([[...first.states], first.isEnd]).toEqual([[['/v1/monitors/b', { seen: 1 }]], false])
    expect([[...second.states], second.isEnd]).toEqual([[['/v1/monitors/b2', { seen: 2 }]], true])
    expect(first.position).toBe((await process.snapshot()).position)
    await expect(process.page({ prefix: '\ud800' })).rejects.toThrow('prefix must be a well-formed text')
    await expect(process.page({ limit: 0 })).rejects.toThrow('limit must be an integer from 1 to 10000')
  })

  it('refuses a snapshot of more keys than its limit, which `changes` reads one by one', async () => {
    const { store, log } = await opened()
    await append(
      store,
      ['a', 'b', 'c'].map((source) => change('1', source)),
    )
    const process = log.process('p', counting)
    await caughtUp(store)
    await expect(process.snapshot({ limit: 2 })).rejects.toMatchObject({ name: 'SnapshotTooLargeError' })
    expect((await process.snapshot({ limit: 3 })).state.size).toBe(3)
  })

  it.each([
    ['one key', ['a'], ['1a', '2a', '3a']],
    ['several keys', ['a', 'b'], ['1a', '1b', '2a', '2b', '3a', '3b']],
  ])('lets others run between slow calls for %s, and can be stopped there', async (_name, keys, all) => {
    const { store, log } = await opened()
    await append(store, [change('1'), change('2'), change('3')])
    const seen: string[] = []
    const noting: ProcessOptions<Count> = {
      ...counting,
      key: () => keys,
      event: (_state, { id }, { key }) => void seen.push(id + key),
    }
    const process = log.process('p', {
      ...noting,
      event: (_state, { id }, { key }) => {
        seen.push(id + key)
        for (const until = performance.now() + 30; performance.now() < until;);
      },
    })
    while (seen.length === 0) await turn()
    await process.stop()
    expect(seen.length).toBeLessThan(3)
    const rest = log.process('p', noting)
    await caughtUp(store)
    await rest.stop()
    expect(seen).toEqual(all)
  })

  it('counts once where slow functions are committed one by one, whichever commit crashes', async () => {
    for (let crash = 1; crash <= 5; crash++) {
      const { store, log } = await opened()
      await append(store, [change('1'), change('2')])
      let commits = 0
      const crashing = store.connect({
        faults: (write, step) => {
          if (write === 'commit' && step === 'after' && (commits += 1) === crash) throw new Error('crashed')
        },
      })
      const slow = (await openLog(crashing)).process('p', {
        ...counting,
        event: ({ seen }, _entry, context) => {
          for (const until = performance.now() + 110; performance.now() < until;);
          context.set({ seen: seen + 1 })
        },
      })
      await Promise.race([slow.done.catch(() => {}), caughtUp(store)])
      crashing.loseClaims()
      const process = log.process('p', counting)
      await append(store, [change('3')])
      await caughtUp(store)
      expect(await process.get(M)).toEqual({ seen: 3 })
    }
  })

  it('runs once: a second one gets a LogInUseError, or waits', async () => {
    const { store, log } = await opened()
    const first = log.process('p', counting)
    await caughtUp(store)
    await expect(log.process('p', counting).done).rejects.toMatchObject({ name: 'LogInUseError' })
    const other = await again(store)
    await expect(other.process('p', counting).done).rejects.toMatchObject({ name: 'LogInUseError' })
    const waiting = other.process('p', { ...counting, wait: new AbortController().signal })
    await first.stop()
    await append(store, [change('1')])
    await caughtUp(store)
    expect(await waiting.get(M)).toEqual({ seen: 1 })
  })

  it('is fenced when it was suspended and another one runs', async () => {
    const { store, log } = await opened()
    const process = log.process('p', counting)
    await caughtUp(store)
    store.loseClaims()
    await store.connect().claim('process:p')
    await append(store, [change('1')])
    await expect(process.done).rejects.toMatchObject({ name: 'FencedError' })
    expect(await process.get(M)).toBeUndefined()
  })

  it.each([
    ['version', { version: 0 }],
    ['key', { key: 'source' }],
    ['event', { event: undefined }],
    ['timer', { timer: 1 }],
    ['maxStateBytes', { maxStateBytes: 1e9 }],
    ['onError', { onError: 'ignore' }],
    ['timeToLive', { timeToLive: 0 }],
    ['timeToLife', { timeToLife: 1 }],
  ])('refuses a wrong %s at the call', async (argument, wrong) => {
    const { log } = await opened()
    expect(() => log.process('p', { ...counting, ...(wrong as object) })).toThrow(
      expect.objectContaining({ name: 'ArgumentError', argument }),
    )
  })
})

describe('a timer of a process', () => {
  const silent: ProcessOptions<Count> = {
    version: 1,
    key: (entry) => (entry.type === 'log.tick' ? undefined : entry.source),
    init: () => ({ seen: 0 }),
    event: (_state, entry, context) => {
      context.set({ seen: entry.recorded })
      context.timer('quiet', entry.recorded + 3 * HOUR)
    },
    timer: (state, due, context) => context.append({ type: 'unknown', data: { since: state.seen, due } }),
  }

  it('fires once at the first entry that makes it due, also where nothing ran at that time', async () => {
    let now = 0
    const { store, log } = await opened({ clock: () => now })
    await append(store, [change('1')])
    const first = log.process('p', silent)
    await caughtUp(store)
    await first.stop()
    now = 5 * HOUR
    await append(store, [tickAt(now)])
    log.process('p', silent)
    await caughtUp(store)
    now = 9 * HOUR
    await append(store, [tickAt(now)])
    await caughtUp(store)
    expect(await output(store)).toMatchObject([
      {
        source: '/processes/p',
        via: 'process',
        time: '1970-01-01T03:00:00.000Z',
        data: { since: 0, due: 3 * HOUR },
        cause: { process: 'p', source: M, id: '1', revision: 1, timer: 'quiet', due: 3 * HOUR, hops: 1 },
      },
    ])
  })

  it('fires before the entry that makes it due: it was silent until then', async () => {
    let now = 0
    const { store, log } = await opened({ clock: () => now })
    await append(store, [change('1')])
    now = 4 * HOUR
    await append(store, [change('2')])
    log.process('p', silent)
    await caughtUp(store)
    expect((await output(store)).map(({ data }) => data)).toEqual([{ since: 0, due: 3 * HOUR }])
  })

  it('of event time waits for the watermark, which ticks alone move, and is behind them by `lateness`', async () => {
    const { store, log } = await opened({ clock: () => 1_000_000 })
    const at = (id: string, ms: number) => ({ ...change(id), time: new Date(ms).toISOString() })
    log.process('p', {
      ...silent,
      lateness: 100,
      event: (_state, entry, context) => {
        if (entry.id === '1') context.timer('window', 500, { clock: 'event' })
      },
    })
    await append(store, [at('1', 400), at('2', 900), tickAt(950, null), tickAt(1_000, 599), at('3', 990)])
    await caughtUp(store)
    expect(await output(store)).toEqual([])
    await append(store, [tickAt(1_100, 600)])
    await caughtUp(store)
    expect(await output(store)).toHaveLength(1)
  })

  it('knows whether time is complete by the last tick, also after a restart', async () => {
    const { store, log } = await opened({ clock: () => 1_000_000 })
    const noting: ProcessOptions<null> = {
      version: 1,
      key: (entry) => (entry.type === 'log.tick' ? undefined : entry.id),
      init: () => null,
      event: (_state, _entry, context) => context.append({ type: 'unknown', data: context.complete }),
    }
    const first = log.process('p', noting)
    await append(store, [change('1'), tickAt(1_000, 1_000, false), change('2')])
    await caughtUp(store)
    await first.stop()
    log.process('p', noting)
    await append(store, [change('3'), tickAt(2_000, 2_000), change('4')])
    await caughtUp(store)
    expect((await output(store)).map(({ data }) => data)).toEqual([true, false, false, true])
  })

  it('fires in order where thousands are due at once, however often the process is stopped', async () => {
    let now = 0
    const { store, log } = await opened({ clock: () => now })
    const keys = Array.from({ length: 2_300 }, (_, n) => String(n).padStart(5, '0'))
    for (let at = 0; at < keys.length; at += 250) {
      await append(
        store,
        keys.slice(at, at + 250).map((key) => change('1', key)),
      )
    }
    const fired: string[] = []
    const options: ProcessOptions<Count> = {
      ...silent,
      event: (_state, _entry, context) => context.timer('t', 10 + (Number(context.key.slice(-1)) % 3)),
      timer: (_state, due, context) => {
        fired.push(`${due} ${context.key}`)
        context.set({ seen: due })
      },
    }
    let process = log.process('p', options)
    await caughtUp(store)
    now = 20
    await append(store, [tickAt(now)])
    for (let stops = 0; stops < 3; stops++) {
      await process.stop()
      process = log.process('p', options)
      await turn()
    }
    await caughtUp(store)
    expect(fired).toEqual(fired.toSorted())
    expect(fired).toHaveLength(2_300)
    expect((await process.snapshot()).state.size).toBe(2_300)
  })

  it('have an output each, where two of different clocks set a third one to the same time', async () => {
    let now = 1
    const { store, log } = await opened({ clock: () => now })
    await append(store, [tickAt(0)])
    log.process('p', {
      ...silent,
      key: () => 'k',
      event: (_state, { recorded }, context) => {
        if (recorded !== 1) return
        context.timer('early', 5, { clock: 'event' })
        context.timer('late', 8)
      },
      timer: (_state, _due, context, name) => {
        if (name === 'third') context.append({ type: 'unknown', data: null })
        else context.timer('third', 10)
      },
    })
    // The event time stays behind that of the recording.
    for (const [recorded, time] of [
      [8, 1],
      [10, 2],
      [20, 20],
    ] as const) {
      now = recorded
      await append(store, [tickAt(now, time)])
    }
    await caughtUp(store)
    expect(await output(store)).toMatchObject([{ cause: { due: 10 } }, { cause: { due: 10 } }])
  })

  it.each([-8.64e15, -1, -0.5, 0])('may be due at %d, as long ago as a date can be', async (due) => {
    const { store, log } = await opened()
    await append(store, [change('1'), change('2')])
    log.process('p', {
      ...silent,
      event: (_state, { id }, context) => {
        if (id === '1') context.timer('t', due)
      },
    })
    await caughtUp(store)
    expect(await output(store)).toMatchObject([{ cause: { due: Math.ceil(due) + 0 } }])
  })

  it('fires before the entry at whose very time it is due, also where many others are due then', async () => {
    const at = { now: HOUR }
    const { store, log } = await opened({ clock: () => at.now })
    const order: string[] = []
    log.process('p', {
      version: 1,
      key: (entry) => entry.id,
      init: () => 0,
      event: (_state, entry, context) => {
        order.push(entry.id)
        context.timer('due', 2 * HOUR)
      },
      timer: () => order.push('timer'),
    })
    const ids = Array.from({ length: 750 }, (_, n) => `e${n}`)
    for (let from = 0; from < ids.length; from += 250) {
      await append(
        store,
        ids.slice(from, from + 250).map((id) => change(id)),
      )
    }
    await caughtUp(store)
    at.now = 2 * HOUR
    await append(store, [change('last')])
    await caughtUp(store)
    expect(order.slice(ids.length)).toEqual([...ids.map(() => 'timer'), 'last'])
  })

  it('removes a state that was not set for `timeToLive`', async () => {
    let now = 0
    const { store, log } = await opened({ clock: () => now })
    const process = log.process('p', { ...counting, key: silent.key, timeToLive: 100 })
    await append(store, [change('1', 'a'), change('1', 'b')])
    now = 60
    await append(store, [change('2', 'b')])
    now = 159
    await append(store, [tickAt(now)])
    await caughtUp(store)
    expect([...(await process.snapshot()).state]).toEqual([['/v1/monitors/b', { seen: 2 }]])
    now = 160
    await append(store, [tickAt(now)])
    await caughtUp(store)
    const changes = await lastValueFrom(process.changes(undefined, { live: false }).pipe(toArray()))
    expect(changes.map(({ state }) => state)).toEqual([null, null])
  })
})

describe('the end of states', () => {
  it.each([
    ['removed', undefined, 10_000, 1],
    ['raised', 1_000, 1_004, 1],
    ['raised, and over', 1_000, 1_005, 0],
  ])('counts from when they were set where `timeToLive` was %s', async (_name, timeToLive, later, left) => {
    let now = 0
    const { store, log } = await opened({ clock: () => now })
    const keyed = {
      ...counting,
      key: (entry: { type: string }) => (entry.type === 'log.tick' ? undefined : 'k'),
    }
    now = 5
    await append(store, [change('1')])
    const first = log.process('p', { ...keyed, timeToLive: 100 })
    await caughtUp(store)
    await first.stop()
    const { timeToLive: _, ...never } = { ...keyed, timeToLive }
    const process = log.process('p', timeToLive === undefined ? never : { ...keyed, timeToLive })
    for (const at of [500, later]) {
      now = at
      await append(store, [tickAt(at)])
      await caughtUp(store)
    }
    expect((await process.snapshot()).state.size).toBe(left)
  })
})

describe('the clocks of a process', () => {
  it('tell a timer how late it fires, and `event` that an entry is late', async () => {
    let now = 0
    const { store, log } = await opened({ clock: () => now })
    const at = (id: string, ms: number) => ({ ...change(id), time: new Date(ms).toISOString() })
    const seen: unknown[] = []
    log.process('p', {
      ...counting,
      lateness: 10,
      types: ['monitor.event_stream'],
      event: (_state, { id, time }, context) => {
        seen.push([id, context.now(), Date.parse(time ?? '') < context.now('event')])
        if (id === '1') context.timer('t', 150)
      },
      timer: (_state, due, context) => seen.push(['timer', due, context.now()]),
    })
    for (const [id, recorded, time] of [
      ['1', 100, 100],
      ['2', 120, 90],
      ['3', 130, 89],
      ['4', 400, 400],
    ] as const) {
      now = recorded
      await append(store, [at(id, time), tickAt(recorded, 100)])
    }
    await caughtUp(store)
    expect(seen).toEqual([
      ['1', 100, false],
      ['2', 120, false],
      ['3', 130, true],
      ['timer', 150, 400],
      ['4', 400, false],
    ])
  })
})

describe('the output of a process', () => {
  /** Appends an event for each entry. */
  const echo = (data: unknown = null): ProcessOptions<Count> => ({
    ...counting,
    event: (_state, _entry, context) => context.append({ type: 'unknown', data }),
  })

  it('comes to other processes, and not to itself', async () => {
    const { store, log } = await opened()
    await append(store, [change('1')])
    log.process('p', echo())
    const other = log.process('q', counting)
    await caughtUp(store)
    await caughtUp(store, 'q')
    expect([...(await other.snapshot()).state.keys()]).toEqual([M, '/processes/p'])
    expect(await output(store)).toHaveLength(1)
  })

  it('ends after 16 hops where processes feed each other', async () => {
    const { store, log } = await opened()
    await append(store, [change('1')])
    const [p, q] = [log.process('p', echo()), log.process('q', echo())]
    const failure = await Promise.race([p.done, q.done]).catch((error: unknown) => error)
    expect(failure).toMatchObject({ name: 'ProcessError', message: expect.stringMatching(/17th in a row/) })
    const hops = (await output(store)).map(({ cause }) => cause?.hops)
    expect(Math.max(...hops.map(Number))).toBe(16)
    await Promise.allSettled([p.stop(), q.stop()])
  })
})

describe('a process that fails at an entry', () => {
  const failing = (
    onError: 'stop' | 'dead-letter',
    fail: (context: ProcessContext<Count>) => unknown,
  ): ProcessOptions<Count> => ({
    ...counting,
    onError,
    event: ({ seen }, entry, context) => {
      context.set({ seen: seen + 1 })
      context.append({ type: 'unknown', data: entry.id })
      if (entry.id === 'bad') return fail(context) as void
    },
  })
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic

  const FAILURES: readonly (readonly [string, (context: ProcessContext<Count>) => unknown, RegExp])[] = [
    [
      'throws',
      () => {
        throw new TypeError('no such field')
      },
      /no such field/,
    ],
    [
      'throws undefined',
      () => {
        throw undefined
      },
      /threw undefined/,
    ],
    [
      'throws what has no text',
      () => {
        throw Object.create(null)
      },
      /without a text/,
    ],
    [
      'throws an error whose name cannot be read',
      () => {
        throw Object.defineProperty(new Error('odd'), 'name', {
          get() {
            throw new Error('no name')
          },
        })
      },
      /without a text/,
    ],
    [
      'returns a promise',
      async () => {
        throw new Error('too late')
      },
      /promise/,
    ],
    ['sets a function', (context) => context.set((() => {}) as never), /not JSON/],
    ['sets a circle', (context) => context.set(cyclic as never), /not JSON/],
    ['sets a bigint', (context) => context.set(1n as never), /not JSON/],
    [
      'sets a Date',
      (context) => context.set({ seen: new Date(0) } as never),
      /state\.seen is an instance of Date/,
    ],
    ['sets what is over the limit', (context) => context.set('é'.repeat(32_768) as never), /maxStateBytes/],
    ['sets a timer without `timer`', (context) => context.timer('t', 1), /no function `timer`/],
    ['appends no JSON', (context) => context.append({ type: 'unknown', data: 1n }), /not JSON/],
    ['appends no type', (context) => context.append({ type: '' as never, data: 1 }), /without a type/],
    [
      'appends too much',
      (context) => {
        for (let n = 0; n < 300; n++) context.append({ type: 'unknown', data: n })
      },
      /301 events/,
    ],
    [
      'appends what no commit takes',
      (context) => context.append({ type: 'unknown', data: 'x'.repeat(600_000) }),
      /bytes/,
    ],
  ]

  it.each(FAILURES)(
    'because it %s, keeps what came before and nothing of the entry',
    async (_name, fail, message) => {
      const { store, log } = await opened()
      await append(store, [change('1'), change('bad'), change('2')])
      const process = log.process('p', failing('stop', fail))
      await expect(process.done).rejects.toMatchObject({
        name: 'ProcessError',
        process: 'p',
        key: M,
        entry: { source: M, id: 'bad' },
        message: expect.stringMatching(message),
      })
      expect(await process.get(M)).toEqual({ seen: 1 })
      expect((await output(store)).map(({ data }) => data)).toEqual(['1'])
      // A mended program goes on with the entry.
      const mended = log.process('p', counting)
      await caughtUp(store)
      expect(await mended.get(M)).toEqual({ seen: 3 })
    },
  )

  it.each(FAILURES)(
    'because it %s, stores a dead letter and goes on, where that is set',
    async (_name, fail, message) => {
      const { store, log } = await opened()
      await append(store, [change('1'), change('bad'), change('2')])
      const process = log.process('p', failing('dead-letter', fail))
      await caughtUp(store)
      expect(await process.get(M)).toEqual({ seen: 2 })
      expect((await output(store)).map(({ data }) => data)).toEqual(['1', '2'])
      const letters = await store.deadLetters.list('process:p', null, 10)
      expect(letters).toMatchObject([
        { entry: { id: 'bad' }, error: { message: expect.stringMatching(message) } },
      ])
    },
  )

  it('stores any number of dead letters', async () => {
    const { store, log } = await opened()
    const events = Array.from({ length: 200 }, (_, n) => change(String(n)))
    await append(store, events)
    log.process('p', {
      ...counting,
      onError: 'dead-letter',
      event: () => {
        throw new Error('é'.repeat(5_000))
      },
    })
    await caughtUp(store)
    expect(await store.deadLetters.counts()).toEqual(new Map([['process:p', 200]]))
  })

  it('commits dead letters beside as much as a function may change, whatever their texts are', async () => {
    const { store, log } = await opened()
    const bad = Array.from({ length: 40 }, (_, n) => change(`bad${n}`))
    await append(store, [...bad.slice(0, 20), change('1'), ...bad.slice(20), change('2')])
    log.process('p', {
      ...counting,
      onError: 'dead-letter',
      event: (_state, { id }, context) => {
        if (!id.startsWith('bad')) return context.append({ type: 'unknown', data: 'x'.repeat(440_000) })
        // Six bytes each as JSON.
        throw Object.assign(new Error('\u0001'.repeat(1_000)), { name: '\u0002'.repeat(100) })
      },
    })
    await caughtUp(store)
    expect(await store.deadLetters.counts()).toEqual(new Map([['process:p', 40]]))
    expect(await output(store)).toHaveLength(2)
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no key')
      },
      /no key/,
    ],
    ['gives no text', () => 1 as never, /key must be/],
    ['gives an endless text', () => 'x'.repeat(2_000), /key must be/],
    ['gives one of several that is no text', () => ['a', 1 as never], /key must be/],
    ['gives a list with a hole', () => Array<string>(1), /key must be/],
    ['gives too many', () => Array.from({ length: 10_001 }, (_, n) => `${n}`), /10001 keys are too many/],
  ])('names the entry where `key` %s', async (_name, key, message) => {
    const { store, log } = await opened()
    await append(store, [change('bad')])
    const { done } = log.process('p', { ...counting, key })
    await expect(done).rejects.toMatchObject({
      name: 'ProcessError',
      entry: { id: 'bad' },
      message: expect.stringMatching(message),
    })
  })

  it('refuses a timer that starts one which is not due later, and names the timer', async () => {
    const { store, log } = await opened({ clock: () => 1_000 })
    await append(store, [change('1'), change('2')])
    const { done } = log.process('p', {
      ...counting,
      event: (_state, _entry, context) => context.timer('t', 500),
      timer: (_state, due, context) => context.timer('u', due),
    })
    await expect(done).rejects.toMatchObject({ name: 'ProcessError', timer: { name: 't', due: 500 } })
  })

  it('refuses a context that is used after its function has returned', async () => {
    const { store, log } = await opened()
    await append(store, [change('1')])
    let kept: ProcessContext<Count> | undefined
    log.process('p', { ...counting, event: (_state, _entry, context) => void (kept = context) })
    await caughtUp(store)
    expect(() => kept?.set({ seen: 1 })).toThrow(/after the function had returned/)
  })

  it('does not see what a function did to a state without setting it', async () => {
    const { store, log } = await opened()
    const initial = { seen: 0, list: new Array<string>() }
    await append(store, [change('1'), change('2'), change('3')])
    const process = log.process('p', {
      version: 1,
      key: (entry) => entry.source,
      init: () => initial,
      event: (state, entry, context) => {
        state.list.push(entry.id)
        if (entry.id === '2') context.set(state)
      },
    })
    await caughtUp(store)
    expect(await process.get(M)).toEqual({ seen: 0, list: ['2'] })
  })
})

describe('a process that begins later', () => {
  it.each([
    { startAt: 'start', seen: 3 },
    { startAt: { time: Date.UTC(2026, 0, 2) }, seen: 2 },
    { startAt: 'end', seen: 1 },
  ] as const)('at $startAt reads $seen of three entries', async ({ startAt, seen }) => {
    const at = { now: Date.UTC(2026, 0, 1) }
    const { store, log } = await opened({ clock: () => at.now })
    await append(store, [change('1')])
    at.now = Date.UTC(2026, 0, 2)
    await append(store, [change('2')])
    const process = log.process('p', { ...counting, startAt })
    while ((await store.reader('process:p')) === undefined) await turn()
    await append(store, [change('3')])
    await caughtUp(store)
    expect(await process.get(M)).toEqual({ seen })
  })

  it('resumes where it was stopped, whatever `startAt` says then, and is built again from where it began', async () => {
    const { store, log } = await opened()
    await append(store, [change('1')])
    const first = log.process('p', { ...counting, startAt: 'end' })
    await caughtUp(store)
    await append(store, [change('2')])
    await caughtUp(store)
    await first.stop()
    await append(store, [change('3')])
    const resumed = log.process('p', { ...counting, startAt: 'start' })
    await caughtUp(store)
    expect(await resumed.get(M)).toEqual({ seen: 2 })
    await resumed.stop()
    const rebuilt = log.process('p', { ...counting, version: 2, rebuild: true, startAt: 'start' })
    await append(store, [change('4')])
    await caughtUp(store)
    expect(await rebuilt.get(M)).toEqual({ seen: 3 })
  })

  it('begins once, whichever write of its first start crashes', async () => {
    let isCrashing = true
    for (let crash = 1; isCrashing; crash++) {
      const { store } = await opened()
      await append(store, [change('1')])
      let writes = 0
      const faults = (_write: string, step: string) => {
        if ((writes += 1) === crash) throw new Error(`crashed ${step}`)
      }
      const crashing = store.connect({ faults })
      const attempt = (await openLog(crashing)).process('p', { ...counting, startAt: 'end' })
      isCrashing = await Promise.race([
        attempt.done.then(
          () => false,
          () => true,
        ),
        caughtUp(store).then(() => false),
      ])
      crashing.loseClaims()
      const began = (await store.reader('process:p')) !== undefined
      await append(store, [change('2')])
      const process = (await again(store)).process('p', { ...counting, startAt: 'end' })
      while ((await store.reader('process:p')) === undefined) await turn()
      await append(store, [change('3')])
      await caughtUp(store)
      expect(await process.get(M)).toEqual({ seen: began ? 2 : 1 })
      await process.stop()
    }
  })

  it('refuses anything but a start', async () => {
    const { log } = await opened()
    for (const startAt of ['middle', { time: NaN }, null]) {
      expect(() => log.process('p', { ...counting, startAt: startAt as 'end' })).toThrow(/startAt/)
    }
  })
})

describe('a process of another version', () => {
  const second: ProcessOptions<{ readonly total: number }> = {
    version: 2,
    key: counting.key,
    init: () => ({ total: 0 }),
    event: ({ total }, entry, context) => {
      context.set({ total: total + 10 })
      context.append({ type: 'unknown', data: entry.id })
    },
  }
  const first: ProcessOptions<Count> = {
    ...counting,
    event: ({ seen }, entry, context) => {
      context.set({ seen: seen + 1 })
      context.append({ type: 'unknown', data: entry.id })
    },
  }

  async function ran(options: SimulatedStoreOptions = {}, keys = ['a', 'b']) {
    const { store, log } = await opened(options)
    for (let at = 0; at < keys.length; at += 250) {
      await append(
        store,
        keys.slice(at, at + 250).map((key) => change('1', key)),
      )
    }
    const process = log.process('p', first)
    await caughtUp(store)
    await process.stop()
    return { store, log }
  }

  it('is refused where it does not say what becomes of the state, and where it is lower', async () => {
    const { store, log } = await ran()
    await expect(log.process('p', second).done).rejects.toMatchObject({
      name: 'ProcessVersionError',
      stored: 1,
      version: 2,
      message: expect.stringMatching(/migrate.*rebuild/),
    })
    const upgraded = log.process('p', { ...second, migrate: (state) => ({ total: (state as Count).seen }) })
    await append(store, [change('2', 'a')])
    await caughtUp(store)
    await upgraded.stop()
    await expect(log.process('p', first).done).rejects.toMatchObject({ name: 'ProcessVersionError' })
  })

  it('is refused with a state that JSON does not give back, and the stored one stays', async () => {
    const { store, log } = await ran()
    const lossy = log.process<{ total: number }>('p', {
      ...second,
      migrate: () => ({ total: new Map() }) as never,
    })
    await expect(lossy.done).rejects.toMatchObject({
      name: 'ProcessError',
      message: expect.stringContaining('its state is not JSON: state.total is an instance of Map'),
    })
    const mended = log.process('p', { ...second, migrate: (state) => ({ total: (state as Count).seen }) })
    await append(store, [change('2', 'a')])
    await caughtUp(store)
    expect(await mended.get('/v1/monitors/b')).toEqual({ total: 1 })
  })

  it('migrates each state once, whichever write crashes', async () => {
    const keys = Array.from({ length: 450 }, (_, n) => `k${n}`)
    let isCrashing = true
    let crashes = 0
    for (let crash = 1; isCrashing; crash++) {
      let writes = 0
      const faults = (_write: string, step: string) => {
        if ((writes += 1) === crash) throw new Error(`crashed ${step}`)
      }
      const { store, log } = await ran({}, keys)
      const migrate = (state: unknown, from: number, key: string) =>
        key.endsWith('k7') ? null : { total: (state as Count).seen + 100 * from }
      await append(store, [change('2', 'k0')])
      const crashing = store.connect({ faults })
      const attempt = (await openLog(crashing)).process('p', { ...second, migrate })
      isCrashing = await Promise.race([
        attempt.done.then(
          () => false,
          () => true,
        ),
        caughtUp(store).then(() => false),
      ])
      crashing.loseClaims()
      const done = log.process('p', { ...second, migrate })
      await append(store, [change('3', 'k1')])
      await caughtUp(store)
      const { state } = await done.snapshot()
      expect(state.size).toBe(449)
      expect(state.get('/v1/monitors/k0')).toEqual({ total: 111 })
      expect(state.get('/v1/monitors/k1')).toEqual({ total: 111 })
      expect(Array.from(state.values(), ({ total }) => total).filter((total) => total !== 101)).toEqual([
        111, 111,
      ])
      await done.stop()
      crashes = crash
    }
    expect(crashes).toBeGreaterThan(8)
  })

  it('builds its state again from the beginning, and appends again nothing that is there', async () => {
    const { store, log } = await ran()
    const { position } = await log.state('p').snapshot()
    const rebuilt = log.process('p', { ...second, rebuild: true })
    await append(store, [change('2', 'a')])
    await caughtUp(store)
    expect(Object.fromEntries((await rebuilt.snapshot()).state)).toEqual({
      '/v1/monitors/a': { total: 20 },
      '/v1/monitors/b': { total: 10 },
    })
    expect(
      (await output(store)).map(({ source, data, cause }) => [source, data, cause?.source.at(-1)]),
    ).toEqual([
      ['/processes/p', '1', 'a'],
      ['/processes/p', '1', 'b'],
      ['/processes/p', '2', 'a'],
    ])
    await expect(lastValueFrom(rebuilt.changes(position))).rejects.toMatchObject({ name: 'LogPositionError' })
  })

  it('goes on with a rebuild that was interrupted, without appending what the first version had appended', async () => {
    const { store, log } = await ran(
      {},
      Array.from({ length: 1_200 }, (_, n) => `k${n}`),
    )
    const before = (await output(store)).length
    for (let stops = 0; stops < 4; stops++) {
      const process = log.process('p', {
        ...second,
        rebuild: true,
        event: (_state, entry, context) => {
          context.set({ total: 1 })
          context.append({ type: 'unknown', data: entry.id, source: '/other' })
        },
      })
      for (let turns = 0; turns < 3; turns++) await turn()
      await process.stop()
    }
    const process = log.process('p', { ...second, rebuild: true })
    await caughtUp(store)
    expect((await process.snapshot()).state.size).toBe(1_200)
    expect(await output(store)).toHaveLength(before)
  })
})

describe('a process, where entries after its position were deleted', () => {
  /** A process that has counted three entries, two of which are deleted, and whose position is before them again. */
  async function overtaken() {
    const { store, log } = await opened()
    const start = await store.positionAt('start')
    await append(store, [change('1'), change('2'), change('3')])
    const process = log.process('p', counting)
    await caughtUp(store)
    await process.stop()
    await store.retention.trim({ limit: 2 })
    const fence = await store.claim('process:p')
    const expected = await store.positionAt('end')
    await store.commit(fence, { expect: expected, cursor: start, acknowledged: [] })
    await store.release(fence)
    return { store, log, start }
  }

  it('gets an entry that says so', async () => {
    const { store, log, start } = await overtaken()
    const process = log.process('p', counting)
    await caughtUp(store)
    expect(await process.get('/log')).toEqual({ seen: 1 })
    expect(await process.get(M)).toEqual({ seen: 4 })
    expect(start).not.toBe(await store.positionAt('start'))
  })

  it('ends with an error that names the positions where its types leave gaps out', async () => {
    const { log, start } = await overtaken()
    const { done } = log.process('p', { ...counting, types: ['monitor.event_stream'] })
    await expect(done).rejects.toMatchObject({ name: 'LogGapError', consumer: 'process:p', from: start })
  })

  it('keeps the gap as a dead letter where its function fails at it', async () => {
    const { store, log } = await overtaken()
    const event: typeof counting.event = ({ seen }, { type }, context) => {
      if (type === 'log.gap') throw new Error('a gap')
      context.set({ seen: seen + 1 })
    }
    const process = log.process('p', { ...counting, event, onError: 'dead-letter' })
    await caughtUp(store)
    expect(await process.get(M)).toEqual({ seen: 4 })
    const letters = await store.deadLetters.list('process:p', null, 10)
    expect(letters).toMatchObject([{ entry: { type: 'log.gap' } }])
  })

  it('keeps an entry as a dead letter that the log deletes before the commit', async () => {
    const { store, log } = await opened()
    await append(store, [change('1')])
    let trimmed: Promise<unknown> | undefined
    // The commit comes after the deletion, however the calls are ordered.
    log.process('p', {
      ...counting,
      holdsRetention: false,
      onError: 'dead-letter',
      event: () => {
        trimmed = store.retention.trim({ limit: 1 })
        throw new Error('a fault')
      },
    })
    await caughtUp(store)
    expect(await trimmed).toMatchObject({ deleted: 1 })
    const letters = await store.deadLetters.list('process:p', null, 10)
    expect(letters).toMatchObject([
      { entry: { id: '1' }, error: { message: expect.stringMatching(/a fault/) } },
    ])
  })

  it('gets the gap for each key where it was stopped within the entry that was deleted', async () => {
    const names = Array.from({ length: 1_200 }, (_, n) => `k${n}`)
    const several: ProcessOptions<Count> = {
      ...counting,
      holdsRetention: false,
      key: () => names,
      event: ({ seen }, { type }, context) => context.set({ seen: seen + (type === 'log.gap' ? 10 : 1) }),
    }
    const found = new Set<string>()
    for (let crash = 4; crash < 12; crash++) {
      const { store, log } = await opened()
      await append(store, [change('1')])
      let writes = 0
      const faults = () => {
        if ((writes += 1) === crash) throw new Error('crashed')
      }
      const crashing = store.connect({ faults })
      const { done } = (await openLog(crashing)).process('p', several)
      await Promise.race([done.catch(() => {}), caughtUp(store)])
      crashing.loseClaims()
      await store.retention.trim({ limit: 1 })

      const process = log.process('p', several)
      await append(store, [change('2')])
      await caughtUp(store)
      const { state } = await process.snapshot()
      found.add(
        String([...new Set(Array.from(state.values(), ({ seen }) => seen))].toSorted((a, b) => a - b)),
      )
      await log.close()
    }
    // Before the first commit of the entry, within it, and after it.
    expect([...found]).toEqual(['11', '11,12', '2'])
  })

  it('goes on while it is built again, where the log need not keep its entries', async () => {
    const { store, log } = await opened()
    await append(store, [change('1'), change('2'), change('3')])
    const first = log.process('p', counting)
    await caughtUp(store)
    await first.stop()
    const trimmed = Promise.withResolvers<unknown>()
    const where = ({ id }: { readonly id: string }) => {
      if (id === '1') trimmed.resolve(store.retention.trim({ limit: 2 }))
      return true
    }
    // One entry is a page: the next ones are deleted before they are read.
    const read: typeof store.read = (after, options) => reading(after, { ...options, limit: 1 })
    const reading = store.read.bind(store)
    store.read = read
    const next = log.process('p', { ...counting, where, version: 2, rebuild: true, holdsRetention: false })
    expect(await trimmed.promise).toMatchObject({ deleted: 2 })
    await caughtUp(store)
    expect([await next.get(M), await next.get('/log')]).toEqual([{ seen: 2 }, { seen: 1 }])
  })

  it('is not built again', async () => {
    const { store, log } = await opened()
    await append(store, [change('1'), change('2'), change('3')])
    const first = log.process('p', counting)
    await caughtUp(store)
    await first.stop()
    await store.retention.trim({ limit: 2 })
    const { done } = log.process('p', { ...counting, version: 2, rebuild: true })
    await expect(done).rejects.toMatchObject({ name: 'ProcessVersionError', stored: 1, version: 2 })
    await expect(done).rejects.toThrow('no longer has its beginning')
    // Nothing of it is lost: the earlier version goes on.
    const same = log.process('p', counting)
    await append(store, [change('4')])
    await caughtUp(store)
    expect(await same.get(M)).toEqual({ seen: 4 })
  })

  it('is not built again where they are deleted meanwhile', async () => {
    const { store } = await opened()
    await append(store, [change('1'), change('2'), change('3')])
    const log = await again(store)
    const first = log.process('p', counting)
    await caughtUp(store)
    await first.stop()
    const racing = store.connect()
    const { read } = racing
    racing.read = async (after, options) => {
      const page = await read.call(racing, after, options)
      // After the look at the beginning, and before the position of the process protects it.
      if (options.limit === 1) await store.retention.trim({ limit: 2 })
      return page
    }
    const { done } = (await openLog(racing)).process('p', { ...counting, version: 2, rebuild: true })
    await expect(done).rejects.toThrow('the log deletes its entries meanwhile')
    await racing.close()
  })
})

describe('the output of a process, in a log that is too large', () => {
  const MAX_BYTES = 100_000

  /** A process that appends what it reads, and a consumer that stands still. */
  async function withSlowReader() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { store, log } = await opened()
    const slow = await store.claim('consumer:slow')
    const start = await store.positionAt('start')
    await store.commit(slow, { expect: null, cursor: start, acknowledged: [] })
    // As a recorder does.
    await store.retention.setPaused(null, MAX_BYTES)
    const process = log.process('p', {
      ...counting,
      event: ({ seen }, { id }, context) => {
        context.set({ seen: seen + 1 })
        context.append({ type: 'unknown', data: 'x'.repeat(10_000) + id })
      },
    })
    const isPaused = async () =>
      (await log.stats()).readers.some(
        ({ name, kind, isPaused: is }) => kind === 'process' && name === 'p' && is,
      )
    const isSettled = async () =>
      (await isPaused()) || (await cursorOf(store)) === (await store.positionAt('end'))
    const settled = async () => {
      while (!(await isSettled())) await turn()
    }
    /** Entries come one by one, so that each is a commit. */
    const add = async (from: number, to: number) => {
      for (let n = from; n <= to; n++) {
        await append(store, [change(String(n))])
        await settled()
      }
    }
    const read = async () => {
      await store.commit(slow, {
        expect: (await store.reader('consumer:slow'))?.cursor ?? start,
        cursor: await cursorOf(store),
        acknowledged: [],
      })
      await store.retention.trim({ limit: 1_000 })
    }
    return { store, log, process, add, isPaused, read }
  }

  const cursorOf = async (store: SimulatedStore) => (await store.reader('process:p'))?.cursor ?? ''

  it('uses a reserve of a tenth, then waits and is named, and goes on when there is room', async () => {
    const { store, log, process, add, isPaused, read } = await withSlowReader()
    await add(1, 8)
    expect(await isPaused()).toBe(false)
    await add(9, 30)
    expect(await isPaused()).toBe(true)
    // A commit that has begun may be above it.
    const { bytes } = await log.stats()
    expect(bytes).toBeGreaterThan(MAX_BYTES)
    expect(bytes).toBeLessThan(MAX_BYTES * 1.1 + 25_000)
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await isPaused()).toBe(true)
    await read()
    await vi.advanceTimersByTimeAsync(1_000)
    while (await isPaused()) await turn()
    // As its output, each of its entries is there once.
    expect((await process.get(M))?.seen ?? 0).toBeGreaterThan(8)
    expect(await store.deadLetters.counts()).toEqual(new Map())
  })

  it('can be stopped while it waits, and nothing of what waited is kept', async () => {
    const { log, process, add, isPaused } = await withSlowReader()
    await add(1, 30)
    expect(await isPaused()).toBe(true)
    const { entries } = await log.stats()
    await process.stop()
    expect(await isPaused()).toBe(false)
    expect((await log.stats()).entries).toBe(entries)
  })

  it('is not held back where the process itself needs the oldest entry', async () => {
    const { store, log } = await opened()
    await append(
      store,
      Array.from({ length: 40 }, (_, n) => change(String(n))),
    )
    await store.retention.setPaused(null, 1_000)
    log.process('p', {
      ...counting,
      event: ({ seen }, { id }, context) => {
        context.set({ seen: seen + 1 })
        context.append({ type: 'unknown', data: id })
      },
    })
    await caughtUp(store)
    expect((await log.state<Count>('p').get(M))?.seen).toBe(40)
  })
})
