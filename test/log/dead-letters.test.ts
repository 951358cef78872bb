import { setImmediate as turn } from 'node:timers/promises'
import type { EventLog, Position, StoredDeadLetter } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { ArgumentError } from 'rivulet'
import { LogUnsupportedError, openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { bufferCount, filter, ignoreElements, of, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { deliver, iterate } from 'rivulet/operators'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { scratchFile } from './sqlite/scratch.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'

const changes = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`))

async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return log
}

async function listed(log: EventLog, consumer = 'c'): Promise<readonly StoredDeadLetter[]> {
  const letters: StoredDeadLetter[] = []
  for await (const letter of log.deadLetters(consumer).list()) letters.push(letter)
  return letters
}

const ids = (letters: readonly StoredDeadLetter[]) => letters.map(({ entry }) => entry.id)

/** Resolves once the condition holds. */
async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

class Refused extends Error {
  override readonly name = 'Refused'
  readonly retryable = false
}

describe('a consumer whose dead letters are stored in the log', () => {
  it('goes on behind an entry that its handler cannot handle, and keeps it with its error', async () => {
    const store = simulatedStore({ clock: () => 7_000 })
    const log = await opened(store)
    await append(store, changes(1, 5))
    const handled: string[] = []
    const job = log.consume('c', { deadLetters: 'log', concurrency: 1 }, ({ id }) => {
      if (id === '2' || id === '4') throw new Refused(`not ${id}`)
      handled.push(id)
    })
    await until(() => handled.length === 3)
    await job.stop()
    const [first, ...rest] = await listed(log)
    expect(first).toEqual({
      entry: expect.objectContaining({ id: '2', revision: 1, position: expect.any(String) }),
      error: { name: 'Refused', message: 'not 2' },
      attempts: 1,
      failed: 7_000,
      isRedelivered: false,
    })
    expect(ids(rest)).toEqual(['4'])
    expect(await log.deadLetters('c').count()).toBe(2)
    expect(await log.deadLetters('another').count()).toBe(0)
    // Nothing comes again.
    const again: string[] = []
    const next = log.consume('c', ({ id }) => void again.push(id))
    await append(store, changes(6, 6))
    await until(() => again.length > 0)
    await next.stop()
    expect(again).toEqual(['6'])
  })

  it('lists those whose entries the log has deleted, and hands them out again', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 5))
    const handled: string[] = []
    const isGood = { yet: false }
    const job = log.consume('c', { deadLetters: 'log', concurrency: 1 }, ({ id }) => {
      if (id === '2' && !isGood.yet) throw new Refused('not yet')
      handled.push(id)
    })
    await until(async () => (await store.reader('consumer:c'))?.cursor === (await store.positionAt('end')))
    await store.retention.trim({ limit: 4 })
    expect(ids(await listed(log))).toEqual(['2'])
    isGood.yet = true
    for (const { entry } of await listed(log)) await log.deadLetters('c').redeliver(entry.position)
    await until(async () => (await log.deadLetters('c').count()) === 0)
    await job.stop()
    expect(handled).toEqual(['1', '3', '4', '5', '2'])
  })

  it('fails without them, and keeps nothing', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const job = log.consume('c', {}, () => {
      throw new Refused('no')
    })
    await expect(job.done).rejects.toThrow('no')
    expect(await listed(log)).toEqual([])
  })

  it('gets one again when that is asked for, in this process, and it is gone once it is handled', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    let refuses = true
    const handled: [string, Position][] = []
    const job = log.consume('c', { deadLetters: 'log' }, ({ id, position }) => {
      if (id === '2' && refuses) throw new Refused('no')
      handled.push([id, position])
    })
    await until(async () => (await log.deadLetters('c').count()) === 1)
    const [letter] = await listed(log)
    refuses = false
    expect(await log.deadLetters('c').redeliver(letter?.entry.position ?? '')).toBe(1)
    await until(async () => (await log.deadLetters('c').count()) === 0)
    expect(handled.at(-1)).toEqual(['2', letter?.entry.position])
    await job.stop()
  })

  it('gets them again from another process within 50 ms, while it waits', async () => {
    const file = scratchFile()
    const store = sqliteStore(file)
    const log = await opened(store)
    const other = await opened(sqliteStore(file))
    await append(store, changes(1, 2))
    let refuses = true
    const handled: number[] = []
    log.consume('c', { deadLetters: 'log' }, () => {
      if (refuses) throw new Refused('no')
      handled.push(performance.now())
    })
    await until(async () => (await other.deadLetters('c').count()) === 2)
    refuses = false
    const from = performance.now()
    await other.deadLetters('c').redeliver('all')
    await until(() => handled.length === 2)
    // Generous: the machine may be busy.
    expect(Math.max(...handled) - from).toBeLessThan(1_000)
    await until(async () => (await other.deadLetters('c').count()) === 0)
  })

  it('gets them at its next start where it does not run', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    const first = log.consume('c', { deadLetters: 'log' }, () => {
      throw new Refused('no')
    })
    await until(async () => (await log.deadLetters('c').count()) === 3)
    await first.stop()
    expect(await log.deadLetters('c').redeliver('all')).toBe(3)
    const handled: string[] = []
    const second = log.consume('c', ({ id }) => void handled.push(id))
    await until(() => handled.length === 3)
    await second.stop()
    expect(handled).toEqual(['1', '2', '3'])
    expect(await listed(log)).toEqual([])
  })

  it('counts all attempts of one that fails again, and keeps its latest error', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    let attempts = 0
    const job = log.consume('c', { deadLetters: 'log', retries: 1, initialDelay: 0 }, () => {
      throw new Error(`attempt ${(attempts += 1)}`)
    })
    await until(async () => (await log.deadLetters('c').count()) === 1)
    expect(await listed(log)).toMatchObject([{ attempts: 2, error: { message: 'attempt 2' } }])
    await log.deadLetters('c').redeliver('all')
    await until(async () => (await listed(log))[0]?.attempts === 4)
    expect(await listed(log)).toMatchObject([{ error: { message: 'attempt 4' }, isRedelivered: false }])
    await job.stop()
  })

  it('gets one again after a crash while it is out', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const refusing = log.consume('c', { deadLetters: 'log' }, () => {
      throw new Refused('no')
    })
    await until(async () => (await log.deadLetters('c').count()) === 1)
    await refusing.stop()
    await log.deadLetters('c').redeliver('all')
    const killed = store.connect()
    const dying = await openLog(killed)
    let isOut = false
    dying.consume('c', () => {
      isOut = true
      return new Promise(() => {})
    })
    await until(() => isOut)
    killed.loseClaims()
    const handled: string[] = []
    const job = log.consume('c', ({ id }) => void handled.push(id))
    await until(() => handled.length === 1)
    await job.stop()
    expect(await listed(log)).toEqual([])
  })

  it('has at most maxUnacknowledged entries out, those that are handed out again included', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 6))
    const refusing = log.consume('c', { deadLetters: 'log' }, () => {
      throw new Refused('no')
    })
    await until(async () => (await log.deadLetters('c').count()) === 6)
    await refusing.stop()
    await append(store, changes(7, 9))
    await log.deadLetters('c').redeliver('all')
    let out = 0
    let most = 0
    let done = 0
    const options = { maxUnacknowledged: 2, concurrency: 10 }
    const job = log.consume('c', options, async () => {
      most = Math.max(most, (out += 1))
      await turn()
      out -= 1
      done += 1
    })
    await until(() => done === 9)
    await job.stop()
    expect(most).toBe(2)
  })

  it('goes on once the dead letter is saved that kept as many acknowledged entries as it may', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 8))
    const handled: string[] = []
    const job = log.consume('c', { deadLetters: 'log', maxUnacknowledged: 2 }, async ({ id }) => {
      if (id === '1') {
        // Then it reads no more.
        for (let turns = 0; turns < 50; turns++) await turn()
        throw new Refused('no')
      }
      handled.push(id)
    })
    await until(() => handled.length === 7)
    await job.stop()
    expect(ids(await listed(log))).toEqual(['1'])
  })

  it('errors when an operator drops those that were handed out again, and they fill the window', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 2))
    const refusing = log.consume('c', { deadLetters: 'log' }, () => {
      throw new Refused('no')
    })
    await until(async () => (await log.deadLetters('c').count()) === 2)
    await refusing.stop()
    await log.deadLetters('c').redeliver('all')
    const scheduler = new VirtualTimeScheduler()
    let failure: unknown
    log
      .consume('c', { maxUnacknowledged: 2, scheduler })
      .pipe(
        filter(() => false),
        deliver(() => {}),
      )
      .subscribe({ error: (error: unknown) => (failure = error) })
    await until(() => scheduler.actions.length > 0)
    scheduler.flush()
    await until(() => failure !== undefined)
    expect(failure).toMatchObject({ name: 'StalledConsumerError', consumer: 'consumer:c' })
  })

  it('does not get one again that its filter does not want any more', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 2))
    const refusing = log.consume('c', { deadLetters: 'log' }, () => {
      throw new Refused('no')
    })
    await until(async () => (await log.deadLetters('c').count()) === 2)
    await refusing.stop()
    await log.deadLetters('c').redeliver('all')
    const handled: string[] = []
    const job = log.consume('c', { where: ({ id }) => id !== '1' }, ({ id }) => void handled.push(id))
    await until(async () => (await log.deadLetters('c').count()) === 1)
    await job.stop()
    expect(handled).toEqual(['2'])
    expect(await listed(log)).toMatchObject([{ entry: { id: '1' }, isRedelivered: true }])
  })

  it('stores each entry of a batch that fails', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 4))
    log
      .consume('c')
      .pipe(
        bufferCount(2),
        deliver(
          (batch) => {
            if (batch.some(({ id }) => id === '3')) throw new Refused('no')
          },
          { deadLetters: 'log' },
        ),
        ignoreElements(),
      )
      .subscribe()
    await until(async () => (await log.deadLetters('c').count()) === 2)
    expect(ids(await listed(log))).toEqual(['3', '4'])
  })

  it('stores thousands at once, in commits that the log takes', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    for (let n = 0; n < 1_000; n += 200) await append(store, changes(n + 1, n + 200), `s${n}`)
    const job = log.consume('c', { deadLetters: 'log' }, () => {
      throw new Refused('é'.repeat(5_000))
    })
    await until(async () => (await log.deadLetters('c').count()) === 1_000)
    await job.stop()
    const letters = await listed(log)
    expect(letters[0]?.error.message).toBe(`${'é'.repeat(999)}…`)
    expect((await store.reader('consumer:c'))?.cursor).toBe(await store.positionAt('end'))
    await log.deadLetters('c').redeliver('all')
    let handled = 0
    const next = log.consume('c', { maxUnacknowledged: 5_000, concurrency: 5_000 }, async () => {
      handled += 1
      if (handled < 1_000) await until(() => handled === 1_000)
    })
    await until(async () => (await log.deadLetters('c').count()) === 0)
    await next.stop()
  })

  it('keeps what there is of an error that is none', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 4))
    const thrown: Record<string, unknown> = {
      1: 'text',
      2: undefined,
      3: Object.create(null),
      4: Object.assign(new Error('x'), { name: 'n'.repeat(500) }),
    }
    const job = log.consume('c', { deadLetters: 'log', retries: 0 }, ({ id }) => {
      throw thrown[id]
    })
    await until(async () => (await log.deadLetters('c').count()) === 4)
    await job.stop()
    expect((await listed(log)).map(({ error }) => error)).toEqual([
      { name: 'string', message: 'text' },
      { name: 'undefined', message: 'undefined' },
      { name: 'object', message: 'an error without a text' },
      { name: `${'n'.repeat(99)}…`, message: 'x' },
    ])
  })

  it('is left where the loop that handles it breaks', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const refusing = log.consume('c', { deadLetters: 'log' }, () => {
      throw new Refused('no')
    })
    await until(async () => (await log.deadLetters('c').count()) === 1)
    await refusing.stop()
    await log.deadLetters('c').redeliver('all')
    for await (const entry of iterate(log.consume('c'))) {
      expect(entry.id).toBe('1')
      break
    }
    expect(await listed(log)).toMatchObject([{ isRedelivered: true }])
  })
})

describe("dead letters of 'log'", () => {
  it('are refused for values that come from no log', async () => {
    const delivered = of(1).pipe(
      deliver(
        () => {
          throw new Refused('no')
        },
        { deadLetters: 'log' },
      ),
    )
    const failure = await new Promise((resolve) => delivered.subscribe({ error: resolve }))
    expect(failure).toMatchObject({ name: 'AcknowledgementError' })
  })

  it.each([null, 'file', true, {}])('refuse %s in their place', (deadLetters) => {
    expect(() => deliver(() => {}, { deadLetters: deadLetters as never })).toThrow(ArgumentError)
  })

  it('refuse null as options', () => {
    expect(() => deliver(() => {}, null as never)).toThrow(ArgumentError)
  })

  it('are asked for by the name of a consumer and a position', async () => {
    const log = await opened(simulatedStore())
    expect(() => log.deadLetters('')).toThrow(ArgumentError)
    await expect(log.deadLetters('c').remove('')).rejects.toThrow(ArgumentError)
    await expect(log.deadLetters('c').redeliver('elsewhere')).rejects.toMatchObject({
      name: 'LogPositionError',
    })
  })
})

describe.each([
  ['in memory', () => simulatedStore()],
  ['in SQLite', () => sqliteStore(scratchFile())],
])('the gap of a consumer that was overtaken, in a log %s', (_, create) => {
  /** A consumer whose cursor is before entries that were deleted, as one in another database may be. */
  async function overtaken() {
    const store = create()
    const log = await opened(store)
    const start = await log.positionAt('start')
    await append(store, changes(1, 3))
    await store.retention.trim({ limit: 2 })
    const fence = await store.claim('consumer:c')
    await store.commit(fence, { expect: null, cursor: start, acknowledged: [] })
    await store.release(fence)
    return { log, start }
  }

  it('is a dead letter as any other entry, and is handed out again whatever the filter is', async () => {
    const { log, start } = await overtaken()
    const handled: string[] = []
    const refusing = log.consume('c', { deadLetters: 'log' }, ({ id, type }) => {
      if (type === 'log.gap') throw new Refused('a gap')
      handled.push(id)
    })
    await until(() => handled.length === 1)
    await refusing.stop()
    expect(await listed(log)).toMatchObject([
      { entry: { type: 'log.gap', data: { from: start } }, error: { message: 'a gap' } },
    ])
    expect(await log.deadLetters('c').redeliver('all')).toBe(1)
    const where = ({ id }: { readonly id: string }) => id === 'none'
    const mended = log.consume('c', { where }, ({ type }) => void handled.push(type))
    await until(() => handled.length === 2)
    await mended.stop()
    expect(handled).toEqual(['3', 'log.gap'])
    expect(await listed(log)).toEqual([])
  })

  it('stays a dead letter while its type is left out', async () => {
    const { log } = await overtaken()
    const refusing = log.consume('c', { deadLetters: 'log' }, ({ type }) => {
      if (type === 'log.gap') throw new Refused('a gap')
    })
    await until(async () => (await log.deadLetters('c').count()) === 1)
    await refusing.stop()
    await log.deadLetters('c').redeliver('all')
    const others = log.consume('c', { types: ['task_run.state'] }, () => {})
    await until(async () => (await listed(log))[0]?.isRedelivered === true)
    await others.stop()
    expect(await log.deadLetters('c').count()).toBe(1)
  })
})

describe('the dead letters of a process', () => {
  it('are listed, counted and removed, and not handed out again', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    const process = log.process('c', {
      version: 1,
      key: ({ source }) => source,
      init: () => ({}),
      event: (_state, { id }) => {
        if (id !== '2') throw new Refused(`not ${id}`)
      },
      onError: 'dead-letter',
    })
    const letters = log.deadLetters({ process: 'c' })
    await until(async () => (await letters.count()) === 2)
    const seen: StoredDeadLetter[] = []
    for await (const letter of letters.list()) seen.push(letter)
    expect(ids(seen)).toEqual(['1', '3'])
    // A consumer of the same name is another reader.
    expect(await log.deadLetters('c').count()).toBe(0)
    expect(await log.deadLetters({ consumer: 'c' }).count()).toBe(0)
    await expect(letters.redeliver('all')).rejects.toBeInstanceOf(LogUnsupportedError)
    await expect(letters.redeliver('all')).rejects.toThrow('rebuild')
    expect(await letters.remove(seen[0]?.entry.position ?? '')).toBe(1)
    expect(await letters.remove('all')).toBe(1)
    expect(await letters.count()).toBe(0)
    await process.stop()
  })

  it('are those of one reader', async () => {
    const log = await opened(simulatedStore())
    // @ts-expect-error one of both
    expect(() => log.deadLetters({ consumer: 'c', process: 'c' })).toThrow(ArgumentError)
    expect(() => log.deadLetters({ process: '' })).toThrow(ArgumentError)
  })
})
