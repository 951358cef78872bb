import { setImmediate as turn } from 'node:timers/promises'
import { linkSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { Entry, EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { ArgumentError } from 'rivulet'
import { EffectError, FencedError, LogPositionError, openLog } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { bareRun, change, fullRun } from '../operators/events.ts'
import { append } from './append.ts'
import { pretendSqlite } from '../support/sqlite-version.ts'
import { scratchFile, scratchFolder } from './sqlite/scratch.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedConnection, SimulatedStore } from '../../src/log/memory/store.ts'

const changes = (from: number, to: number, source = 'm') =>
  Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`, source))

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

/** Resolves once the condition holds. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

interface Applied {
  readonly id: string
  readonly revision: number
}

class Refused extends Error {
  readonly retryable = false
}

/** A database with a table of effects, in which nothing keeps a second effect out. */
function effectsIn(file = ':memory:') {
  const database = new DatabaseSync(file)
  onTestFinished(() => {
    if (database.isOpen) database.close()
  })
  database.exec('CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL, revision INTEGER NOT NULL)')
  const insert = database.prepare('INSERT INTO effect VALUES (?, ?)')
  return {
    database,
    insert: ({ id, revision }: Applied) => void insert.run(id, revision),
    ids: () =>
      database
        .prepare('SELECT id FROM effect ORDER BY rowid')
        .all()
        .map(({ id }) => id),
    cursor: () => database.prepare('SELECT * FROM rivulet_effect_cursor').get(),
    letters: () => database.prepare('SELECT * FROM rivulet_effect_dead_letter').all(),
  }
}

/** Calls the function before each commit of the consumers that begin from now on. What it throws is thrown by the commit. */
function beforeCommit(database: DatabaseSync, call: () => void) {
  const prepare = database.prepare.bind(database)
  vi.spyOn(database, 'prepare').mockImplementation((...args) => {
    const statement = prepare(...args)
    if (args[0] !== 'COMMIT') return statement
    const run = statement.run.bind(statement)
    vi.spyOn(statement, 'run').mockImplementation((...values) => {
      call()
      return run(...values)
    })
    return statement
  })
}

/** Stops the clock, so that effects that wait together share their transaction, however slow the machine is. */
function stopClock() {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
}

/** What SQLite throws. */
const sqliteError = (errcode: number) => Object.assign(new Error(`SQLite error ${errcode}`), { errcode })

/** A log with so many entries, and effects. */
async function withEntries(count: number, store: SimulatedStore = simulatedStore()) {
  await append(store, changes(1, count))
  return { store, log: await opened(store), ...effectsIn() }
}

describe('exactlyOnce', () => {
  it('applies the effect of each entry once, in order, over restarts', async () => {
    const { store, log, database, insert, ids } = await withEntries(3)
    const first = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(() => ids().length === 3)
    await first.stop()
    await append(store, changes(4, 5))
    const second = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(() => ids().length === 5)
    await second.stop()
    expect(ids()).toEqual(['1', '2', '3', '4', '5'])
    // The log has a copy of the cursor.
    expect((await store.reader('consumer:ledger'))?.cursor).toBe(await store.positionAt('end'))
  })

  it.each([{ readBigInts: true }, { returnArrays: true }])(
    'works on a connection whose statements return something else by default: %o',
    async (options) => {
      const { store, log } = await withEntries(3)
      const database = new DatabaseSync(':memory:', options)
      onTestFinished(() => database.close())
      const applied: string[] = []
      const effects = exactlyOnce(database, { effect: ({ id }) => void applied.push(id) })
      for (const last of [3, 4]) {
        const job = log.consume('ledger', effects)
        const failed = job.done.then(() => true)
        await Promise.race([failed, until(() => applied.length >= last)])
        await job.stop()
        await append(store, changes(last + 1, last + 1))
      }
      expect(applied).toEqual(['1', '2', '3', '4'])
    },
  )

  it('hands a dead letter out again that was asked for while it did not run, also one of its last save', async () => {
    const { log, database, insert, ids, letters } = await withEntries(1)
    const called = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    const refusing = log.consume(
      'ledger',
      { deadLetters: 'log', retries: 0 },
      exactlyOnce(database, {
        prepare: () => {
          called.resolve()
          return answer.promise
        },
        effect: () => {
          throw new Refused('not now')
        },
      }),
    )
    await called.promise
    const stopped = refusing.stop()
    answer.resolve()
    await stopped
    expect(letters()).toMatchObject([{ letter: null }])
    expect(await log.deadLetters('ledger').redeliver('all')).toBe(1)
    const job = log.consume('ledger', exactlyOnce(database, { effect: insert }))
    await until(async () => (await log.deadLetters('ledger').count()) === 0)
    await job.stop()
    expect(ids()).toEqual(['1'])
  })

  it('goes on with a connection that was closed and opened again', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    const { database, ids } = effectsIn(join(scratchFolder(), 'effects.db'))
    const handler = exactlyOnce(database, {
      effect: ({ id }, connection) => void connection.prepare('INSERT INTO effect VALUES (?, 1)').run(id),
    })
    for (const count of [1, 2]) {
      await append(store, changes(count, count))
      const job = log.consume('ledger', handler)
      await Promise.race([job.done, until(() => ids().length === count)])
      await job.stop()
      database.close()
      database.open()
    }
    expect(ids()).toEqual(['1', '2'])
  })

  it('gives the effect what was prepared, several at once', async () => {
    const { log, database, ids } = await withEntries(6)
    const insert = database.prepare('INSERT INTO effect VALUES (?, 1)')
    let most = 0
    let preparing = 0
    const job = log.consume(
      'ledger',
      { concurrency: 3 },
      exactlyOnce(database, {
        prepare: async ({ id }, signal) => {
          expect(signal.aborted).toBe(false)
          most = Math.max(most, (preparing += 1))
          await turn()
          preparing -= 1
          return `found ${id}`
        },
        effect: (_entry, found) => {
          expectTypeOf(found).toEqualTypeOf<string>()
          insert.run(found)
        },
      }),
    )
    await until(() => ids().length === 6)
    await job.stop()
    expect(most).toBe(3)
    expect(ids().toSorted()).toEqual(['1', '2', '3', '4', '5', '6'].map((id) => `found ${id}`))
  })

  it('knows the type of the entries from the types of the consumer', async () => {
    const { log, database } = await withEntries(0)
    const job = log.consume(
      'ledger',
      { types: ['task_run.state'] },
      exactlyOnce(database, {
        effect: (entry) => expectTypeOf(entry.data.run.run_id).toEqualTypeOf<string>(),
      }),
    )
    await expect(job.stop()).resolves.toBeUndefined()
  })

  it('takes a handler without settings', async () => {
    const { log, database, insert, ids } = await withEntries(1)
    log.consume('ledger', exactlyOnce(database, { effect: insert }))
    await until(() => ids().length > 0)
    expect(ids()).toEqual(['1'])
  })

  it('applies each revision of an event once', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    const { database, insert } = effectsIn()
    await append(store, [bareRun('r'), fullRun('r'), bareRun('r')])
    const handler = exactlyOnce(database, { effect: insert })
    const revisions = () => database.prepare('SELECT revision FROM effect').all()
    const job = log.consume('ledger', {}, handler)
    await until(() => revisions().length === 2)
    await job.stop()
    expect(revisions()).toEqual([{ revision: 1 }, { revision: 2 }])
  })

  it('stores many effects in one transaction', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    const { database, insert, ids } = effectsIn()
    for (let n = 0; n < 1_000; n += 200) await append(store, changes(n + 1, n + 200))
    let commits = 0
    beforeCommit(database, () => (commits += 1))
    const job = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(() => ids().length === 1_000)
    await job.stop()
    expect(commits).toBeGreaterThan(0)
    expect(commits).toBeLessThan(100)
  })

  it('takes back what an effect did that throws, retries it, and goes on with the others', async () => {
    const { log, database, insert, ids } = await withEntries(3)
    let failures = 2
    const effect = (entry: Applied) => {
      insert(entry)
      if (entry.id === '2' && failures-- > 0) throw new Error('no such account')
    }
    const job = log.consume('ledger', { initialDelay: 0 }, exactlyOnce(database, { effect }))
    await until(() => ids().length === 3)
    await job.stop()
    expect(ids()).toEqual(['1', '3', '2'])
  })

  it('fails with the error of an effect, and has the effects of the others', async () => {
    const { log, database, insert, ids } = await withEntries(3)
    const failing = exactlyOnce(database, {
      effect: (entry: Applied) => {
        insert(entry)
        if (entry.id === '2') throw new Refused('no such account')
      },
    })
    await expect(log.consume('ledger', {}, failing).done).rejects.toThrow('no such account')
    const again = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(() => ids().length === 3)
    await again.stop()
    expect(ids()).toEqual(['1', '3', '2'])
  })

  it('retries what cannot be prepared', async () => {
    const { log, database, insert, ids } = await withEntries(2)
    let failures = 3
    const prepare = async ({ id }: { readonly id: string }) => {
      await turn()
      if (id === '1' && failures-- > 0) throw new Error('unreachable')
    }
    const job = log.consume('ledger', { initialDelay: 0 }, exactlyOnce(database, { prepare, effect: insert }))
    await until(() => ids().length === 2)
    await job.stop()
    expect(ids()).toEqual(['2', '1'])
  })

  it('applies nothing of what is prepared too late for its consumer', async () => {
    const { store, log, database, insert, ids } = await withEntries(1)
    const slow = Promise.withResolvers<void>()
    let signal: AbortSignal | undefined
    const prepare = async (_entry: unknown, given: AbortSignal) => {
      signal = given
      await slow.promise
    }
    const options = { drainTimeout: 0 }
    const job = log.consume('ledger', options, exactlyOnce(database, { prepare, effect: insert }))
    await until(() => signal !== undefined)
    await expect(job.stop()).rejects.toThrow('drainTimeout')
    expect(signal?.aborted).toBe(true)
    slow.resolve()
    const next = (await opened(store.connect())).consume(
      'ledger',
      {},
      exactlyOnce(database, { effect: insert }),
    )
    await until(() => ids().length === 1)
    await next.stop()
    expect(ids()).toEqual(['1'])
  })

  it('keeps order within a key', async () => {
    const { log, database, insert, ids } = await withEntries(5)
    const prepare = async ({ id }: { readonly id: string }) => {
      for (let turns = 10 - Number(id); turns > 0; turns--) await turn()
    }
    const options = { key: ({ source }: { readonly source: string }) => source }
    const job = log.consume('ledger', options, exactlyOnce(database, { prepare, effect: insert }))
    await until(() => ids().length === 5)
    await job.stop()
    expect(ids()).toEqual(['1', '2', '3', '4', '5'])
  })

  it('refuses an effect that returns a promise, and takes back what it did so far', async () => {
    const { log, database, insert, ids } = await withEntries(2)
    const effect = async (entry: Applied) => {
      insert(entry)
      throw new Error('not unhandled')
    }
    const { done } = log.consume('ledger', { deadLetters: 'log' }, exactlyOnce(database, { effect }))
    await expect(done).rejects.toBeInstanceOf(EffectError)
    await expect(done).rejects.toThrow('`prepare`')
    expect(ids()).toEqual([])
    expect(await log.deadLetters('ledger').count()).toBe(0)
  })

  it('refuses a connection with an open transaction, and leaves that as it is', async () => {
    const { log, database, insert, ids } = await withEntries(1)
    database.exec('BEGIN; INSERT INTO effect VALUES (9, 1)')
    const { done } = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await expect(done).rejects.toThrow('a transaction is open')
    database.exec('COMMIT')
    expect(ids()).toEqual(['9'])
  })

  it('refuses a database that is closed', async () => {
    const { log, database, insert } = await withEntries(1)
    database.close()
    const { done } = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await expect(done).rejects.toThrow('was closed')
  })

  it('begins once another connection has ended its transaction', async () => {
    const file = scratchFile()
    const { database, insert, ids } = effectsIn(file)
    database.exec('PRAGMA journal_mode = WAL')
    const other = new DatabaseSync(file)
    onTestFinished(() => other.close())
    const store = simulatedStore()
    await append(store, changes(1, 1))
    const log = await opened(store)
    other.exec('BEGIN IMMEDIATE')
    const job = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    let isEnded = false
    void job.done.then(
      () => (isEnded = true),
      () => (isEnded = true),
    )
    for (let turns = 0; turns < 50; turns++) await turn()
    expect(isEnded).toBe(false)
    other.exec('COMMIT')
    await until(() => ids().length === 1)
    await job.stop()
  })

  it('waits while another connection writes, without blocking, and restores the busy timeout', async () => {
    const file = scratchFile()
    const { database, insert, ids } = effectsIn(file)
    database.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 5432')
    const other = effectsIn(file)
    const store = simulatedStore()
    const log = await opened(store)
    const job = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(async () => (await store.reader('consumer:ledger')) !== undefined)
    other.database.exec('BEGIN IMMEDIATE')
    await append(store, changes(1, 2))
    let longest = 0
    for (let turns = 0; turns < 200; turns++) {
      const from = performance.now()
      await turn()
      longest = Math.max(longest, performance.now() - from)
    }
    // It would wait for 5.4 s within a call.
    expect(longest).toBeLessThan(5_000)
    expect(ids()).toEqual([])
    other.database.exec('COMMIT')
    await until(() => ids().length === 2)
    await job.stop()
    expect(database.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 5432 })
  })

  it('has its effects in the file of the log, while others append to it', async () => {
    const file = scratchFile()
    const recorder = sqliteStore(file)
    onTestFinished(() => recorder.close())
    const log = await opened(sqliteStore(file))
    await log.positionAt('end')
    await append(recorder, changes(1, 50))
    const { database, insert, ids } = effectsIn(file)
    const job = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    for (let n = 50; n < 1_000; n += 50) await append(recorder, changes(n + 1, n + 50))
    await until(() => ids().length >= 1_000)
    await job.stop()
    expect(ids()).toEqual(changes(1, 1_000).map(({ id }) => id))
  })

  it('keeps consumers of several logs apart, and refuses the cursor of another log', async () => {
    const { log, database, insert, ids, cursor } = await withEntries(2)
    const handler = exactlyOnce(database, { effect: insert })
    const first = log.consume('ledger', {}, handler)
    const second = log.consume('audit', {}, handler)
    await until(() => ids().length === 4)
    await Promise.all([first.stop(), second.stop()])
    const another = await withEntries(1)
    const { done } = another.log.consume('ledger', {}, handler)
    await expect(done).rejects.toBeInstanceOf(LogPositionError)
    await expect(done).rejects.toThrow(/is not one of .* cursor of "ledger" in .* Use that log/)
    const third = another.log.consume('other', {}, handler)
    await until(() => ids().length === 5)
    await third.stop()
    // The refused one has changed nothing.
    await append(another.store, changes(2, 2))
    const again = log.consume('audit', {}, handler)
    await again.stop()
    expect(cursor()).toMatchObject({ reader: 'consumer:audit' })
    // As its message says.
    const message = await done.catch((error: Error) => error.message)
    const [sql = ''] = /DELETE .*/.exec(String(message)) ?? []
    expect(database.prepare(sql).run().changes).toBe(1)
  })

  it('refuses a database that has another name, by which another program could write to it', async () => {
    const folder = scratchFolder()
    const file = join(folder, 'effects.db')
    const { database, insert, ids } = effectsIn(file)
    linkSync(file, join(folder, 'other.db'))
    const { log } = await withEntries(1)
    const { done } = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await expect(done).rejects.toBeInstanceOf(EffectError)
    await expect(done).rejects.toThrow(/hard link.* folder that has the file/)
    expect(ids()).toEqual([])
  })

  it('refuses a file where SQLite has the WAL-reset bug, but no database in memory', async () => {
    pretendSqlite('3.50.4')
    const onDisk = effectsIn(join(scratchFolder(), 'effects.db'))
    const inMemory = effectsIn()
    const { log } = await withEntries(1)
    const refused = log.consume('ledger', {}, exactlyOnce(onDisk.database, { effect: onDisk.insert }))
    const ran = log.consume('audit', {}, exactlyOnce(inMemory.database, { effect: inMemory.insert }))

    await expect(refused.done).rejects.toBeInstanceOf(EffectError)
    await expect(refused.done).rejects.toThrow(/SQLite 3\.50\.4 .*use Node 22\.22\.3 .*or 24\.15/)
    await until(() => inMemory.ids().length === 1)
    await ran.stop()
    expect(onDisk.ids()).toEqual([])
  })

  it('refuses a cursor beyond the end of the log', async () => {
    const folder = scratchFolder()
    const file = join(folder, 'log.db')
    const store = sqliteStore(file)
    const log = await opened(store)
    await append(store, changes(1, 3))
    const { database, insert, ids } = effectsIn()
    const handler = exactlyOnce(database, { effect: insert })
    const job = log.consume('ledger', {}, handler)
    await until(() => ids().length === 3)
    await job.stop()
    await log.close()
    // A log that lost its end.
    const raw = new DatabaseSync(file)
    raw.exec('UPDATE rivulet_log SET last_position = 1; DELETE FROM rivulet_entry WHERE position > 1')
    raw.close()
    const shorter = await opened(sqliteStore(file))
    const { done } = shorter.consume('ledger', {}, handler)
    await expect(done).rejects.toBeInstanceOf(LogPositionError)
    await expect(done).rejects.toThrow('is beyond the end of')
  })

  it('begins where the database stands, whatever the copy in the log says', async () => {
    const { store, log, database, insert, ids } = await withEntries(3)
    const handler = exactlyOnce(database, { effect: insert })
    const first = log.consume('ledger', {}, handler)
    await until(() => ids().length === 3)
    await first.stop()
    for (const cursor of [await store.positionAt('start'), await store.positionAt('end')]) {
      const fence = await store.claim('consumer:ledger')
      const { cursor: expected = null } = (await store.reader('consumer:ledger')) ?? {}
      await store.commit(fence, { expect: expected, cursor, acknowledged: [] })
      await store.release(fence)
      const count = ids().length
      await append(store, changes(count + 1, count + 1))
      const next = log.consume('ledger', {}, handler)
      await until(() => ids().length > count)
      await next.stop()
    }
    expect(ids()).toEqual(['1', '2', '3', '4', '5'])
  })

  it('refuses a database without the cursor of a consumer that the log knows', async () => {
    const { log, database, insert, ids } = await withEntries(2)
    const first = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(() => ids().length === 2)
    await first.stop()
    const empty = effectsIn()
    const { done } = log.consume('ledger', {}, exactlyOnce(empty.database, { effect: empty.insert }))
    await expect(done).rejects.toBeInstanceOf(EffectError)
    await expect(done).rejects.toThrow('has no cursor of it')
    expect(empty.ids()).toEqual([])
  })

  it('applies nothing any more once another process has taken the consumer over', async () => {
    const { store, log, database, insert, ids } = await withEntries(1)
    const handler = exactlyOnce(database, { effect: insert })
    const suspended = Promise.withResolvers<void>()
    let isSuspended = false
    const prepare = async () => {
      isSuspended = true
      await suspended.promise
    }
    const old = log.consume('ledger', {}, exactlyOnce(database, { prepare, effect: insert }))
    await until(() => isSuspended)
    store.loseClaims()
    const other = store.connect()
    const next = (await opened(other)).consume('ledger', {}, handler)
    await until(() => ids().length === 1)
    suspended.resolve()
    await expect(old.done).rejects.toBeInstanceOf(FencedError)
    await append(store, changes(2, 2))
    await until(() => ids().length === 2)
    await next.stop()
    expect(ids()).toEqual(['1', '2'])
  })

  it('moves its cursor past entries that it does not want', async () => {
    const { store, log, database, insert, cursor } = await withEntries(3)
    const job = log.consume(
      'ledger',
      { types: ['task_run.state'] },
      exactlyOnce(database, { effect: insert }),
    )
    const end = await store.positionAt('end')
    await until(async () => (await store.reader('consumer:ledger'))?.cursor === end)
    await job.stop()
    expect(cursor()?.['cursor']).toBe(end)
  })

  it('does not apply an effect again when an observer of the handler fails after it', async () => {
    const { log, database, insert, ids } = await withEntries(1)
    let failures = 1
    log.observe({
      handle: async (_consumer, _entry, proceed) => {
        await proceed()
        if (failures-- > 0) throw new Error('observer')
      },
    })
    const job = log.consume('ledger', { initialDelay: 0 }, exactlyOnce(database, { effect: insert }))
    await until(() => ids().length > 0)
    await job.stop().catch(() => {})
    expect(ids()).toEqual(['1'])
  })

  it('refuses what cannot be right, at the call', async () => {
    const { log, database } = await withEntries(0)
    for (const wrong of [undefined, {}, 'file.db']) {
      expect(() => exactlyOnce(wrong as never, { effect: () => {} })).toThrow(ArgumentError)
    }
    for (const wrong of [
      undefined,
      null,
      {},
      { effect: 'x' },
      { effect() {}, prepare: 5 },
      { effect() {}, x: 1 },
    ]) {
      expect(() => exactlyOnce(database, wrong as never)).toThrow(ArgumentError)
    }
    expect(() => log.consume('ledger', {}, {} as never)).toThrow(ArgumentError)
  })
})

/** Effects with a child of each entry, whose parent is checked by the commit. Every account but `missing` exists. */
function withDeferredConstraint(database: DatabaseSync, missing: string) {
  database.exec(`
    PRAGMA foreign_keys = ON;
    CREATE TABLE account (id TEXT PRIMARY KEY);
    CREATE TABLE booking (account TEXT NOT NULL REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED);
  `)
  const account = database.prepare('INSERT INTO account VALUES (?)')
  for (let n = 1; n <= 9; n++) if (`${n}` !== missing) account.run(`${n}`)
  const booking = database.prepare('INSERT INTO booking VALUES (?)')
  return { account, book: ({ id }: { readonly id: string }) => void booking.run(id) }
}

describe('a consumer of exactlyOnce that begins while entries are trimmed', () => {
  /** A log of 40 entries, and another opening of it whose calls each come after a trim of one entry. */
  async function trimmed(options: SimulatedConnection = {}) {
    const store = simulatedStore()
    await append(store, changes(1, 40))
    const latency = async () => void (await store.retention.trim({ limit: 1 }))
    return { store, log: await opened(store.connect({ ...options, latency })), ...effectsIn() }
  }

  it.each(['start', { time: 1 }] as const)(
    'gets each entry that was there when the log knew it: %o',
    async (startAt) => {
      const { log, database, insert, ids } = await trimmed()
      const job = log.consume('ledger', { startAt }, exactlyOnce(database, { effect: insert }))
      await until(() => ids().includes('40'))
      await job.stop()
      const [first] = ids()
      expect(ids()).toEqual(changes(Number(first), 40).map(({ id }) => id))
    },
  )

  // Before and after the commit with which the log knows it, and the one after that, with what is left since.
  it.each([1, 2, 3, 4])('also after a crash at step %i of its first commits', async (last) => {
    let step = 0
    const faults = (write: string) => {
      if (write === 'commit' && (step += 1) === last) throw new Error('crashed')
    }
    const { store, log, database, insert, ids } = await trimmed({ faults })
    const handler = exactlyOnce(database, { effect: insert })
    await expect(log.consume('ledger', handler).done).rejects.toThrow('crashed')
    const isKnown = (await store.reader('consumer:ledger')) !== undefined
    const { entries } = await store.read(await store.positionAt('start'), { limit: 1 })
    const oldest = Number(entries[0]?.id)
    expect(await store.retention.trim({ limit: 5 })).toMatchObject({ deleted: isKnown ? 0 : 5 })
    const job = (await opened(store.connect())).consume('ledger', handler)
    await until(() => ids().includes('40'))
    await job.stop()
    const expected = changes(isKnown ? oldest : oldest + 5, 40).map(({ id }) => id)
    expect(ids().slice(-expected.length)).toEqual(expected)
    // What was deleted between the two commits is a gap.
    expect(ids().length - expected.length).toBe(last === 2 || last === 3 ? 1 : 0)
  })
})

describe('an effect of exactlyOnce that begins or ends a transaction', () => {
  it.each(['COMMIT', 'ROLLBACK', 'COMMIT; BEGIN', 'COMMIT; BEGIN; COMMIT', 'BEGIN'])(
    'ends the job with an error that names the entry: %s',
    async (sql) => {
      const { log, database, insert, ids } = await withEntries(5)
      let calls = 0
      const effect = (entry: Applied) => {
        calls += 1
        insert(entry)
        if (entry.id === '3') database.exec(sql)
      }
      const options = { deadLetters: 'log', initialDelay: 0 } as const
      const { done } = log.consume('ledger', options, exactlyOnce(database, { effect }))
      const error: unknown = await done.catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(EffectError)
      expect(error).toMatchObject({
        entry: { source: '/v1/monitors/m', id: '3', position: expect.any(String) },
      })
      expect(String(error)).toContain('the event "3" of /v1/monitors/m')
      expect(calls).toBe(3)
      expect(database.isTransaction).toBe(false)
      expect(await log.deadLetters('ledger').count()).toBe(0)
      // What was committed is not applied again.
      const again = log.consume('ledger', exactlyOnce(database, { effect: insert }))
      await until(() => ids().length >= 5)
      await again.stop()
      expect(ids()).toEqual(['1', '2', '3', '4', '5'])
    },
  )

  it('has the effects that it commits and their cursor stored together, also when it is killed at once', async () => {
    const { store, log, database, insert } = await withEntries(5)
    const file = scratchFile()
    let attempts = 0
    const effect = (entry: Applied) => {
      if (entry.id === '2') {
        attempts += 1
        throw new Refused('no such account')
      }
      insert(entry)
      // As the file is when the process is killed within the effect.
      if (entry.id === '4') database.exec(`COMMIT; VACUUM INTO '${file}'`)
    }
    // A dead letter that the log does not have yet is kept with it.
    const options = { deadLetters: 'log', retries: 0 } as const
    const { done } = log.consume('ledger', options, exactlyOnce(database, { effect }))
    await expect(done).rejects.toBeInstanceOf(EffectError)
    expect(attempts).toBe(1)
    const killed = effectsIn(file)
    const next = (await opened(store.connect())).consume(
      'ledger',
      options,
      exactlyOnce(killed.database, { effect: killed.insert }),
    )
    await until(() => killed.ids().includes('5'))
    await next.stop()
    expect(killed.ids().toSorted()).toEqual(['1', '2', '3', '4', '5'])
  })

  it('has what it commits in a retry applied once, and what was applied after it', async () => {
    const { store, log, database, insert, ids } = await withEntries(12)
    const retried = new Set(['2', '9', '10'])
    const effect = (entry: Applied) => {
      if (retried.delete(entry.id)) throw new Error('not yet')
      insert(entry)
      if (entry.id === '10') database.exec('COMMIT')
    }
    const options = { initialDelay: 0, maxDelay: 0 }
    const { done } = log.consume('ledger', options, exactlyOnce(database, { effect }))
    await expect(done).rejects.toBeInstanceOf(EffectError)
    const next = (await opened(store.connect())).consume('ledger', exactlyOnce(database, { effect: insert }))
    await append(store, changes(13, 13))
    await until(() => ids().includes('13'))
    await next.stop()
    expect(ids().toSorted()).toEqual(Array.from({ length: 13 }, (_, n) => `${n + 1}`).toSorted())
  })

  it('ends the job where it has committed, whatever error it ends with', async () => {
    const { log, database, insert, ids } = await withEntries(3)
    const effect = (entry: Applied) => {
      insert(entry)
      if (entry.id !== '2') return
      database.exec('COMMIT')
      throw sqliteError(13)
    }
    const { done } = log.consume('ledger', { initialDelay: 0 }, exactlyOnce(database, { effect }))
    await expect(done).rejects.toBeInstanceOf(EffectError)
    expect(ids()).toEqual(['1', '2'])
    const again = log.consume('ledger', exactlyOnce(database, { effect: insert }))
    await until(() => ids().length >= 3)
    await again.stop()
    expect(ids()).toEqual(['1', '2', '3'])
  })

  it('ends the job where a conflict rolls the transaction back, and stores nothing of it', async () => {
    stopClock()
    const { log, database, insert, ids } = await withEntries(3)
    database.exec('CREATE UNIQUE INDEX effect_id ON effect (id)')
    const again = database.prepare('INSERT OR ROLLBACK INTO effect VALUES (?, 2)')
    const effect = (entry: Applied) => {
      insert(entry)
      if (entry.id === '2') again.run('2')
    }
    const { done } = log.consume('ledger', { initialDelay: 0 }, exactlyOnce(database, { effect }))
    await expect(done).rejects.toMatchObject({ name: 'EffectError', entry: { id: '2' } })
    expect(ids()).toEqual([])
  })
})

describe('a commit of exactlyOnce that fails', () => {
  it.each([
    ['the file is locked', 5],
    ['the disk is full', 13],
  ])('is tried again where %s, and applies each effect once', async (_problem, errcode) => {
    const { log, database, insert, ids } = await withEntries(3)
    let isFailing = true
    beforeCommit(database, () => {
      if (ids().length === 0 || !isFailing) return
      isFailing = false
      throw sqliteError(errcode)
    })
    const options = { deadLetters: 'log', initialDelay: 0 } as const
    const job = log.consume('ledger', options, exactlyOnce(database, { effect: insert }))
    await until(() => !isFailing && !database.isTransaction && ids().length === 3)
    await job.stop()
    expect(ids().toSorted()).toEqual(['1', '2', '3'])
    expect(await log.deadLetters('ledger').count()).toBe(0)
  })

  it('ends the job where the disk fails, and nothing of its transaction is stored', async () => {
    const { log, database, insert, ids } = await withEntries(3)
    let isFailing = true
    beforeCommit(database, () => {
      if (isFailing && ids().length > 0) throw sqliteError(10)
    })
    const handler = exactlyOnce(database, { effect: insert })
    const { done } = log.consume('ledger', { deadLetters: 'log' }, handler)
    await expect(done).rejects.toMatchObject({ name: 'LogFileError', retryable: false })
    expect(database.isTransaction).toBe(false)
    expect(ids()).toEqual([])
    expect(await log.deadLetters('ledger').count()).toBe(0)
    isFailing = false
    const again = log.consume('ledger', handler)
    await until(() => ids().length === 3)
    await again.stop()
    expect(ids()).toEqual(['1', '2', '3'])
  })
})

describe('an effect of exactlyOnce that violates a deferred constraint', () => {
  it('becomes a dead letter alone, after its retries, and the others of its transaction are applied once', async () => {
    const { log, database, insert, ids, letters } = await withEntries(5)
    const { book } = withDeferredConstraint(database, '3')
    let calls = 0
    const effect = (entry: Applied) => {
      if (entry.id === '3') calls += 1
      insert(entry)
      book(entry)
    }
    const options = { deadLetters: 'log', retries: 2, initialDelay: 0 } as const
    const job = log.consume('ledger', options, exactlyOnce(database, { effect }))
    await until(async () => ids().length === 4 && (await log.deadLetters('ledger').count()) === 1)
    await job.stop()
    expect(ids().toSorted()).toEqual(['1', '2', '4', '5'])
    expect(letters()).toMatchObject([{ reader: 'consumer:ledger', letter: null }])
    for await (const { error, attempts } of log.deadLetters('ledger').list()) {
      expect(error.message).toContain('FOREIGN KEY')
      expect(attempts).toBe(3)
    }
    expect(calls).toBeGreaterThanOrEqual(3)
  })

  it('is applied by a retry once the constraint holds', async () => {
    const { log, database, insert, ids } = await withEntries(3)
    const { account, book } = withDeferredConstraint(database, '2')
    let calls = 0
    const effect = (entry: Applied) => {
      // In the batch, and alone.
      if (entry.id === '2' && (calls += 1) === 3) account.run('2')
      insert(entry)
      book(entry)
    }
    const job = log.consume('ledger', { initialDelay: 0 }, exactlyOnce(database, { effect }))
    await until(() => ids().length === 3)
    await job.stop()
    expect(ids()).toEqual(['1', '3', '2'])
  })

  it('fails its job with the error of SQLite where it has no dead letters, without a transaction left open', async () => {
    const { log, database, insert, ids } = await withEntries(3)
    const { book, account } = withDeferredConstraint(database, '2')
    const effect = (entry: Applied) => {
      insert(entry)
      book(entry)
    }
    const handler = exactlyOnce(database, { effect })
    await expect(log.consume('ledger', { retries: 0 }, handler).done).rejects.toThrow('FOREIGN KEY')
    expect(database.isTransaction).toBe(false)
    account.run('2')
    const again = log.consume('ledger', handler)
    await until(() => ids().length === 3)
    await again.stop()
    expect(ids().toSorted()).toEqual(['1', '2', '3'])
  })

  it('stores nothing where another process takes the consumer over after the commit that failed', async () => {
    stopClock()
    const { log, database, insert, ids } = await withEntries(3)
    const { book } = withDeferredConstraint(database, '3')
    let calls = 0
    const effect = (entry: Applied) => {
      calls += 1
      insert(entry)
      book(entry)
      // After the transaction, and before those of one entry each.
      if (entry.id === '3')
        queueMicrotask(() => database.exec('UPDATE rivulet_effect_cursor SET token = 1000'))
    }
    const { done } = log.consume('ledger', { deadLetters: 'log' }, exactlyOnce(database, { effect }))
    await expect(done).rejects.toBeInstanceOf(FencedError)
    expect(ids()).toEqual([])
    expect(calls).toBe(3)
  })
})

describe('dead letters of exactlyOnce', () => {
  const refusing = (insert: (entry: never) => void, id: string) => (entry: { readonly id: string }) => {
    insert(entry as never)
    if (entry.id === id) throw new Refused(`not ${id}`)
  }

  it('are stored in the log, without the effect, and do not hold up the rest', async () => {
    const { log, database, insert, ids, letters } = await withEntries(3)
    const handler = exactlyOnce(database, { effect: refusing(insert, '2') })
    const job = log.consume('ledger', { deadLetters: 'log' }, handler)
    await until(async () => ids().length === 2 && (await log.deadLetters('ledger').count()) === 1)
    await job.stop()
    expect(ids()).toEqual(['1', '3'])
    // The database knows that the log has it.
    expect(letters()).toMatchObject([{ reader: 'consumer:ledger', letter: null }])
    const again = log.consume('ledger', {}, handler)
    await again.stop()
    expect(ids()).toEqual(['1', '3'])
  })

  it('have their effect once when they are handed out again', async () => {
    const { log, database, insert, ids, letters } = await withEntries(3)
    const job = log.consume(
      'ledger',
      { deadLetters: 'log' },
      exactlyOnce(database, { effect: refusing(insert, '2') }),
    )
    await until(async () => (await log.deadLetters('ledger').count()) === 1)
    await log.deadLetters('ledger').redeliver('all')
    await until(async () => {
      for await (const { attempts } of log.deadLetters('ledger').list()) if (attempts === 2) return true
      return false
    })
    await job.stop()
    await log.deadLetters('ledger').redeliver('all')
    const mended = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(async () => (await log.deadLetters('ledger').count()) === 0)
    await mended.stop()
    expect(ids()).toEqual(['1', '3', '2'])
    expect(letters()).toEqual([])
  })

  it('keep a gap, which is no entry of the log', async () => {
    const { log, store, database, insert, ids } = await withEntries(1)
    const handler = exactlyOnce(database, {
      effect: (entry) => {
        if (entry.type === 'log.gap') throw new Refused('a gap')
        insert(entry)
      },
    })
    const first = log.consume('ledger', handler)
    await until(() => ids().length === 1)
    await first.stop()
    await append(store, changes(2, 4))
    await log.remove({ consumer: 'ledger' })
    await store.retention.trim({ limit: 3 })
    // The log knows the consumer again, so that its cursor in the database is not refused.
    const fence = await store.claim('consumer:ledger')
    const cursor = await store.positionAt('end')
    await store.commit(fence, { expect: null, cursor, acknowledged: [] })
    await store.release(fence)
    const second = log.consume('ledger', { deadLetters: 'log' }, handler)
    await until(async () => (await log.deadLetters('ledger').count()) === 1 && ids().length === 2)
    await second.stop()
    expect(ids()).toEqual(['1', '4'])
    for await (const { entry } of log.deadLetters('ledger').list()) expect(entry.type).toBe('log.gap')
  })

  it('go to another place than the log where one is given', async () => {
    const { log, database, insert, ids, cursor, store } = await withEntries(3)
    const seen: string[] = []
    const deadLetters = { next: async ({ event }: { event: { id: string } }) => void seen.push(event.id) }
    const job = log.consume(
      'ledger',
      { deadLetters },
      exactlyOnce(database, { effect: refusing(insert, '2') }),
    )
    await until(() => ids().length === 2 && seen.length === 1)
    await job.stop()
    expect(cursor()?.['cursor']).toBe(await store.positionAt('end'))
    expect(await log.deadLetters('ledger').count()).toBe(0)
  })

  it('reach the log after a crash between the database and the log', async () => {
    let isArmed = false
    const crashing = simulatedStore({
      faults(write, step) {
        if (isArmed && write === 'commit' && step === 'before') throw new Error('crashed')
      },
    })
    const { store, log, database, insert, ids } = await withEntries(2, crashing)
    const effect = refusing(insert, '1')
    // Its first copy is made before anything is handled.
    const start = log.consume('ledger', { types: ['task_run.state'] }, exactlyOnce(database, { effect }))
    await until(async () => (await store.reader('consumer:ledger')) !== undefined)
    await start.stop()
    database.exec(`DELETE FROM rivulet_effect_cursor`)
    const [reader] = [await store.reader('consumer:ledger')]
    expect(reader).toBeDefined()
    database
      .prepare('INSERT INTO rivulet_effect_cursor VALUES (?, 0, ?, ?)')
      .run('consumer:ledger', await store.positionAt('start'), '[]')
    isArmed = true
    const job = log.consume('ledger', { deadLetters: 'log' }, exactlyOnce(database, { effect }))
    await expect(job.done).rejects.toThrow('crashed')
    isArmed = false
    expect(await log.deadLetters('ledger').count()).toBe(0)
    const next = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await until(async () => (await log.deadLetters('ledger').count()) === 1 && ids().length === 1)
    await next.stop()
    expect(ids()).toEqual(['2'])
  })

  it('that fail again are handed out once more, also where a crash makes their letter be stored twice', async () => {
    let isArmed = false
    const crashing = simulatedStore({
      faults(write, step) {
        if (isArmed && write === 'commit' && step === 'after') throw new Error('crashed')
      },
    })
    const { store, log, database, insert, ids, letters } = await withEntries(1, crashing)
    const run = (effect: (entry: Entry) => void) =>
      log.consume('ledger', { deadLetters: 'log' }, exactlyOnce(database, { effect }))
    const isStored = async (attempts: number) => {
      for await (const letter of log.deadLetters('ledger').list())
        if (letter.attempts === attempts) return true
      return false
    }
    const first = run(refusing(insert, '1'))
    await until(() => isStored(1))
    await first.stop()
    await log.deadLetters('ledger').redeliver('all')
    const second = run((entry) => {
      isArmed = true
      refusing(insert, '1')(entry as never)
    })
    await expect(second.done).rejects.toThrow('crashed')
    isArmed = false
    // The log has the letter, and the database does not know that.
    expect(await isStored(2)).toBe(true)
    expect(letters()).toMatchObject([{ letter: expect.any(String) }])
    expect(await log.deadLetters('ledger').redeliver('all')).toBe(1)
    // The letter is stored a second time before the log is asked what to hand out.
    const redeliveries = store.deadLetters.redeliveries.bind(store.deadLetters)
    vi.spyOn(store.deadLetters, 'redeliveries').mockImplementation(async (...args) => {
      await until(() => letters()[0]?.['letter'] === null)
      return redeliveries(...args)
    })
    const third = run(insert as never)
    await until(async () => ids().length === 1 && (await log.deadLetters('ledger').count()) === 0)
    await third.stop()
    expect(ids()).toEqual(['1'])
  })

  it('are not applied again after a crash between their effect and their removal from the log', async () => {
    const { log, database, insert, ids, letters, store } = await withEntries(1)
    const job = log.consume(
      'ledger',
      { deadLetters: 'log' },
      exactlyOnce(database, { effect: refusing(insert, '1') }),
    )
    await until(async () => (await log.deadLetters('ledger').count()) === 1)
    await job.stop()
    await log.deadLetters('ledger').redeliver('all')
    // As a killed process leaves it: the effect is stored, and the log has the letter.
    database.exec("INSERT INTO effect VALUES ('1', 1); UPDATE rivulet_effect_dead_letter SET is_handled = 1")
    const next = (await opened(store.connect())).consume(
      'ledger',
      {},
      exactlyOnce(database, { effect: insert }),
    )
    await until(async () => (await log.deadLetters('ledger').count()) === 0)
    await next.stop()
    expect(ids()).toEqual(['1'])
    expect(letters()).toEqual([])
  })

  it('leave the log when their effect has committed by itself and ends with an error', async () => {
    const { store, log, database, insert, ids, letters } = await withEntries(1)
    let attempts = 0
    const effect = (entry: Applied) => {
      if ((attempts += 1) === 1) throw new Refused('not yet')
      insert(entry)
      database.exec('COMMIT')
      throw sqliteError(13)
    }
    const { done } = log.consume('ledger', { deadLetters: 'log' }, exactlyOnce(database, { effect }))
    await until(async () => (await log.deadLetters('ledger').count()) === 1)
    // At once, so that the database does not know yet that the log has it.
    await log.deadLetters('ledger').redeliver('all')
    await expect(done).rejects.toBeInstanceOf(EffectError)
    const next = (await opened(store.connect())).consume('ledger', exactlyOnce(database, { effect: insert }))
    await append(store, changes(2, 2))
    await until(() => ids().includes('2'))
    await next.stop()
    expect(ids()).toEqual(['1', '2'])
    expect(await log.deadLetters('ledger').count()).toBe(0)
    expect(letters()).toEqual([])
  })

  it('leave no row beside the effects once they are handled', async () => {
    const { log, database, insert, ids, letters } = await withEntries(2)
    let isMended = false
    const effect = (entry: Applied) => {
      if (!isMended) throw new Refused('not yet')
      insert(entry)
    }
    const job = log.consume('ledger', { deadLetters: 'log' }, exactlyOnce(database, { effect }))
    await until(async () => (await log.deadLetters('ledger').count()) === 2)
    isMended = true
    await log.deadLetters('ledger').redeliver('all')
    await until(async () => (await log.deadLetters('ledger').count()) === 0)
    await job.stop()
    expect(ids()).toEqual(['1', '2'])
    expect(letters()).toEqual([])
  })

  it('end the job when the database has no row of what the log hands out again', async () => {
    const { log, database, insert, ids } = await withEntries(1)
    const refused = exactlyOnce(database, { effect: refusing(insert, '1') })
    const job = log.consume('ledger', { deadLetters: 'log' }, refused)
    await until(async () => (await log.deadLetters('ledger').count()) === 1)
    await job.stop()
    await log.deadLetters('ledger').redeliver('all')
    // Another database, or this one as it was before.
    database.exec('DELETE FROM rivulet_effect_dead_letter')
    const { done } = log.consume('ledger', {}, exactlyOnce(database, { effect: insert }))
    await expect(done).rejects.toBeInstanceOf(EffectError)
    await expect(done).rejects.toThrow(/knows nothing of a dead letter .* rivulet log rewind/)
    expect(ids()).toEqual([])
    expect(await log.deadLetters('ledger').count()).toBe(1)
  })
})
