import { setImmediate as turn } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { exactlyOnceIn } from '../../../src/log/consume/exactly-once.ts'
import { EFFECTS } from '../../../src/log/consume/effects.ts'
import { memoryStore } from '../../../src/log/memory/store.ts'
import { openLog } from '../../../src/log/event-log/open-log.ts'
import { EffectDatabase } from '../../../src/log/sqlite/effect-database.ts'
import { change } from '../../operators/events.ts'
import { append } from '../append.ts'
import type { Entry } from '../../../src/log/store/contract.ts'
import type { EffectStore } from '../../../src/log/store/effect-store.ts'
import { describeEffectStore, entryAt } from './conformance.ts'
import { MemoryEffects } from './memory-effects.ts'
import type { MemoryConnection } from './memory-effects.ts'

describeEffectStore('a store in SQLite', () => {
  const database = new DatabaseSync(':memory:')
  onTestFinished(() => database.close())
  database.exec('CREATE TABLE written (text TEXT NOT NULL)')
  return {
    open: () => new EffectDatabase(database),
    write: (connection, text) => void connection.prepare('INSERT INTO written VALUES (?)').run(text),
    written: () =>
      database
        .prepare('SELECT text FROM written ORDER BY rowid')
        .all()
        .map(({ text }) => String(text)),
  }
})

describeEffectStore('a store with asynchronous transactions', () => {
  const effects = new MemoryEffects()
  return {
    open: () => effects,
    write: (connection, text) => connection.write(text),
    written: () => effects.written,
  }
})

it('the answer to a commit that is lost ends the job, and the next one applies no effect again', async () => {
  const store = memoryStore()
  await append(
    store,
    Array.from({ length: 12 }, (_, n) => change(String(n))),
  )
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const effects = new MemoryEffects()
  const consume = () =>
    log.consume(
      'ledger',
      { concurrency: 2 },
      exactlyOnceIn(effects, {
        prepare: async ({ id }) => `entry ${id}`,
        effect: (_, prepared, connection) => connection.write(prepared),
      }),
    )
  for (const lost of [3, 7]) {
    effects.afterCommit = () => {
      if (effects.written.length >= lost) throw new Error('the connection is lost')
    }
    await expect(consume().done).rejects.toThrow('may have been stored')
    expect(effects.written.length).toBeGreaterThanOrEqual(lost)
  }
  effects.afterCommit = () => {}
  const last = consume()
  while (effects.written.length < 12) await turn()
  await last.stop()

  expect(effects.written).toEqual(Array.from({ length: 12 }, (_, n) => `entry ${n}`))
})

it('what the consumer saves while effects are being committed is the state behind them', async () => {
  const effects = new MemoryEffects()
  const saved: (readonly string[])[] = []
  let skipped = 0
  const store: EffectStore<MemoryConnection> = {
    name: effects.name,
    peek: (reader) => effects.peek(reader),
    take: (fence) => effects.take(fence),
    givenUp: (...args) => effects.givenUp(...args),
    commit: (fence, commit) =>
      effects.commit(fence, {
        ...commit,
        stateAfter: (applied) => {
          const state = commit.stateAfter(applied)
          if (state !== undefined) saved.push(state.acknowledged)
          return state
        },
      }),
  }
  const reader = exactlyOnceIn(store, {
    effect: ({ position }: Entry, connection) => connection.write(position),
  })[EFFECTS]()
  await reader.take(
    { name: 'consumer:ledger', token: 1 },
    {
      // It skips entries all the time.
      stateAfter: (positions) => ({ cursor: `c${skipped}`, acknowledged: [...positions].toSorted() }),
      isOpen: () => true,
      redelivery: () => undefined,
    },
    'own',
  )
  const calls: Promise<void>[] = []
  for (let n = 1; n < 10; n++) {
    const entry = entryAt(`p${n}`)
    calls.push(reader.handle(entry, [entry], new AbortController().signal))
    for (let turns = 0; turns < 4; turns++) {
      await turn()
      skipped += 1
      calls.push(reader.save())
    }
  }
  await Promise.all(calls)

  expect(saved.at(-1)).toEqual(effects.written.toSorted())
  expect(saved).toEqual(saved.toSorted((a, b) => a.length - b.length))
})
