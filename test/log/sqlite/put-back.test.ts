/** An earlier state of the file is put back, and what others have kept of the log is not. */
import { cpSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { join } from 'node:path'
import { openLog } from 'rivulet/log'
import type { Entry, EventLog } from 'rivulet/log'
import { exactlyOnce, rewindEffects, sqliteEffects, sqliteStore } from 'rivulet/log/sqlite'
import { migrateLog } from 'rivulet/log/store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { change } from '../../operators/events.ts'
import { append } from '../append.ts'
import { scratchEffects } from '../effects/scratch-effects.ts'
import { readAll } from '../conformance/fixture.ts'
import { scratchFolder } from './scratch.ts'

const changes = (...ids: readonly string[]) => ids.map((id) => change(id))

/** How entries are handled, by id. */
interface Handling {
  /** Their effects fail. */
  readonly refused?: readonly string[]
  /** Their preparation waits. */
  readonly waiting?: Readonly<Record<string, Promise<void>>>
}

/** A log in a file that can be put back, and a database of effects beside it. */
function world() {
  const folder = scratchFolder()
  const file = join(folder, 'log.db')
  const { database, insert, effects } = scratchEffects(folder)
  const open = async () => {
    const store = sqliteStore(file)
    const log = await openLog(store)
    onTestFinished(() => log.close().catch(() => {}))
    return { store, log }
  }
  /** Opens the log, and closes it after the work. */
  const during = async <Result>(work: (of: Awaited<ReturnType<typeof open>>) => Promise<Result>) => {
    const opened = await open()
    const result = await work(opened)
    await opened.log.close()
    return result
  }
  const record = (...ids: readonly string[]) => during(({ store }) => append(store, changes(...ids)))
  const consumer = (log: EventLog, { refused = [], waiting }: Handling = {}) =>
    log.consume(
      'ledger',
      // Without dead letters, a failure ends the job.
      waiting === undefined ? { deadLetters: 'log' } : {},
      exactlyOnce(database, {
        prepare: async ({ id }: Entry) => waiting?.[id],
        effect: ({ id }: Entry) => {
          if (refused.includes(id)) throw Object.assign(new Error(id), { retryable: false })
          insert.run(id)
        },
      }),
    )
  /** Consumes until so many effects are there in all. */
  const consume = (count: number, handling?: Handling) =>
    during(async ({ log }) => {
      const job = consumer(log, handling)
      while (effects().length < count) await turn()
      await job.stop()
    })
  /** Why a consumer does not begin. */
  const refusal = () =>
    during(({ log }) =>
      consumer(log).done.then(
        () => undefined,
        (error: unknown) => error,
      ),
    )
  const copy = join(folder, 'copy.db')
  return {
    file,
    database,
    effects,
    open,
    during,
    record,
    consumer,
    consume,
    refusal,
    rewind: () => during(({ store }) => rewindEffects(database, store, 'ledger')),
    /** Hands out all dead letters again. Resolves once they are handled, or with why the consumer has ended. */
    redeliver: () =>
      during(async ({ log }) => {
        const deadLetters = log.deadLetters('ledger')
        await deadLetters.redeliver('all')
        const job = consumer(log)
        const failures: unknown[] = []
        job.done.catch((error: unknown) => failures.push(error))
        while (failures.length === 0 && (await deadLetters.count()) > 0) await turn()
        await job.stop().catch(() => {})
        return failures[0]
      }),
    /** The log is closed: it is one file. */
    keep: () => cpSync(file, copy),
    putBack: () => cpSync(copy, file),
  }
}

describe('exactlyOnce after its log was put back', () => {
  it.each([
    ['and nothing was recorded since', [], 'beyond'],
    ['and less was recorded since', ['5'], 'beyond'],
    ['and as much was recorded since', ['5', '6', '4'], 'diverged'],
    ['and more was recorded since', ['5', '6', '4', '7'], 'diverged'],
  ])('does not begin, %s, and loses nothing once it was rewound', async (_, recorded, reason) => {
    const { record, consume, keep, putBack, refusal, rewind, effects } = world()
    await record('1', '2', '3')
    await consume(3)
    keep()
    await record('4', '5', '6')
    await consume(6)
    putBack()
    if (recorded.length > 0) await record(...recorded)

    expect(await refusal()).toMatchObject({
      name: 'LogPositionError',
      reason,
      message: expect.stringMatching(
        /"ledger" .* was not put back .* rivulet log rewind --consumer "ledger" --effects .*effects\.db/,
      ),
    })
    expect(effects()).toEqual(['1', '2', '3', '4', '5', '6'])

    const [rewound] = await rewind()
    expect(rewound).toEqual({ from: expect.stringMatching(/\.6\./), to: expect.stringMatching(/\.3\./) })
    await record('4', '5', '6', '7', '8')
    await consume(11)
    // What the log had lost is applied again, in the order in which it was recorded again, and nothing else is.
    expect(effects().slice(0, 6)).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(effects().slice(6, 9).toSorted()).toEqual(['4', '5', '6'])
    expect(effects().slice(9)).toEqual(['7', '8'])
  })

  it('goes on by itself when it has nothing that the log does not have', async () => {
    const { record, consume, keep, putBack, effects } = world()
    await record('1', '2', '3')
    keep()
    await record('4', '5')
    putBack()
    await record('5', '4')
    await consume(5)
    expect(effects()).toEqual(['1', '2', '3', '5', '4'])
  })

  it('does not begin when only what it has acknowledged ahead of its cursor was lost', async () => {
    const { record, keep, putBack, refusal, rewind, consume, effects, during, consumer } = world()
    /** Applies so many effects while the first entry waits, and then fails for good. */
    const consumeAhead = (count: number) =>
      during(async ({ log }) => {
        const { promise, reject } = Promise.withResolvers<void>()
        const { done } = consumer(log, { waiting: { '1': promise } })
        while (effects().length < count) await turn()
        reject(Object.assign(new Error('not now'), { retryable: false }))
        await expect(done).rejects.toThrow('not now')
      })
    await record('1', '2')
    await consumeAhead(1)
    keep()
    await record('3', '4')
    await consumeAhead(3)
    putBack()
    await record('4', '3')

    expect(await refusal()).toMatchObject({ name: 'LogPositionError', reason: 'diverged' })
    await rewind()
    await consume(6)
    expect(effects().slice(0, 3)).toEqual(['2', '3', '4'])
    expect(effects().slice(3).toSorted()).toEqual(['1', '3', '4'])
  })

  it('has the dead letters that the log has, once it was rewound', async () => {
    const { record, consume, keep, putBack, refusal, rewind, redeliver, effects, during } = world()
    await record('1', '2', '3')
    await consume(2, { refused: ['2'] })
    keep()
    await redeliver()
    await record('4')
    await consume(4)
    putBack()
    expect(await refusal()).toMatchObject({ name: 'LogPositionError', reason: 'beyond' })
    await rewind()
    await during(async ({ log }) => expect(await log.deadLetters('ledger').count()).toBe(1))
    await redeliver()
    expect(effects()).toEqual(['1', '3', '2', '4', '2'])
  })

  it.each([
    ['had not begun', []],
    ['had no dead letter yet', ['0']],
  ])('has the dead letters that the log has lost, where the consumer %s there', async (_, first) => {
    const { record, consume, keep, putBack, effects, during, consumer } = world()
    await record(...first)
    await consume(first.length)
    await record('1', '2', '3', '4', '5')
    keep()
    await consume(first.length + 3, { refused: ['2', '4'] })
    putBack()
    await during(async ({ log }) => {
      const job = consumer(log)
      while ((await log.deadLetters('ledger').count()) < 2) await turn()
      const kept: (readonly [id: string, error: string])[] = []
      for await (const { entry, error } of log.deadLetters('ledger').list())
        kept.push([entry.id, error.message])
      expect(kept).toEqual(['2', '4'].map((id) => [id, expect.stringContaining('was put back')]))
      await log.deadLetters('ledger').redeliver('all')
      while ((await log.deadLetters('ledger').count()) > 0) await turn()
      await job.stop()
    })
    expect(effects()).toEqual([...first, '1', '3', '5', '2', '4'])
  })

  it('has the dead letters that the log has lost in a copy of the log, too', async () => {
    const { file, database, record, consume, keep, putBack, effects, consumer } = world()
    await record('0', '1', '2', '3')
    await consume(1, { refused: ['1', '2', '3'] })
    await record('4', '5')
    keep()
    await consume(2, { refused: ['4'] })
    putBack()
    const target = sqliteStore(`${file}-copy`)
    await migrateLog(sqliteStore(file), target, { effects: [sqliteEffects(database)] })
    await using log = await openLog(target)
    const job = consumer(log)
    while ((await log.deadLetters('ledger').count()) < 4) await turn()
    await log.deadLetters('ledger').redeliver('all')
    while ((await log.deadLetters('ledger').count()) > 0) await turn()
    await job.stop()
    expect(effects()).toEqual(['0', '5', '1', '2', '3', '4'])
  })

  it('is not rewound when only its effects were put back: it goes on where these are', async () => {
    const { record, consume, during, rewind, effects, consumer, database } = world()
    await record('1', '2', '3', '4')
    await during(async ({ log }) => {
      const job = consumer(log, { refused: ['2'] })
      while (effects().length < 3) await turn()
      await job.stop()
    })
    // As they were after the first entry, and the log has a dead letter of the second one.
    const first = String(database.prepare('SELECT cursor FROM rivulet_effect_cursor').get()?.['cursor'])
    const { entries } = await during(async ({ log }) => log.read(await log.positionAt('start')))
    expect(first).toBe(entries[3]?.position)
    database.exec("DELETE FROM rivulet_effect_dead_letter; DELETE FROM effect WHERE id <> '1'")
    database
      .prepare("UPDATE rivulet_effect_cursor SET cursor = ?, acknowledged = '[]'")
      .run(entries[0]?.position ?? '')

    expect(await rewind()).toEqual([{ from: entries[0]?.position, to: entries[0]?.position }])
    await during(async ({ log }) => {
      await log.deadLetters('ledger').redeliver('all')
    })
    await consume(4)
    expect(effects()).toEqual(['1', '2', '3', '4'])
    await during(async ({ log }) => expect(await log.deadLetters('ledger').count()).toBe(0))
  })

  it('has no effect twice when only its effects were put back, and a dead letter is handed out again', async () => {
    const { record, consume, redeliver, rewind, effects, database } = world()
    await record('1')
    await consume(1)
    const kept = database.prepare('SELECT cursor FROM rivulet_effect_cursor').get()?.['cursor'] ?? null
    await record('2', '3')
    await consume(2, { refused: ['2'] })
    // As they were after the first entry, and the log has a dead letter of the second one.
    database.exec("DELETE FROM rivulet_effect_dead_letter; DELETE FROM effect WHERE id <> '1'")
    database.prepare("UPDATE rivulet_effect_cursor SET cursor = ?, acknowledged = '[]'").run(kept)
    await consume(3)

    expect(await redeliver()).toMatchObject({
      name: 'EffectError',
      message: expect.stringContaining('rivulet log rewind'),
    })
    await rewind()
    expect(await redeliver()).toBeUndefined()
    expect(effects()).toEqual(['1', '2', '3'])
  })

  it('has no effect twice when a dead letter that was handled is in the log again', async () => {
    const { record, consume, keep, putBack, redeliver, rewind, effects } = world()
    await record('1', '2', '3')
    await consume(2, { refused: ['2'] })
    keep()
    expect(await redeliver()).toBeUndefined()
    putBack()

    expect(await redeliver()).toMatchObject({
      name: 'EffectError',
      message: expect.stringContaining('rivulet log rewind'),
    })
    await rewind()
    expect(await redeliver()).toBeUndefined()
    expect(effects()).toEqual(['1', '3', '2'])
  })

  it('is rewound in a log of its backup', async () => {
    const { file, record, consume, during, database, rewind, effects, refusal } = world()
    await record('1', '2')
    await consume(2)
    const backup = `${file}-backup`
    await during(({ store }) => store.backup(backup))
    await record('3')
    await consume(3)
    cpSync(backup, file)
    expect(await refusal()).toMatchObject({
      reason: 'unknown',
      message: expect.stringContaining('rivulet log rewind'),
    })
    expect(database.prepare('SELECT count(*) AS count FROM rivulet_effect_cursor').get()?.['count']).toBe(1)
    await rewind()
    await record('3')
    await consume(4)
    expect(effects()).toEqual(['1', '2', '3', '3'])
  })

  it('is not rewound while it runs', async () => {
    const { record, open, consumer, database } = world()
    await record('1')
    const first = await open()
    consumer(first.log)
    while ((await first.log.stats()).readers.every(({ owner }) => owner === null)) await turn()
    const second = await open()
    await expect(rewindEffects(database, second.store, 'ledger')).rejects.toMatchObject({
      name: 'LogInUseError',
    })
  })

  it('is copied with its log once it was rewound', async () => {
    const { file, database, record, consume, keep, putBack, rewind } = world()
    await record('1')
    await consume(1)
    keep()
    await record('2')
    await consume(2)
    putBack()
    const copied = async () => {
      const [from, to] = [sqliteStore(file), sqliteStore(`${file}-copy`)]
      try {
        return await migrateLog(from, to, { effects: [sqliteEffects(database)] })
      } finally {
        await Promise.all([from.close(), to.close()])
      }
    }
    await expect(copied()).rejects.toMatchObject({
      name: 'LogUnsupportedError',
      message: expect.stringContaining('rivulet log rewind'),
    })
    await rewind()
    expect(await copied()).toMatchObject({ readers: 1 })
  })
})

describe('positions after the log was put back', () => {
  it('are refused when the log has another entry there, and good before that', async () => {
    const { record, keep, putBack, during } = world()
    await record('1', '2')
    keep()
    await record('3', '4')
    const entries = await during(({ store }) => readAll(store))
    putBack()
    await record('4', '3', '5')
    await during(async ({ log }) => {
      const [first, second, third] = entries.map(({ position }) => position)
      for (const [position = '', next] of [
        [first, ['2', '4', '3', '5']],
        [second, ['4', '3', '5']],
      ] as const) {
        const page = await log.read(position)
        expect(page.entries.map(({ id }) => id)).toEqual(next)
      }
      await expect(log.read(third ?? '')).rejects.toMatchObject({
        name: 'LogPositionError',
        reason: 'diverged',
      })
    })
  })

  it('of processes are refused when the process has another change there', async () => {
    const { record, keep, putBack, during } = world()
    const run = (count: number) =>
      during(async ({ log }) => {
        const counts = log.process<number>('counts', {
          version: 1,
          key: ({ id }) => id,
          init: () => 0,
          event: (state, _entry, context) => context.set(state + 1),
        })
        for (;;) {
          const { state, position } = await counts.snapshot()
          if (state.size === count) return position
          await turn()
        }
      })
    await record('1', '2')
    const kept = await run(2)
    keep()
    await record('3', '4')
    const lost = await run(4)
    putBack()
    await record('4', '3', '5')
    await run(5)
    await during(async ({ log }) => {
      const page = await log.states.changes('process:counts', kept, { limit: 10 })
      expect(page.changes.map(({ key }) => key)).toEqual(['4', '3', '5'])
      await expect(log.states.changes('process:counts', lost, { limit: 10 })).rejects.toMatchObject({
        name: 'LogPositionError',
        reason: 'diverged',
      })
    })
  })

  it('stay what they were while programs come and go, and after retention and forgetting', async () => {
    const { record, during } = world()
    await record('1')
    await record('2')
    await record('3')
    const before = await during(({ store }) => readAll(store))
    await during(async ({ store }) => {
      await store.retention.trim({ limit: 1 })
      await store.retention.forget('/v1/monitors/nothing')
    })
    await record('4')
    await during(async ({ store }) => {
      const { entries } = await store.read(before[1]?.position ?? '', { limit: 10 })
      expect(entries.map(({ id }) => id)).toEqual(['3', '4'])
      expect(entries[0]?.position).toBe(before[2]?.position)
      const boundary = await store.read(before[0]?.position ?? '', { limit: 10 })
      expect(boundary.entries.map(({ id }) => id)).toEqual(['2', '3', '4'])
    })
  })
})
