import { setImmediate as turn } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { bufferCount, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { deliver } from 'rivulet/operators'
import { ArgumentError } from 'rivulet'
import { FencedError, LogInUseError, LogUnsupportedError, StalledConsumerError, openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { scratchFile } from './sqlite/scratch.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

const PARTITIONS = 8

/** Events of many sources: `s0` to `s19`. */
const changes = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`, `s${(from + n) % 20}`))

const idsOf = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => `${from + n}`)

const sorted = (ids: readonly string[]) => ids.toSorted((a, b) => Number(a) - Number(b))

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

/** Resolves once the condition holds. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

async function turns(count = 50): Promise<void> {
  for (let n = 0; n < count; n++) await turn()
}

async function all<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const found: Item[] = []
  for await (const item of items) found.push(item)
  return found
}

function isMemory(store: LogStore): store is SimulatedStore {
  return 'connect' in store
}

/** What handlers have got, and who. */
class Handled {
  readonly ids: string[] = []
  readonly by = new Map<string, string>()
  readonly #last = new Map<string, number>()
  isOrdered = true

  of(member: string): (entry: { readonly id: string; readonly source: string }) => void {
    return ({ id, source }) => {
      this.ids.push(id)
      this.by.set(id, member)
      if (Number(id) <= (this.#last.get(source) ?? 0)) this.isOrdered = false
      this.#last.set(source, Number(id))
    }
  }

  count(member: string): number {
    return Array.from(this.by.values()).filter((each) => each === member).length
  }
}

describe('a shared consumer', () => {
  it('divides the entries by their sources among all logs that run it, each in order', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const handled = new Handled()
    for (const name of ['a', 'b', 'c']) {
      const log = await opened(store.connect({ owner: name }))
      log.consume('archive', { share: true, concurrency: 4 }, handled.of(name))
    }
    await append(store, changes(1, 200))
    await until(() => handled.ids.length >= 200)
    await append(store, changes(201, 400))
    await until(() => handled.ids.length >= 400)
    await turns()
    expect(sorted(handled.ids)).toEqual(idsOf(1, 400))
    expect(handled.isOrdered).toBe(true)
    for (const name of ['a', 'b', 'c']) expect(handled.count(name)).toBeGreaterThan(0)
  })

  it('hands a part over once its handlers have ended, and none of its entries twice', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const first = await opened(store.connect({ owner: 'first' }))
    const second = await opened(store.connect({ owner: 'second' }))
    const running = new Map<string, () => void>()
    const ended: string[] = []
    first.consume('archive', { share: true, concurrency: 1_000, highWaterMark: 1_000 }, async ({ id }) => {
      await new Promise<void>((resolve) => running.set(id, resolve))
      ended.push(id)
    })
    await append(store, changes(1, 100))
    await until(() => running.size === 100)
    const handled = new Handled()
    second.consume('archive', { share: true }, handled.of('second'))
    await turns()
    await append(store, changes(101, 200))
    await turns()
    // Its handlers still run.
    expect(handled.ids).toEqual([])
    for (const end of running.values()) end()
    await until(() => handled.count('second') > 0 && running.size + handled.ids.length === 200)
    for (const end of running.values()) end()
    await until(() => ended.length + handled.ids.length === 200)
    expect(sorted([...ended, ...handled.ids])).toEqual(idsOf(1, 200))
  })

  it('goes on with the parts of one that was stopped, where that was', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const [first, second] = [await opened(store.connect()), await opened(store.connect())]
    const handled = new Handled()
    const job = first.consume('archive', { share: true }, handled.of('first'))
    second.consume('archive', { share: true }, handled.of('second'))
    await append(store, changes(1, 100))
    await until(() => handled.ids.length >= 100)
    await job.stop()
    await append(store, changes(101, 200))
    await until(() => handled.ids.length >= 200)
    await turns()
    expect(sorted(handled.ids)).toEqual(idsOf(1, 200))
    expect(idsOf(101, 200).every((id) => handled.by.get(id) === 'second')).toBe(true)
    expect(handled.isOrdered).toBe(true)
  })

  it('has no more entries out than `maxUnacknowledged`, over all parts', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    await append(store, changes(1, 200))
    let out = 0
    let most = 0
    let count = 0
    const options = { share: true, maxUnacknowledged: 7, concurrency: 100 }
    const job = log.consume('archive', options, async () => {
      out += 1
      most = Math.max(most, out)
      await turns(2)
      out -= 1
      count += 1
    })
    await until(() => count === 200)
    await job.stop()
    expect(most).toBe(7)
  })

  it('handles no more entries at once than `concurrency`, over all parts', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    await append(store, changes(1, 100))
    let running = 0
    let most = 0
    let count = 0
    const job = log.consume('archive', { share: true, concurrency: 3 }, async () => {
      running += 1
      most = Math.max(most, running)
      await turns(2)
      running -= 1
      count += 1
    })
    await until(() => count === 100)
    await job.stop()
    expect(most).toBe(3)
  })

  it('errors when an operator has dropped entries of any part', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    const scheduler = new VirtualTimeScheduler()
    await append(store, changes(1, 100))
    const options = { share: true, maxUnacknowledged: 10, scheduler }
    const failed = new Promise<unknown>((resolve) => {
      log
        .consume('archive', options)
        .pipe(
          bufferCount(1_000),
          deliver(() => {}),
        )
        .subscribe({ error: resolve })
    })
    await until(() => scheduler.actions.length > 0)
    scheduler.flush()
    const error = await failed
    expect(error).toBeInstanceOf(StalledConsumerError)
    expect(error).toMatchObject({ consumer: 'consumer:archive' })
    expect(String(error)).toContain('the event ')
  })

  it('gives up, after `stallTimeout`, entries of a lost part that an operator has dropped', async () => {
    const store = simulatedStore({ partitions: 2 })
    const [first, second] = [await opened(store.connect()), await opened(store.connect())]
    const scheduler = new VirtualTimeScheduler()
    await append(store, changes(1, 40))
    let dropped = 0
    first
      .consume('archive', { share: true, scheduler })
      .pipe(
        bufferCount(1_000),
        deliver(() => {}),
      )
      .subscribe()
    const other = first.consume('other', { share: true }).subscribe(() => (dropped += 1))
    await until(() => dropped === 40)
    other.unsubscribe()
    const handled = new Handled()
    second.consume('archive', { share: true }, handled.of('second'))
    await until(() => scheduler.actions.length > 0)
    await turns()
    expect(handled.ids).toEqual([])
    scheduler.flush()
    await until(() => handled.ids.length > 0)
  })

  it('is one row of the statistics, with the owners', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const first = await opened(store.connect({ owner: 'one' }))
    const second = await opened(store.connect({ owner: 'two' }))
    const handled = new Handled()
    first.consume('archive', { share: true }, handled.of('one'))
    second.consume('archive', { share: true }, handled.of('two'))
    await append(store, changes(1, 50))
    await until(() => handled.ids.length >= 50)
    await until(async () => (await first.stats()).readers[0]?.owner?.includes(', ') === true)
    const { readers } = await first.stats()
    expect(readers).toHaveLength(1)
    const [row] = readers
    expect(row).toMatchObject({ kind: 'consumer', name: 'archive', deadLetters: 0 })
    expect(row?.owner?.split(', ').toSorted()).toEqual(['one', 'two'])
    await first.close()
    await second.close()
    const { readers: after } = await (await opened(store)).stats()
    expect(after).toMatchObject([
      { owner: null, lag: { entries: 0, seconds: 0 }, oldestUnacknowledged: null },
    ])
  })

  it('holds retention with each of its parts, and is named as the user knows it', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    await append(store, changes(1, 50))
    let count = 0
    // Otherwise the log waits for the handler when it is closed.
    const held = Promise.withResolvers<void>()
    onTestFinished(() => held.resolve())
    const job = log.consume('archive', { share: true, retries: 0 }, ({ source }) => {
      if (source.endsWith('s7')) return held.promise
      count += 1
      return undefined
    })
    job.done.catch(() => {})
    await until(() => count === 47)
    await turns()
    const { blockedBy } = await store.retention.trim({ limit: 1_000 })
    expect(blockedBy).toMatch(/^consumer\.\d:archive$/)
    await store.retention.setPaused(blockedBy, 1)
    expect((await log.stats()).pausedBy).toBe('consumer:archive')
  })

  it('lists, hands out and removes the dead letters of all parts', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    await append(store, changes(1, 40))
    let isBroken = true
    const handled = new Handled()
    log.consume('archive', { share: true, retries: 0, deadLetters: 'log' }, (entry) => {
      if (isBroken && Number(entry.id) % 2 === 0) throw new Error('even')
      handled.of('a')(entry)
    })
    const letters = log.deadLetters('archive')
    await until(async () => (await letters.count()) === 20)
    const listed = await all(letters.list())
    expect(sorted(listed.map(({ entry }) => entry.id))).toEqual(idsOf(1, 20).map((id) => `${Number(id) * 2}`))
    expect((await log.stats()).readers).toMatchObject([{ deadLetters: 20 }])
    isBroken = false
    expect(await letters.redeliver(listed[3]?.entry.position ?? '')).toBe(1)
    await until(async () => (await letters.count()) === 19)
    expect(await letters.redeliver('all')).toBe(19)
    await until(async () => (await letters.count()) === 0)
    expect(sorted(handled.ids)).toEqual(idsOf(1, 40))
    await expect(letters.remove('elsewhere')).rejects.toThrow('is not one of')
  })

  it('is removed with all of its parts, unless it runs', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    await append(store, changes(1, 40))
    let count = 0
    const options = { share: true, retries: 0, deadLetters: 'log' } as const
    const job = log.consume('archive', options, () => {
      count += 1
      throw new Error('no')
    })
    await until(async () => (await log.deadLetters('archive').count()) === 40)
    await expect(log.remove({ consumer: 'archive' })).rejects.toBeInstanceOf(LogInUseError)
    expect(await log.deadLetters('archive').count()).toBe(40)
    await job.stop()
    await log.remove({ consumer: 'archive' })
    expect((await log.stats()).readers).toEqual([])
    expect(await log.deadLetters('archive').count()).toBe(0)
    count = 0
    const again = log.consume('archive', {}, () => void (count += 1))
    await until(() => count === 40)
    await again.stop()
  })

  it.each([
    ['in memory', () => simulatedStore()],
    ['in a file', () => sqliteStore(scratchFile())],
  ] satisfies [string, () => LogStore][])(
    'of a log %s that is not divided is read by one, and the others stand by',
    async (_, make) => {
      const first = make()
      const one = await opened(first)
      const two = isMemory(first) ? await opened(first.connect()) : undefined
      const handled = new Handled()
      const job = one.consume('archive', { share: true }, handled.of('one'))
      await append(first, changes(1, 20))
      await until(() => handled.ids.length === 20)
      const other = two?.consume('archive', { share: true }, handled.of('two'))
      await turns()
      await job.stop()
      await append(first, changes(21, 40))
      const next = other === undefined ? one.consume('archive', {}, handled.of('two')) : undefined
      await until(() => handled.ids.length === 40)
      expect(handled.ids).toEqual(idsOf(1, 40))
      expect(handled.count('two')).toBe(20)
      expect((await one.stats()).readers.map(({ name }) => name)).toEqual(['archive'])
      await next?.stop()
    },
  )

  it('waits for its parts whatever has become of its `wait`, which is for one that runs alone', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const [one, two] = [await opened(store.connect()), await opened(store.connect())]
    const handled = new Handled()
    const wait = new AbortController()
    const first = one.consume('archive', { share: true, wait: wait.signal }, handled.of('one'))
    const second = two.consume('archive', { share: true }, handled.of('two'))
    await append(store, changes(1, 100))
    await until(() => handled.ids.length === 100 && handled.count('two') > 0)
    wait.abort(new Error('waited for long enough'))
    // Its parts are those of the first one again.
    await second.stop()
    await append(store, changes(101, 200))
    await Promise.race([first.done, until(() => handled.ids.length === 200)])
    await first.stop()
    expect(sorted(handled.ids)).toEqual(idsOf(1, 200))
    const third = two.consume('alone', {}, () => {})
    await append(store, changes(201, 201))
    await turns()
    const options = { share: true, wait: AbortSignal.abort(new Error('waited for long enough')) }
    await expect(one.consume('alone', options, () => {}).done).rejects.toThrow('waited for long enough')
    await third.stop()
  })

  it('begins anew after a removal that was interrupted', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    await append(store, changes(1, 40))
    const handled = new Handled()
    const job = log.consume('archive', { share: true }, handled.of('first'))
    await until(() => handled.ids.length === 40)
    await job.stop()
    const remove = store.retention.remove.bind(store.retention)
    for (let removed = 1; removed < PARTITIONS; removed++) {
      // The one that is not divided, which is not there, and a part.
      let left = 2
      const spy = vi.spyOn(store.retention, 'remove').mockImplementation(async (name) => {
        if (left-- === 0) throw new Error('killed')
        await remove(name)
      })
      await expect(log.remove({ consumer: 'archive' })).rejects.toThrow('killed')
      spy.mockRestore()
      // Some of it is left, so it is not one that can run alone.
      await expect(log.consume('archive', {}, () => {}).done).rejects.toBeInstanceOf(LogUnsupportedError)
    }
    await log.remove({ consumer: 'archive' })
    expect((await log.stats()).readers).toEqual([])
    const again = new Handled()
    const next = log.consume('archive', { share: true }, again.of('next'))
    await until(() => again.ids.length === 40)
    await next.stop()
    expect(sorted(again.ids)).toEqual(idsOf(1, 40))
  })

  it('goes on without the parts that it has lost where its log was fenced', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const [lost, other] = [store.connect(), await opened(store.connect())]
    const log = await opened(lost)
    const handled = new Handled()
    const held = Promise.withResolvers<void>()
    let isBegun = false
    const job = log.consume('archive', { share: true }, () => {
      isBegun = true
      return held.promise
    })
    await append(store, changes(1, 40))
    await until(() => isBegun)
    lost.loseClaims()
    other.consume('archive', { share: true }, handled.of('other'))
    await until(() => handled.ids.length === 40)
    held.resolve()
    await append(store, changes(41, 80))
    await until(() => handled.ids.length === 80)
    await job.stop()
    expect(sorted(handled.ids)).toEqual(idsOf(1, 80))
  })

  it('runs once in an open log', async () => {
    const log = await opened(simulatedStore({ partitions: 2 }))
    log.consume('archive', { share: true }, () => {})
    await expect(log.consume('archive', { share: true }, () => {}).done).rejects.toBeInstanceOf(LogInUseError)
  })

  it('refuses a setting that is no boolean', async () => {
    const log = await opened(simulatedStore())
    // @ts-expect-error -- from outside of TypeScript
    expect(() => log.consume('archive', { share: 'yes' }, () => {})).toThrow(ArgumentError)
  })
})

describe('a consumer that ran alone and then shared', () => {
  /** A consumer that has handled all but the entries of `s3`, from the second on. */
  async function partly(store: SimulatedStore): Promise<readonly string[]> {
    const log = await openLog(store.connect())
    const done: string[] = []
    await append(store, changes(1, 60))
    const job = log.consume('archive', { concurrency: 100, drainTimeout: 0 }, ({ id, source }) => {
      if (source.endsWith('s3') && id !== '3') return new Promise(() => {})
      done.push(id)
      return undefined
    })
    job.done.catch(() => {})
    await until(() => done.length === 58)
    await until(async () => (await store.reader('consumer:archive'))?.acknowledged.length !== 0)
    await log.close().catch(() => {})
    return done
  }

  it('goes on where it was, with what it had acknowledged ahead', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const before = await partly(store)
    const [one, two] = [await opened(store.connect()), await opened(store.connect())]
    const handled = new Handled()
    one.consume('archive', { share: true }, handled.of('one'))
    two.consume('archive', { share: true }, handled.of('two'))
    await append(store, changes(61, 120))
    await until(() => handled.ids.length >= 62)
    await turns()
    expect(sorted([...before, ...handled.ids])).toEqual(idsOf(1, 120))
    expect(await store.reader('consumer:archive')).toBeUndefined()
    expect((await one.stats()).readers).toHaveLength(1)
  })

  it('waits for the one that runs alone', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const [one, two] = [await opened(store.connect()), await opened(store.connect())]
    const handled = new Handled()
    const alone = one.consume('archive', handled.of('one'))
    await append(store, changes(1, 20))
    await until(() => handled.ids.length === 20)
    two.consume('archive', { share: true }, handled.of('two'))
    await turns()
    await append(store, changes(21, 40))
    await until(() => handled.ids.length === 40)
    await alone.stop()
    await append(store, changes(41, 60))
    await until(() => handled.ids.length === 60)
    expect(sorted(handled.ids)).toEqual(idsOf(1, 60))
    expect(handled.count('one')).toBe(40)
    expect(handled.isOrdered).toBe(true)
  })

  it('takes its dead letters along, to be handed out again', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    await append(store, changes(1, 20))
    const job = log.consume('archive', { retries: 0, deadLetters: 'log' }, () => {
      throw new Error('not yet')
    })
    const letters = log.deadLetters('archive')
    await until(async () => (await letters.count()) === 20)
    await job.stop()
    const listed = await all(letters.list())
    await letters.redeliver(listed[0]?.entry.position ?? '')
    // They have their entries with them.
    await store.retention.trim({ limit: 1_000 })
    const handled = new Handled()
    log.consume('archive', { share: true, deadLetters: 'log' }, handled.of('shared'))
    await until(async () => (await letters.count()) === 19)
    expect(handled.ids).toEqual([listed[0]?.entry.id])
    await letters.redeliver('all')
    await until(async () => (await letters.count()) === 0)
    expect(sorted(handled.ids)).toEqual(idsOf(1, 20))
  })

  it('cannot run alone any more, until it is removed', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store)
    const handled = new Handled()
    const job = log.consume('archive', { share: true }, handled.of('shared'))
    await append(store, changes(1, 20))
    await until(() => handled.ids.length === 20)
    await job.stop()
    await expect(log.consume('archive', () => {}).done).rejects.toBeInstanceOf(LogUnsupportedError)
    expect((await log.stats()).readers).toMatchObject([{ name: 'archive', owner: null }])
    const again = log.consume('archive', { share: true }, handled.of('shared'))
    await append(store, changes(21, 40))
    await until(() => handled.ids.length === 40)
    await again.stop()
    expect(sorted(handled.ids)).toEqual(idsOf(1, 40))
  })

  it('loses and doubles nothing where the division is interrupted at any write', async () => {
    // More than the division has.
    for (let crash = 1; crash <= 60; crash++) {
      const store = simulatedStore({ partitions: 4 })
      const before = await partly(store)
      let writes = 0
      const faults = (_: string, step: 'before' | 'after') => {
        writes += 1
        if (writes >= crash) throw new Error(`crashed ${step} a write`)
      }
      const handled = new Handled()
      const crashing = store.connect({ faults })
      const log = await openLog(crashing)
      const job = log.consume('archive', { share: true }, () => new Promise(() => {}))
      job.done.catch(() => {})
      await turns(40)
      void log.close().catch(() => {})
      crashing.loseClaims()
      await turns(2)
      crashing.loseClaims()
      // It is refused, or it goes on.
      const whole = await openLog(store.connect())
      const alone = whole.consume('archive', handled.of('alone'))
      const isRefused = await Promise.race([
        alone.done.then(
          () => false,
          () => true,
        ),
        turns(20),
      ])
      await whole.close()
      const isDivided = (await store.reader('consumer.0:archive')) !== undefined
      expect(isRefused === true).toBe(isDivided)
      const shared = await openLog(store.connect())
      shared.consume('archive', { share: true }, handled.of('shared'))
      await until(() => handled.ids.length >= 2)
      await turns(20)
      expect(sorted([...before, ...handled.ids])).toEqual(idsOf(1, 60))
      await shared.close()
    }
  })
})

describe('a shared consumer with exactlyOnce', () => {
  function effectsIn() {
    const database = new DatabaseSync(':memory:')
    onTestFinished(() => database.close())
    database.exec('CREATE TABLE effect (id TEXT NOT NULL)')
    const insert = database.prepare('INSERT INTO effect VALUES (?)')
    let isBroken = false
    return {
      database,
      insert: (id: string) => {
        insert.run(id)
      },
      handler: exactlyOnce(database, {
        effect: ({ id }: { readonly id: string }) => {
          if (isBroken && Number(id) % 2 === 0) throw new Error('even')
          insert.run(id)
        },
      }),
      break: (broken: boolean) => (isBroken = broken),
      ids: () =>
        database
          .prepare('SELECT id FROM effect')
          .all()
          .map(({ id }) => String(id)),
    }
  }

  it('does not fail where it was suspended and another one has taken over, and each effect happens once', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const [lost, other] = [store.connect(), await opened(store.connect())]
    const log = await opened(lost)
    const effects = effectsIn()
    const held = Promise.withResolvers<void>()
    let begun = 0
    const suspended = exactlyOnce(effects.database, {
      prepare: async ({ id }: { readonly id: string }) => {
        begun += 1
        await held.promise
        return id
      },
      effect: (_, id) => effects.insert(id),
    })
    const job = log.consume('ledger', { share: true }, suspended)
    await append(store, changes(1, 40))
    await until(() => begun >= 8)
    lost.loseClaims()
    other.consume('ledger', { share: true }, effects.handler)
    await until(() => effects.ids().length === 40)
    held.resolve()
    await append(store, changes(41, 80))
    await until(() => effects.ids().length === 80)
    await job.stop()
    expect(sorted(effects.ids())).toEqual(idsOf(1, 80))
  })

  it('fails where the handler itself throws a FencedError, and its effect comes later', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store.connect())
    const effects = effectsIn()
    let isFenced = true
    const handler = exactlyOnce(effects.database, {
      prepare: async ({ id }: { readonly id: string }) => {
        if (id === '7' && isFenced) throw new FencedError('another log', 'stream:x')
        return id
      },
      effect: (_, id) => effects.insert(id),
    })
    await append(store, changes(1, 40))
    await expect(log.consume('ledger', { share: true }, handler).done).rejects.toThrow('another log')
    isFenced = false
    const job = log.consume('ledger', { share: true }, handler)
    await until(() => effects.ids().length === 40)
    await job.stop()
    expect(sorted(effects.ids())).toEqual(idsOf(1, 40))
  })

  it('keeps a dead letter that was handed out again where the database of the effects refuses it', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const log = await opened(store.connect())
    const effects = effectsIn()
    await append(store, changes(1, 10))
    effects.break(true)
    const options = { share: true, retries: 0, deadLetters: 'log' } as const
    const job = log.consume('ledger', options, effects.handler)
    const letters = log.deadLetters('ledger')
    await until(async () => (await letters.count()) === 5)
    effects.break(false)
    await append(store, changes(11, 90))
    const open = effects.database.prepare('SELECT 1 FROM rivulet_effect_dead_letter WHERE letter IS NOT NULL')
    // All that there is to save is saved.
    await until(() => effects.ids().length === 85 && open.all().length === 0)
    await turns()
    // As a backup of the database does that is put back.
    effects.database.exec('UPDATE rivulet_effect_cursor SET token = token - 1')
    await letters.redeliver('all')
    await until(async () => (await letters.count()) === 0)
    await job.stop()
    expect(sorted(effects.ids())).toEqual(idsOf(1, 90))
  })

  it('has each effect once, over the switch and over parts that move', async () => {
    const store = simulatedStore({ partitions: PARTITIONS })
    const effects = effectsIn()
    const first = await openLog(store.connect())
    await append(store, changes(1, 30))
    effects.break(true)
    const options = { retries: 0, deadLetters: 'log' } as const
    const alone = first.consume('ledger', options, effects.handler)
    await until(async () => (await first.deadLetters('ledger').count()) === 15)
    await alone.stop()
    effects.break(false)
    const job = first.consume('ledger', { ...options, share: true }, effects.handler)
    await append(store, changes(31, 60))
    await until(() => effects.ids().length === 45)
    const second = await opened(store.connect())
    second.consume('ledger', { ...options, share: true }, effects.handler)
    await append(store, changes(61, 90))
    await until(() => effects.ids().length === 75)
    await job.stop()
    await first.close()
    await append(store, changes(91, 120))
    await until(() => effects.ids().length === 105)
    const letters = second.deadLetters('ledger')
    expect(await letters.count()).toBe(15)
    await letters.redeliver('all')
    await until(async () => (await letters.count()) === 0)
    await turns()
    expect(sorted(effects.ids())).toEqual(idsOf(1, 120))
  })
})
