/** Consumers with `exactlyOnce` move along with their log. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { openLog } from 'rivulet/log'
import type { Entry } from 'rivulet/log'
import { migrateLog } from 'rivulet/log/store'
import type { LogStore, EffectStore } from 'rivulet/log/store'
import { exactlyOnce, sqliteEffects, sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { EffectDatabase } from '../../../src/log/sqlite/effect-database.ts'
import { change } from '../../operators/events.ts'
import { append } from '../append.ts'
import { scratchEffects } from '../effects/scratch-effects.ts'
import { scratchFolder } from '../sqlite/scratch.ts'

const ids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => String(from + n))

/** How some entries are handled, by id. */
interface Handling {
  readonly refused?: readonly string[]
  /** They are not acknowledged before the consumer is stopped. */
  readonly held?: readonly string[]
}

/** Logs in files, and the effects of one consumer. */
function world() {
  const folder = scratchFolder()
  const { database, insert, effects } = scratchEffects(folder)
  const fileOf = (name: string) => join(folder, `${name}.db`)
  const logOf = (name: string): LogStore => {
    const store = sqliteStore(fileOf(name))
    onTestFinished(() => store.close())
    return store
  }
  const record = async (name: string, ...events: readonly string[]) => {
    const store = logOf(name)
    await append(
      store,
      events.map((id) => change(id)),
    )
    await store.close()
  }
  /** Consumes until so many effects are there in all. */
  const consume = async (name: string, count: number, { refused = [], held = [] }: Handling = {}) => {
    await using log = await openLog(logOf(name))
    const job = log.consume(
      'ledger',
      { deadLetters: 'log', concurrency: 16, drainTimeout: 10 },
      exactlyOnce(database, {
        prepare: async ({ id }: Entry, signal) => {
          if (held.includes(id))
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
        effect: ({ id }: Entry) => {
          if (refused.includes(id)) throw Object.assign(new Error(id), { retryable: false })
          insert.run(id)
        },
      }),
    )
    try {
      const letters = log.deadLetters('ledger')
      while (effects().length < count || (await letters.count()) < refused.length)
        await Promise.race([turn(), job.done])
    } finally {
      await job.stop().catch(() => {})
    }
  }
  /** Why a consumer does not begin. */
  const refusal = (name: string) =>
    consume(name, Infinity).then(
      () => undefined,
      (error: unknown) => error,
    )
  /** Entries 1 to 9 are recorded: 3 is open, 5 is a dead letter that is handed out again, and the others have their effects. */
  const begin = async (name = 'old') => {
    await record(name, ...ids(1, 9))
    await consume(name, 7, { refused: ['5'], held: ['3'] })
    await using log = await openLog(logOf(name))
    await log.deadLetters('ledger').redeliver('all')
  }
  const expectOnce = (count: number) =>
    expect(effects().toSorted((a, b) => Number(a) - Number(b))).toEqual(ids(1, count))
  return { begin, consume, database, effects, expectOnce, fileOf, logOf, record, refusal }
}

/** A database that fails around the step in which the states for the new log are stored. */
function dying(database: DatabaseSync, when: 'before' | 'after'): EffectStore<never> {
  const store = new EffectDatabase(database)
  const { moved } = store
  return Object.assign(store, {
    moved: {
      ...moved,
      store: async (...call: Parameters<typeof moved.store>) => {
        if (when === 'after') await moved.store(...call)
        throw new Error('killed')
      },
    },
  })
}

/** A log whose finishing fails, before it or after it. */
function finishing(store: LogStore, when: 'before' | 'after') {
  const copying = store.copying
  if (copying === undefined) throw new Error('a file can be made')
  const target = async () => {
    const made = await copying.target()
    const finish = made.finish.bind(made)
    made.finish = async () => {
      if (when === 'after') await finish()
      throw new Error('killed')
    }
    return made
  }
  return Object.assign(store, { copying: { source: () => copying.source(), target } })
}

/** The steps between which a migration can be killed. */
const KILLS = ['before its states', 'after its states', 'before the end', 'after the end'] as const

describe('migrateLog, with consumers that have exactlyOnce', () => {
  it('lets each go on: acknowledged entries, what is open, and dead letters have their effect once', async () => {
    const { begin, consume, database, expectOnce, logOf, record, refusal } = world()
    await begin()
    expect(
      await migrateLog(logOf('old'), logOf('new'), { effects: [sqliteEffects(database)] }),
    ).toMatchObject({
      readers: 1,
      deadLetters: 1,
    })
    await record('new', '10', '11')
    await consume('new', 11)

    expectOnce(11)
    expect(await refusal('old')).toMatchObject({ name: 'LogPositionError' })
    await using log = await openLog(logOf('new'))
    expect(await log.deadLetters('ledger').count()).toBe(0)
  })

  it.each(KILLS)('loses and doubles nothing where it is killed %s', async (kill) => {
    const { begin, consume, database, expectOnce, logOf, record, refusal } = world()
    await begin()
    const when = kill.startsWith('before') ? 'before' : 'after'
    const target = logOf('new')
    const isAtEnd = kill.endsWith('end')
    const migrated = migrateLog(logOf('old'), isAtEnd ? finishing(target, when) : target, {
      effects: [isAtEnd ? sqliteEffects(database) : dying(database, when)],
    })
    await expect(migrated).rejects.toThrow('killed')

    if (kill !== 'after the end') {
      // The old log goes on, and the next migration ends what was begun.
      await consume('old', 8, { held: ['3'] })
      await migrateLog(logOf('old'), logOf('new'), { effects: [sqliteEffects(database)] })
    }
    await record('new', '10')
    await consume('new', 10)
    expectOnce(10)
    expect(await refusal('old')).toMatchObject({ name: 'LogPositionError' })
  })

  it('refuses the new log once its consumer went on in the old one, and copies it again', async () => {
    const { begin, consume, database, expectOnce, logOf, refusal } = world()
    await begin()
    await migrateLog(logOf('old'), logOf('new'), { effects: [sqliteEffects(database)] })
    await consume('old', 8, { held: ['3'] })

    expect(await refusal('new')).toMatchObject({ name: 'LogPositionError' })
    await migrateLog(logOf('old'), logOf('newer'), { effects: [sqliteEffects(database)] })
    expect(await refusal('new')).toMatchObject({ name: 'LogPositionError' })
    await consume('newer', 9)
    expectOnce(9)
  })

  it('moves a log on that no consumer has begun in since it was made', async () => {
    const { begin, consume, database, expectOnce, logOf, record, refusal } = world()
    await begin()
    await migrateLog(logOf('old'), logOf('second'), { effects: [sqliteEffects(database)] })
    await migrateLog(logOf('second'), logOf('third'), { effects: [sqliteEffects(database)] })
    await record('third', '10')
    await consume('third', 10)

    expectOnce(10)
    for (const earlier of ['old', 'second'])
      expect(await refusal(earlier)).toMatchObject({ name: 'LogPositionError' })
  })

  /** A log, and a database of its effects with a suspended owner that wakes up around the step in which new states are stored. */
  async function suspended(when: 'before' | 'after') {
    const { begin, consume, database, expectOnce, logOf } = world()
    await begin()
    const store = new EffectDatabase(database)
    const { moved } = store
    const fence = { name: 'consumer:ledger', token: 1_000 }
    const { state } = await store.take(fence)
    const lost = { cursor: state?.cursor ?? '', acknowledged: [] }
    const woken: Promise<unknown>[] = []
    const wake = async () => {
      woken.push(store.commit(fence, { effects: () => [], sent: [], stateAfter: () => lost }))
      await Promise.allSettled(woken)
    }
    const storeMoved = async (...call: Parameters<typeof moved.store>) => {
      if (when === 'before') await wake()
      await moved.store(...call)
      if (when === 'after') await wake()
    }
    const waking = Object.assign(new EffectDatabase(database), { moved: { ...moved, store: storeMoved } })
    const migrated = migrateLog(logOf('old'), logOf('new'), { effects: [waking] })
    return { migrated, woken, moved, consume, expectOnce }
  }

  it('is given up after an effect of a suspended owner', async () => {
    const { migrated, moved } = await suspended('before')
    await expect(migrated).rejects.toThrow('was stored while the log was copied')
    expect(await moved.peek('consumer:ledger')).toBeUndefined()
  })

  it('refuses an effect of a suspended owner once it has the states for the new log', async () => {
    const { migrated, woken, consume, expectOnce } = await suspended('after')
    await migrated
    await expect(woken[0]).rejects.toMatchObject({ name: 'FencedError' })
    await consume('new', 9)
    expectOnce(9)
  })

  it('refuses a consumer whose effects are in none of the databases, in two, or of another log, and says what to name', async () => {
    const { begin, consume, database, expectOnce, fileOf, logOf } = world()
    const [other, empty] = [world(), new DatabaseSync(':memory:')]
    onTestFinished(() => empty.close())
    await begin()
    await other.begin()
    const refused = async (effects: readonly DatabaseSync[], message: RegExp) =>
      expect(
        migrateLog(logOf('old'), logOf('new'), { effects: effects.map(sqliteEffects) }),
      ).rejects.toMatchObject({
        name: 'LogUnsupportedError',
        message: expect.stringMatching(message),
      })
    await refused([], /"ledger" has its position .* `effects`, or --effects FILE$/)
    await refused([empty], /--effects FILE$/)
    await refused(
      [other.database],
      /--effects FILE; .*effects\.db has another log, or another state of this one/,
    )
    const copy = fileOf('copy-of-effects')
    database.exec(`VACUUM INTO '${copy}'`)
    const second = new DatabaseSync(copy)
    onTestFinished(() => second.close())
    await refused([database, second], /in .*effects\.db and in .*copy-of-effects\.db/)
    const log = new DatabaseSync(fileOf('old'))
    onTestFinished(() => log.close())
    await refused([log], /old\.db is the log that is copied, and has the effects too/)

    // Those that are not needed do no harm.
    await migrateLog(logOf('old'), logOf('new'), {
      effects: [other.database, database, empty].map(sqliteEffects),
    })
    await consume('new', 9)
    expectOnce(9)
    await other.consume('old', 9)
    other.expectOnce(9)
  })

  it('refuses what is no list of databases that can be moved', async () => {
    const { logOf } = world()
    const store = {
      name: 'mine',
      peek: async () => undefined,
      take: async () => ({}),
      commit: async () => ({}),
    }
    for (const effects of [{}, [store], [new DatabaseSync(':memory:')]]) {
      const options: object = { effects }
      await expect(migrateLog(logOf('old'), logOf('new'), options)).rejects.toMatchObject({
        argument: 'effects',
      })
    }
  })
})
