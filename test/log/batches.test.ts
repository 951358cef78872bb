import { setImmediate as turn } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { Subject, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { ArgumentError, RivuletError } from 'rivulet'
import { batch, deliver } from 'rivulet/operators'
import type { DeadLetter } from '../../operators/deliver/in-flight.ts'
import { ConsumerError, EffectError, exactlyOnceIn, LogClosedError, openLog } from 'rivulet/log'
import type { Entry, EntryOf, EventLog } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import type { LogStore } from 'rivulet/log/store'
import { simulatedStore } from '../../src/log/memory/store.ts'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { MemoryEffects } from './effects/memory-effects.ts'
import { scratchFile } from './sqlite/scratch.ts'

const changes = (from: number, to: number, source = 'm') =>
  Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`, source))

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

/** The ids of the dead letters of a consumer, with their attempts. */
async function deadLettersOf(log: EventLog, name: string): Promise<Readonly<Record<string, number>>> {
  const found: Record<string, number> = {}
  for await (const { entry, attempts } of log.deadLetters(name).list()) found[entry.id] = attempts
  return found
}

/** A handler that fails for batches with one of these ids, and notes the batches that it has handled. */
function failingAt(...bad: readonly string[]) {
  const handled: (readonly string[])[] = []
  const calls: (readonly string[])[] = []
  const handler = (entries: readonly Entry[]) => {
    const ids = entries.map(({ id }) => id)
    calls.push(ids)
    if (ids.some((id) => bad.includes(id))) throw new Error('boom')
    handled.push(ids)
  }
  return { calls, handled, handler }
}

/** The entries that the consumer would get next, up to the end of the log. */
async function remaining(log: EventLog, name: string): Promise<readonly string[]> {
  const ids: string[] = []
  const job = log.consume(name, {}, ({ id }) => void ids.push(id))
  await turns()
  await job.stop()
  return ids
}

describe('a consumer with batches', () => {
  it('gives its handler as many entries as a batch has, and the rest once it has waited', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 7))
    const scheduler = new VirtualTimeScheduler(undefined, 0)
    const { handled, handler } = failingAt()
    log.consume('rows', { batch: { size: 3, wait: 50 }, scheduler, stallTimeout: 10 }, handler)
    await until(() => handled.length === 2)
    await turns()
    scheduler.maxFrames = 49
    scheduler.flush()
    expect(handled).toEqual([
      ['1', '2', '3'],
      ['4', '5', '6'],
    ])
    // What waits here does not stall the consumer.
    scheduler.maxFrames = 50
    scheduler.flush()
    expect(handled.at(-1)).toEqual(['7'])
  })

  it('acknowledges a batch once it is handled, and no entry of one that is not', async () => {
    const store = simulatedStore()
    const log = await opened(store.connect())
    await append(store, changes(1, 9))
    const begun: (readonly string[])[] = []
    const held = new Promise<void>(() => {})
    const job = log.consume('rows', { batch: { size: 3, wait: 60_000 }, drainTimeout: 0 }, (entries) => {
      begun.push(entries.map(({ id }) => id))
      return begun.length === 2 ? held : undefined
    })
    await until(() => begun.length === 3)
    await turns()
    await expect(job.stop()).rejects.toThrow('1 event was still being handled')
    expect(await remaining(log, 'rows')).toEqual(['4', '5', '6'])
  })

  it('gets entries again that waited for more when it was stopped, and when the log was closed', async () => {
    const store = simulatedStore()
    await append(store, changes(1, 5))
    for (const end of ['stop', 'close']) {
      const log = await opened(store.connect())
      const { handled, handler } = failingAt()
      const job = log.consume('rows', { batch: { size: 9, wait: 60_000 } }, handler)
      await turns()
      await (end === 'stop' ? job.stop() : log.close())
      expect(handled).toEqual([])
    }
    expect(await remaining(await opened(store.connect()), 'rows')).toEqual(idsOf(1, 5))
  })

  it('hands what it has to deliver when the log is closed, if that is piped', async () => {
    const store = simulatedStore()
    const log = await opened(store.connect())
    await append(store, changes(1, 5))
    const { handled, handler } = failingAt()
    const ended = new Promise<void>((complete, error) => {
      log
        .consume('rows')
        .pipe(batch({ size: 3, wait: 60_000 }), deliver(handler))
        .subscribe({ complete, error })
    })
    await until(() => handled.length === 1)
    await turns()
    await log.close()
    await ended
    expect(handled).toEqual([
      ['1', '2', '3'],
      ['4', '5'],
    ])
    expect(await remaining(await opened(store.connect()), 'rows')).toEqual([])
  })

  it('has types by which the handler gets batches, also one of exactlyOnce', async () => {
    const log = await opened(simulatedStore())
    const database = new DatabaseSync(':memory:')
    onTestFinished(() => database.close())
    type Runs = readonly [EntryOf<'task_run.state'>, ...EntryOf<'task_run.state'>[]]
    const options = { types: ['task_run.state'], batch: { size: 5, wait: 1 } } as const
    log.consume('a', options, (entries) => expectTypeOf(entries).toEqualTypeOf<Runs>() as unknown as void)
    log.consume('b', { types: ['task_run.state'], where: () => true }, (entry) => {
      expectTypeOf(entry).toEqualTypeOf<EntryOf<'task_run.state'>>()
    })
    log.consume('c', { batch: { size: 5, wait: 1, key: ({ source }) => source } }, (entries) => {
      expectTypeOf(entries).toEqualTypeOf<readonly [Entry, ...Entry[]]>()
    })
    const effect = ([{ data }]: Runs) => void data.run
    log.consume('d', options, exactlyOnce(database, { effect }))
    log.consume(
      'e',
      { types: ['task_run.state'], batch: { size: 5, wait: 1, key: ({ data }) => data.run.run_id } },
      exactlyOnce(database, {
        prepare: async ([first]) => first.data.run.run_id,
        effect: (entries, id) => {
          expectTypeOf(entries).toEqualTypeOf<Runs>()
          expectTypeOf(id).toEqualTypeOf<string>()
        },
      }),
    )
    log.consume(
      'f',
      { batch: { size: 5, wait: 1 } },
      exactlyOnceIn(new MemoryEffects(), {
        effect: ([first], connection) => connection.write(first.id),
      }),
    )
    const ofEntries = exactlyOnce(database, { effect: ({ id }) => void id })
    log.consume('g', ofEntries)
    // @ts-expect-error its effect is of an entry
    log.consume('h', { batch: { size: 5, wait: 1 } }, ofEntries)
    // @ts-expect-error its handler would get entries
    log.consume('i', {}, (entries: readonly [Entry]) => void entries)
    await turns()
  })
})

describe('a batch that fails for good', () => {
  it('is divided until the entry at fault is alone: 1 dead letter of 60', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 60))
    const { calls, handled, handler } = failingAt('17')
    const job = log.consume(
      'rows',
      { batch: { size: 60, wait: 60_000 }, retries: 1, initialDelay: 0, deadLetters: 'log', concurrency: 1 },
      handler,
    )
    await until(async () => (await log.deadLetters('rows').count()) === 1)
    await until(() => handled.flat().length === 59)
    await job.stop()
    // Twice in the batch of 60, once in those of 30, 15, 8, 4 and 2, and twice alone.
    expect(await deadLettersOf(log, 'rows')).toEqual({ 17: 9 })
    expect(calls.filter((ids) => ids.includes('17')).map(({ length }) => length)).toEqual([
      60, 60, 30, 15, 8, 4, 2, 1, 1,
    ])
    expect(handled.flat()).toEqual(idsOf(1, 60).filter((id) => id !== '17'))
    expect(await remaining(log, 'rows')).toEqual([])
  })

  it.each([{ bad: ['1', '2', '3'] }, { bad: ['1', '30', '60'] }, { bad: ['15', '16', '31'] }])(
    'has a dead letter of each entry at fault, and of no other: $bad',
    async ({ bad }) => {
      const store = simulatedStore()
      const log = await opened(store)
      await append(store, changes(1, 60))
      const { handled, handler } = failingAt(...bad)
      const job = log.consume(
        'rows',
        { batch: { size: 60, wait: 60_000 }, retries: 0, deadLetters: 'log' },
        handler,
      )
      await until(async () => (await log.deadLetters('rows').count()) === 3)
      await until(() => handled.flat().length === 57)
      await job.stop()
      expect(Object.keys(await deadLettersOf(log, 'rows'))).toEqual(bad)
      expect(sorted(handled.flat())).toEqual(idsOf(1, 60).filter((id) => !bad.includes(id)))
      expect(await remaining(log, 'rows')).toEqual([])
    },
  )

  it('gives its dead letters to others as entries', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 5))
    const { handler } = failingAt('4')
    const deadLetters = new Subject<DeadLetter<Entry>>()
    const dead: unknown[] = []
    deadLetters.subscribe(({ event, attempts }) => dead.push([event.id, attempts]))
    const job = log.consume('rows', { batch: { size: 5, wait: 60_000 }, retries: 0, deadLetters }, handler)
    await until(() => dead.length === 1)
    await job.stop()
    expect(dead).toEqual([['4', 3]])
    expect(await remaining(log, 'rows')).toEqual([])
  })

  it('ends the job with the entry at fault in the error, and the entries before it are acknowledged', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 8))
    const { handler } = failingAt('6')
    const { done } = log.consume(
      'rows',
      { batch: { size: 8, wait: 60_000 }, retries: 0, concurrency: 1 },
      handler,
    )
    const error = await done.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(ConsumerError)
    expect(error).toMatchObject({ consumer: 'rows', id: '6', source: '/v1/monitors/m', attempts: 4 })
    expect(await remaining(log, 'rows')).toEqual(['6', '7', '8'])
  })

  it('hands its dead letter out again alone, although others wait behind a slow handler', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 4))
    const effects = new MemoryEffects()
    let isMended = false
    const batches: number[] = []
    const handler = exactlyOnceIn(effects, {
      prepare: async ({ length }: readonly Entry[]) => {
        batches.push(length)
        await turns(20)
        if (!isMended) throw new Error('boom')
      },
      effect: async (entries: readonly Entry[], _, connection: { write(text: string): Promise<void> }) => {
        for (const { id } of entries) await connection.write(id)
      },
    })
    const options = { concurrency: 1, retries: 0, deadLetters: 'log', batch: { size: 4, wait: 0 } } as const
    const job = log.consume('rows', options, handler)
    await until(async () => (await log.deadLetters('rows').count()) === 4)
    isMended = true
    batches.length = 0
    await log.deadLetters('rows').redeliver('all')
    await turns(5)
    await append(store, changes(5, 8))
    await until(() => effects.written.length === 8)
    await job.stop()
    expect(sorted(effects.written)).toEqual(idsOf(1, 8))
    expect(batches.filter((length) => length === 1)).toHaveLength(4)
  })

  it('hands its dead letters out again alone', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 4))
    const failing = failingAt('2', '3')
    const options = { batch: { size: 4, wait: 60_000 }, retries: 0, deadLetters: 'log' } as const
    const first = log.consume('rows', options, failing.handler)
    await until(async () => (await log.deadLetters('rows').count()) === 2)
    await first.stop()
    await log.deadLetters('rows').redeliver('all')
    const mended = failingAt()
    const second = log.consume('rows', options, mended.handler)
    await until(async () => (await log.deadLetters('rows').count()) === 0)
    await second.stop()
    expect(mended.calls).toEqual([['2'], ['3']])
  })
})

describe('a slow handler of batches', () => {
  it('gets full batches, and as many entries are out as may be', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3_000))
    const sizes: number[] = []
    let read = 0
    let handled = 0
    let most = 0
    const job = log.consume(
      'rows',
      {
        batch: { size: 40, wait: 0 },
        concurrency: 2,
        maxUnacknowledged: 200,
        where: () => {
          read += 1
          return true
        },
      },
      async ({ length }) => {
        sizes.push(length)
        most = Math.max(most, read - handled)
        await turns(20)
        handled += length
      },
    )
    await until(() => handled === 3_000)
    await job.stop()
    // An entry that is being looked at is not out yet.
    expect(most).toBeLessThanOrEqual(200 + 1)
    // The first ones come before any other waits behind them.
    expect(sizes.slice(2, -5).filter((size) => size < 40)).toEqual([])
  })

  it('of few entries with each key gets batches before they are full, rather than none', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 500))
    const { handled, handler } = failingAt()
    // No time passes.
    const scheduler = new VirtualTimeScheduler(undefined, 0)
    log.consume(
      'rows',
      { batch: { size: 20, wait: 60_000, key: ({ id }) => id }, maxUnacknowledged: 50, scheduler },
      handler,
    )
    await until(() => handled.length >= 450)
    expect(handled.slice(0, 50).flat()).toEqual(idsOf(1, 50))
  })

  it('does not wait for the batch of a rare key that keeps the cursor', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, [change('1', 'rare'), ...changes(2, 1_000)])
    const { handled, handler } = failingAt()
    const scheduler = new VirtualTimeScheduler(undefined, 0)
    log.consume(
      'rows',
      { batch: { size: 10, wait: 60_000, key: ({ source }) => source }, maxUnacknowledged: 30, scheduler },
      handler,
    )
    await until(() => handled.flat().length >= 990)
    expect(handled.flat()).toContain('1')
  })
})

describe('batches of a shared consumer', () => {
  const spread = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`, `s${(from + n) % 20}`))

  it('have entries of several parts, and all are handled once, although a part moves meanwhile', async () => {
    const store = simulatedStore({ partitions: 8 })
    const { handled, handler } = failingAt()
    // A batch would never be full, and no time passes.
    const scheduler = new VirtualTimeScheduler(undefined, 0)
    const options = { share: true, batch: { size: 50, wait: 60_000 }, scheduler } as const
    const first = await opened(store.connect({ owner: 'first' }))
    const job = first.consume('rows', options, handler)
    await append(store, spread(1, 30))
    await turns()
    expect(handled).toEqual([])
    const second = await opened(store.connect({ owner: 'second' }))
    second.consume('rows', options, handler)
    // What waits of a part that moves is handled first.
    await until(() => handled.flat().length === 30)
    await append(store, spread(31, 300))
    await until(() => handled.flat().length >= 200)
    await job.stop()
    await turns()
    scheduler.maxFrames = 60_000
    scheduler.flush()
    await until(() => handled.flat().length >= 300)
    expect(sorted(handled.flat())).toEqual(idsOf(1, 300))
  })

  it('with exactlyOnce have entries of one part each, and the effect of each happens once', async () => {
    const store = simulatedStore({ partitions: 4 })
    const effects = new MemoryEffects()
    const batches: (readonly Entry[])[] = []
    const run = async (owner: string) => {
      const log = await opened(store.connect({ owner }))
      const handler = exactlyOnceIn(effects, {
        prepare: (entries: readonly Entry[]) => void batches.push(entries),
        effect: async (entries: readonly Entry[], _, connection: { write(text: string): Promise<void> }) => {
          for (const { id } of entries) await connection.write(id)
          if (entries.some(({ id }) => id === '77')) throw new Error('boom')
        },
      })
      return log.consume(
        'rows',
        { share: true, batch: { size: 10, wait: 0 }, retries: 0, deadLetters: 'log' },
        handler,
      )
    }
    await append(store, spread(1, 100))
    const first = await run('first')
    await until(() => effects.written.length > 20)
    await run('second')
    await append(store, spread(101, 200))
    await until(() => effects.written.length > 150)
    await first.stop()
    await until(() => effects.written.length >= 199)
    await turns()
    expect(sorted(effects.written)).toEqual(idsOf(1, 200).filter((id) => id !== '77'))
    const partitions = await store.sharing.partitions()
    const mixed = batches.filter(
      (entries) => new Set(entries.map(({ source }) => partitions.of(source))).size > 1,
    )
    expect(mixed).toEqual([])
    expect(batches.some(({ length }) => length > 1)).toBe(true)
  })
})

describe('batches of exactlyOnce', () => {
  /** A log with so many entries, and a table of effects. */
  async function withRows(count: number) {
    const store = sqliteStore(scratchFile())
    const log = await opened(store)
    await append(store, changes(1, count))
    const database = new DatabaseSync(':memory:')
    onTestFinished(() => database.close())
    database.exec('CREATE TABLE row (id TEXT NOT NULL)')
    const insert = database.prepare('INSERT INTO row VALUES (?)')
    const rows = () =>
      database
        .prepare('SELECT id FROM row ORDER BY rowid')
        .all()
        .map(({ id }) => String(id))
    const cursor = () =>
      database.prepare('SELECT cursor, acknowledged FROM rivulet_effect_cursor').get() as {
        cursor: string
        acknowledged: string
      }
    return { store, log, database, insert, rows, cursor }
  }

  it('apply the effect of a batch and move the cursor behind all of its entries together', async () => {
    const { store, log, database, insert, rows, cursor } = await withRows(25)
    const job = log.consume(
      'rows',
      { batch: { size: 10, wait: 0 } },
      exactlyOnce(database, { effect: (entries) => entries.forEach(({ id }) => insert.run(id)) }),
    )
    await until(() => rows().length === 25)
    await job.stop()
    expect(rows()).toEqual(idsOf(1, 25))
    expect(cursor()).toEqual({ cursor: await store.positionAt('end'), acknowledged: '[]' })
  })

  it('take back the whole effect of a batch that fails, and have each good entry once and the others as dead letters', async () => {
    const { log, database, insert, rows } = await withRows(60)
    let calls = 0
    const job = log.consume(
      'rows',
      { batch: { size: 60, wait: 60_000 }, retries: 1, initialDelay: 0, deadLetters: 'log' },
      exactlyOnce(database, {
        effect: (entries) => {
          calls += 1
          for (const { id } of entries) {
            insert.run(id)
            if (id === '9' || id === '50') throw new Error('boom')
          }
        },
      }),
    )
    await until(() => rows().length === 58)
    await until(async () => (await log.deadLetters('rows').count()) === 2)
    expect(calls).toBeGreaterThan(10)
    await job.stop()
    expect(sorted(rows())).toEqual(idsOf(1, 60).filter((id) => id !== '9' && id !== '50'))
    expect(Object.keys(await deadLettersOf(log, 'rows'))).toEqual(['9', '50'])

    // Handed out again, each has a transaction with its own row.
    await log.deadLetters('rows').redeliver('all')
    const mended = log.consume(
      'rows',
      { batch: { size: 60, wait: 60_000 }, deadLetters: 'log' },
      exactlyOnce(database, { effect: (entries) => entries.forEach(({ id }) => insert.run(id)) }),
    )
    await until(async () => (await log.deadLetters('rows').count()) === 0)
    await mended.stop()
    expect(sorted(rows())).toEqual(idsOf(1, 60))
  })

  it('are divided when the database refuses a batch at the commit', async () => {
    const { log, database, rows } = await withRows(20)
    database.exec(`
      PRAGMA foreign_keys = ON;
      CREATE TABLE account (id TEXT PRIMARY KEY);
      CREATE TABLE booking (account TEXT REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED);
    `)
    const insert = database.prepare('INSERT INTO row VALUES (?)')
    const book = database.prepare('INSERT INTO booking VALUES (?)')
    const job = log.consume(
      'rows',
      { batch: { size: 20, wait: 60_000 }, retries: 0, deadLetters: 'log' },
      exactlyOnce(database, {
        effect: (entries) => {
          for (const { id } of entries) {
            insert.run(id)
            if (id === '13') book.run(id)
          }
        },
      }),
    )
    await until(() => rows().length === 19)
    await until(async () => (await log.deadLetters('rows').count()) === 1)
    await job.stop()
    expect(sorted(rows())).toEqual(idsOf(1, 20).filter((id) => id !== '13'))
  })

  it('that end their transaction end the job, and what they have committed is not applied again', async () => {
    const { log, database, insert, rows } = await withRows(6)
    const run = (effect: (entries: readonly Entry[]) => void) =>
      log.consume(
        'rows',
        { batch: { size: 6, wait: 0 }, deadLetters: 'log' },
        exactlyOnce(database, { effect }),
      )
    const error = await run((entries) => {
      for (const { id } of entries) insert.run(id)
      database.exec('COMMIT')
    }).done.catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(EffectError)
    expect(error).toMatchObject({ entry: undefined })
    const job = run((entries) => entries.forEach(({ id }) => insert.run(`${id} again`)))
    await turns()
    await job.stop()
    expect(rows()).toEqual(idsOf(1, 6))
  })
})

describe('ConsumerError', () => {
  const failure = async (handler: () => unknown, retries = 2) => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const { done } = log.consume('billing', { retries, initialDelay: 0 }, () => handler() as void)
    return done.catch((reason: unknown) => reason)
  }

  it('says which consumer, which event and how many attempts, and what to do', async () => {
    const cause = new Error('boom')
    const error = await failure(() => {
      throw cause
    })
    expect(error).toBeInstanceOf(ConsumerError)
    expect(error).toMatchObject({
      code: 'consumer',
      consumer: 'billing',
      source: '/v1/monitors/m',
      id: '1',
      attempts: 3,
      retryable: false,
      cause,
      message:
        'the handler of the consumer "billing" failed at the event "1" of /v1/monitors/m in 3 attempts: Error: boom. The consumer has ' +
        "stopped, and the event comes again at its next start: correct the handler, or go on past such events with `deadLetters: 'log'`",
    })
  })

  it('can be retried if its cause can be', async () => {
    const cause = Object.assign(new Error('busy'), { retryable: true })
    expect(await failure(() => Promise.reject(cause), 0)).toMatchObject({
      retryable: true,
      attempts: 1,
      cause,
    })
  })

  it.each([undefined, null, 'a text', Object.create(null), { toString: () => 5 }])(
    'has any cause that was thrown: %s',
    async (cause: unknown) => {
      const error = await failure(() => Promise.reject(cause), 0)
      expect(RivuletError.is<ConsumerError>(error, 'consumer') && error.cause).toBe(cause)
    },
  )

  it('is not the error of a log, nor of dead letters that are not taken', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const full = new Error('the queue is full')
    const deadLetters = {
      next: () => {
        throw full
      },
    }
    const boom = () => {
      throw new Error('boom')
    }
    await expect(log.consume('a', { retries: 0, deadLetters }, boom).done).rejects.toBe(full)
    const database = new DatabaseSync(':memory:')
    database.close()
    const job = log.consume('b', exactlyOnce(database, { effect: () => {} }))
    await expect(job.done).rejects.toBeInstanceOf(EffectError)
    await log.close()
    const closed = log.consume('c', {}, () => {})
    await expect(closed.done).rejects.toBeInstanceOf(LogClosedError)
  })

  it('is that of a handler whose dead letters nobody subscribes to', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const boom = () => Promise.reject(new Error('boom'))
    const { done } = log.consume('a', { retries: 0, deadLetters: new Subject() }, boom)
    await expect(done).rejects.toBeInstanceOf(ConsumerError)
  })
})

describe('the options of a job', () => {
  const refused = async (options: object) => {
    const log = await opened(simulatedStore())
    try {
      log.consume('rows', options as never, () => {})
    } catch (error) {
      return error
    }
    return undefined
  }

  it.each([
    [{ tyeps: [] }, 'options has no option tyeps; did you mean types?'],
    [{ retrys: 5 }, 'options has no option retrys; did you mean retries?'],
    [{ bacth: {} }, 'options has no option bacth; did you mean batch?'],
    [{ gate: undefined }, 'options has no option gate'],
    [{ batch: { siez: 5 } }, 'batch has no option siez; did you mean size?'],
    [{ batch: { size: 5, waits: 5 } }, 'batch has no option waits; did you mean wait?'],
    [{ batch: { size: 5, wait: 5, scheduler: {} } }, 'batch has no option scheduler'],
    [{ batch: 5 }, 'batch must be an object with size and wait'],
    [{ batch: null }, 'batch must be an object with size and wait'],
    [{ batch: { size: '5', wait: 5 } }, 'batch.size must be an integer'],
    [{ batch: { size: 5 } }, 'batch.wait must be a number of milliseconds'],
    [{ batch: { size: 5, wait: Infinity } }, 'batch.wait must be a number of milliseconds'],
    [{ batch: { size: 5, wait: 5, key: 'source' } }, 'batch.key must be a function'],
    [{ batch: { size: 5, wait: 5 }, key: () => '' }, 'key must be within `batch`'],
    [{ batch: { size: 6, wait: 5 }, maxUnacknowledged: 5 }, 'batch.size must be an integer from 1 to 5'],
    [{ batch: { size: 5_001, wait: 5 } }, 'batch.size must be an integer from 1 to 5000'],
  ])('are known and valid: %j', async (options, message) => {
    const error = await refused(options)
    expect(error).toBeInstanceOf(ArgumentError)
    expect(error).toHaveProperty('message', expect.stringContaining(message))
  })

  it('are known for an Observable too, which has no batches', async () => {
    const log = await opened(simulatedStore())
    const consume = (options: object) => () => log.consume('rows', options)
    expect(consume({ tyeps: [] })).toThrow('did you mean types?')
    expect(consume({ batch: { size: 5, wait: 5 } })).toThrow('options has no option batch')
  })

  it('allow as many entries out as several batches have', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 4_500))
    const sizes: number[] = []
    const held = Promise.withResolvers<void>()
    log.consume('rows', { batch: { size: 2_000, wait: 60_000 } }, ({ length }) => {
      sizes.push(length)
      return held.promise
    })
    await until(() => sizes.length === 2)
    expect(sizes).toEqual([2_000, 2_000])
    held.resolve()
  })
})
