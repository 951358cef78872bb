import { setImmediate as turn } from 'node:timers/promises'
import { LogInUseError, LogPositionError, LogUnsupportedError, memoryStore, openLog } from 'rivulet/log'
import type { EventLog, ProcessOptions } from 'rivulet/log'
import type { LogStore, Fence } from 'rivulet/log/store'
import { sqliteStore } from 'rivulet/log/sqlite'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { change } from '../../operators/events.ts'
import { append } from '../append.ts'
import { scratchFile } from '../sqlite/scratch.ts'

interface Count {
  readonly n: number
}

/** Events of the sources `s0` to `s19`. */
const changes = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`, `s${(from + n) % 20}`))

const counts: ProcessOptions<Count> = {
  version: 1,
  types: ['monitor.event_stream'],
  key: ({ source }) => source.replace(/^.*\//, ''),
  init: () => ({ n: 0 }),
  event: ({ n }, entry, context) => {
    context.set({ n: n + 1 })
    if (n % 2 === 1) context.append({ type: 'unknown', data: { key: context.key, at: entry.id } })
  },
}

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

const sum = async (log: EventLog) => {
  const { state } = await log.state<Count>('counts').snapshot()
  return Array.from(state.values()).reduce((total, { n }) => total + n, 0)
}

const outputsOf = async (log: EventLog) => {
  const { entries } = await log.read(await log.positionAt('start'), { limit: 10_000, types: ['unknown'] })
  return entries.map(({ data }) => JSON.stringify(data)).toSorted()
}

describe('a shared process', () => {
  it('has the state and the output of one that is not, in one row of the statistics', async () => {
    const store = memoryStore({ partitions: 4 })
    const plain = memoryStore()
    const [one, two] = [
      await opened(store.connect({ owner: 'one' })),
      await opened(store.connect({ owner: 'two' })),
    ]
    const alone = await opened(plain)
    alone.process('counts', counts)
    const job = one.process('counts', { ...counts, share: true })
    two.process('counts', { ...counts, share: true })
    for (const each of [store, plain]) await append(each, changes(1, 100))
    await until(async () => (await sum(one)) === 100 && (await sum(alone)) === 100)
    await until(async () => (await one.stats()).readers[0]?.owner?.includes(', ') === true)
    expect((await one.stats()).readers).toMatchObject([{ kind: 'process', name: 'counts' }])
    await job.stop()
    for (const each of [store, plain]) await append(each, changes(101, 200))
    await until(async () => (await sum(two)) === 200 && (await sum(alone)) === 200)
    await until(async () => (await outputsOf(two)).length === (await outputsOf(alone)).length)
    expect(await outputsOf(two)).toEqual(await outputsOf(alone))
  })

  it('waits for the parts that come to it later, whatever has become of `wait`', async () => {
    const store = memoryStore({ partitions: 4 })
    const [one, two] = [await opened(store.connect()), await opened(store.connect())]
    const first = one.process('counts', { ...counts, share: true })
    await append(store, changes(1, 100))
    await until(async () => (await sum(one)) === 100)
    const abort = new AbortController()
    const second = two.process('counts', { ...counts, share: true, wait: abort.signal })
    await until(async () => (await one.stats()).readers[0]?.owner?.includes(', ') === true)
    abort.abort()
    await first.stop()
    await append(store, changes(101, 200))
    await until(async () => (await sum(two)) === 200)
    await expect(second.stop()).resolves.toBeUndefined()
  })

  it('is read as one: by key, in pages by key, and by its changes after a position', async () => {
    const store = memoryStore({ partitions: 4 })
    const log = await opened(store)
    const process = log.process('counts', { ...counts, share: true })
    const state = log.state<Count>('counts')
    await append(store, changes(1, 60))
    await until(async () => (await sum(log)) === 60)
    expect(await state.get('s3')).toEqual({ n: 3 })
    expect(await state.get('elsewhere')).toBeUndefined()
    const all: string[] = []
    let after: string | undefined
    for (let isEnd = false; !isEnd;) {
      const page = await state.page({ limit: 3, ...(after !== undefined && { after }) })
      expect(page.states.size).toBeLessThanOrEqual(3)
      all.push(...page.states.keys())
      after = all.at(-1)
      isEnd = page.isEnd
    }
    expect(all).toEqual(Array.from({ length: 20 }, (_, n) => `s${n}`).toSorted())
    expect([...(await state.page({ prefix: 's1' })).states.keys()]).toEqual(
      all.filter((key) => key.startsWith('s1')),
    )
    const { position } = await process.snapshot()
    expect((await state.page({ since: position })).states.size).toBe(20)
    await append(store, changes(61, 65))
    await until(async () => (await sum(log)) === 65)
    const later = await lastValueFrom(state.changes(position, { live: false }).pipe(toArray()))
    expect(later.map(({ key }) => key).toSorted()).toEqual(['s1', 's2', 's3', 's4', 's5'])
    // From each of them on.
    const rest = await lastValueFrom(state.changes(later[2]?.position, { live: false }).pipe(toArray()))
    expect(rest).toEqual(later.slice(3))
    const live = new Promise((resolve) => state.changes(later[4]?.position).subscribe(resolve))
    await append(store, changes(66, 66))
    expect(await live).toMatchObject({ key: 's6', state: { n: 4 } })
    const refused = lastValueFrom(state.changes('elsewhere', { live: false }), { defaultValue: undefined })
    await expect(refused).rejects.toBeInstanceOf(LogPositionError)
  })

  it('goes on with states and timers of before it was shared, and doubles no output', async () => {
    let now = 1_000
    const store = memoryStore({ partitions: 4, clock: () => now })
    const log = await opened(store)
    const fired: string[] = []
    const withTimers: ProcessOptions<Count> = {
      ...counts,
      event: ({ n }, entry, context) => {
        context.set({ n: n + 1 })
        if (n === 0) context.timer('late', entry.recorded + 100, { data: { of: context.key } })
        context.append({ type: 'unknown', data: { key: context.key, n } })
      },
      timer: (_, _due, context, _name, data) => {
        fired.push(context.key)
        expect(data).toEqual({ of: context.key })
        context.append({ type: 'unknown', data: { fired: context.key } })
      },
    }
    const first = log.process('counts', withTimers)
    await append(store, changes(1, 20))
    await until(async () => (await sum(log)) === 20)
    const before = await first.snapshot()
    await first.stop()
    log.process('counts', { ...withTimers, share: true })
    now = 2_000
    await append(store, changes(21, 21))
    await until(() => fired.length === 20)
    expect(fired.toSorted()).toEqual(Array.from({ length: 20 }, (_, n) => `s${n}`).toSorted())
    await until(async () => (await outputsOf(log)).length === 41)
    const outputs = await outputsOf(log)
    expect(new Set(outputs).size).toBe(outputs.length)
    // Those positions are of before the division.
    await expect(
      lastValueFrom(log.state('counts').changes(before.position, { live: false }), { defaultValue: null }),
    ).rejects.toMatchObject({ reason: 'rebuilt' })
  })

  it('cannot run alone any more, until it is removed', async () => {
    const store = memoryStore({ partitions: 2 })
    const log = await opened(store)
    await append(store, changes(1, 20))
    const job = log.process('counts', { ...counts, share: true })
    await until(async () => (await sum(log)) === 20)
    await expect(log.remove({ process: 'counts' })).rejects.toBeInstanceOf(LogInUseError)
    await job.stop()
    await expect(log.process('counts', counts).done).rejects.toBeInstanceOf(LogUnsupportedError)
    await log.remove({ process: 'counts' })
    expect((await log.stats()).readers).toEqual([])
    expect((await log.state('counts').snapshot()).state.size).toBe(0)
    log.process('counts', counts)
    await until(async () => (await sum(log)) === 20)
    expect(await log.state<Count>('counts').get('s1')).toEqual({ n: 1 })
  })

  it('is built again in another version, and lists its dead letters as one', async () => {
    const store = memoryStore({ partitions: 2 })
    const log = await opened(store)
    await append(store, changes(1, 40))
    const failing: ProcessOptions<Count> = {
      ...counts,
      share: true,
      onError: 'dead-letter',
      event: ({ n }, { id }, context) => {
        if (Number(id) % 10 === 0) throw new Error('ten')
        context.set({ n: n + 1 })
      },
    }
    const job = log.process('counts', failing)
    await until(async () => (await sum(log)) === 36)
    const { position } = await job.snapshot()
    expect(await log.deadLetters({ process: 'counts' }).count()).toBe(4)
    await job.stop()
    log.process('counts', { ...counts, share: true, version: 2, rebuild: true })
    await until(async () => (await sum(log)) === 40)
    const later = log.state('counts').changes(position, { live: false })
    await expect(lastValueFrom(later, { defaultValue: null })).rejects.toMatchObject({
      reason: 'rebuilt',
      position,
    })
    await expect(log.state('counts').page({ since: position })).rejects.toMatchObject({ position })
    expect(await log.deadLetters({ process: 'counts' }).remove('all')).toBe(4)
  })

  it('rejects once with what a key function throws', async () => {
    const store = memoryStore({ partitions: 2 })
    const log = await opened(store)
    await append(store, changes(1, 3))
    const options: ProcessOptions<Count> = {
      ...counts,
      share: true,
      key: () => {
        throw new Error('no key')
      },
    }
    await expect(log.process('counts', options).done).rejects.toThrow('no key')
    const job = log.process('counts', { ...options, onError: 'dead-letter' })
    await until(async () => (await log.deadLetters({ process: 'counts' }).count()) === 3)
    await job.stop()
  })

  it('goes on at the entry whose keys could not be found, in all of its parts, once that was mended', async () => {
    const store = memoryStore({ partitions: 2 })
    const log = await opened(store)
    const other = await opened(store.connect({ owner: 'other' }))
    const all = Array.from({ length: 20 }, (_, n) => `s${n}`)
    const options: ProcessOptions<Count> = { ...counts, share: true, key: () => all }
    const failing = {
      ...options,
      key: () => {
        throw new Error('no key')
      },
    }
    const jobs = [log, other].map((each) => each.process('counts', failing).done.catch(String))
    await until(async () => (await log.stats()).readers[0]?.owner?.includes(', ') === true)
    await append(store, changes(1, 1))
    for (const ended of await Promise.all(jobs)) expect(ended).toContain('no key')
    const job = log.process('counts', options)
    await append(store, changes(2, 2))
    await until(async () => {
      const { state } = await log.state<Count>('counts').snapshot()
      return (await log.stats()).readers[0]?.lag.entries === 0 && state.size === 20
    })
    await job.stop()
    const { state } = await log.state<Count>('counts').snapshot()
    expect(new Set(Array.from(state.values(), ({ n }) => n))).toEqual(new Set([2]))
  })

  it('keeps its state where one that was suspended while it divided the process goes on', async () => {
    const store = memoryStore({ partitions: 2 })
    const log = await opened(store)
    await append(store, changes(1, 20))
    const alone = log.process('counts', counts)
    await until(async () => (await sum(log)) === 20)
    await alone.stop()
    const connected = store.connect({ owner: 'suspended' })
    const claims: Fence[] = []
    const isSuspended = Promise.withResolvers<void>()
    const resumed = Promise.withResolvers<void>()
    const claim: LogStore['claim'] = async (name, options) => {
      if (name === 'process.3:counts') {
        isSuspended.resolve()
        await resumed.promise
      }
      const fence = await connected.claim(name, options)
      claims.push(fence)
      return fence
    }
    const slow = await opened(
      new Proxy(connected, {
        get(target, property) {
          if (property === 'claim') return claim
          const value: unknown = Reflect.get(target, property)
          return typeof value === 'function' ? value.bind(target) : value
        },
      }),
    )
    slow.process('counts', { ...counts, share: true })
    await isSuspended.promise
    // As when its lease runs out.
    for (const fence of claims) await connected.release(fence)
    const job = log.process('counts', { ...counts, share: true })
    await append(store, changes(21, 40))
    await until(async () => (await sum(log)) === 40)
    await job.stop()
    resumed.resolve()
    await append(store, changes(41, 60))
    await until(async () => {
      const [reader] = (await log.stats()).readers
      return reader?.owner === 'suspended' && reader.lag.entries === 0
    })
    expect(await sum(log)).toBe(60)
  })

  it('of a log in a file is run by one, and the others stand by', async () => {
    const file = scratchFile()
    const store = sqliteStore(file)
    const log = await opened(store)
    await append(store, changes(1, 20))
    const job = log.process('counts', { ...counts, share: true })
    await until(async () => (await sum(log)) === 20)
    expect((await store.reader('process:counts')) !== undefined).toBe(true)
    await job.stop()
    log.process('counts', counts)
    await append(store, changes(21, 40))
    await until(async () => (await sum(log)) === 40)
  })
})
