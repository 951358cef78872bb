import { setImmediate as turn } from 'node:timers/promises'
import {
  bufferCount,
  filter,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  map,
  mergeMap,
  share,
  Subject,
  take,
  tap,
  VirtualTimeScheduler,
} from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { deliver, iterate, ofType } from 'rivulet/operators'
import type { Entry, LogStore } from '../../src/log/store/contract.ts'
import { openLog } from '../../src/log/event-log/open-log.ts'
import type { EventLog } from '../../src/log/event-log/event-log.ts'
import { ACKNOWLEDGER, keepPosition } from '../../src/protocol/acknowledgement.ts'
import { bareRun, change, fullRun, groupStatus } from '../operators/events.ts'
import { append } from './append.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

const changes = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => change(`${from + n}`))

/** An open log over a store, closed at the end of the test. */
async function opened(store: LogStore): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close())
  return log
}

/** The ids of entries as they come. */
class Seen {
  readonly ids: string[] = []
  readonly #more = new Subject<void>()

  readonly add = (entry: { readonly id: string }): void => {
    this.ids.push(entry.id)
    this.#more.next()
  }

  /** Resolves when so many have come. */
  async count(count: number): Promise<readonly string[]> {
    while (this.ids.length < count)
      await new Promise<void>((resolve) => this.#more.pipe(take(1)).subscribe(() => resolve()))
    return this.ids
  }
}

/** The entries that a new consumer of another open log would get, up to the end of the log. */
async function remaining(store: SimulatedStore, name: string): Promise<readonly string[]> {
  const other = store.connect()
  const log = await openLog(other)
  const seen = new Seen()
  const marker = change('the last one', 'marker')
  await append(other, [marker], 'marker')
  await new Promise<void>((resolve, reject) => {
    log.consume(name).subscribe({
      next(entry) {
        if (entry.source === marker.source) resolve()
        else seen.add(entry)
      },
      error: reject,
    })
  })
  await log.close()
  return seen.ids
}

function failureOf(observable: Observable<unknown>): Promise<unknown> {
  return new Promise((resolve) => observable.subscribe({ error: resolve }))
}

describe('a consumer of the log', () => {
  it('gets what is in the log and what comes later, in order', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    const seen = new Seen()
    log.consume('all', {}, seen.add)
    await seen.count(3)
    await append(store, changes(4, 5))
    expect(await seen.count(5)).toEqual(['1', '2', '3', '4', '5'])
  })

  it('has at most about 16 Mi characters of entries out, and one that is longer alone', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    const events = Array.from({ length: 24 }, (_, n) => change(`${n}${'x'.repeat(400_000)}`))
    for (const event of events) await append(store, [event])
    // The last one may exceed the bound.
    const expected = Math.ceil((16 * 1024 * 1024) / JSON.stringify(events[0]).length)
    expect(expected).toBeLessThan(24)
    const begun = new Seen()
    const held = Promise.withResolvers<void>()
    const job = log.consume('all', { concurrency: 100 }, (entry) => {
      begun.add(entry)
      return held.promise
    })
    await begun.count(expected)
    for (let turns = 0; turns < 20; turns++) await turn()
    expect(begun.ids).toHaveLength(expected)
    held.resolve()
    await begun.count(24)
    await job.stop()
  })

  it('resumes behind what it has handled', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    const seen = new Seen()
    const job = log.consume('all', {}, seen.add)
    await seen.count(3)
    await job.stop()
    await append(store, changes(4, 5))
    expect(await remaining(store, 'all')).toEqual(['4', '5'])
  })

  it('gets again what was not handled, and nothing else', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 6))
    const seen = new Seen()
    const handled = new Seen()
    const job = log.consume('all', { concurrency: 6, drainTimeout: 0 }, async (entry) => {
      seen.add(entry)
      if (entry.id === '2' || entry.id === '5') await new Promise(() => {})
      handled.add(entry)
    })
    await seen.count(6)
    await handled.count(4)
    await expect(job.stop()).rejects.toThrow('drainTimeout')
    await log.close()
    expect(await remaining(store, 'all')).toEqual(['2', '5'])
  })

  it('begins at the end or at a time, where its name is new', async () => {
    let now = 1_000
    const store = simulatedStore({ clock: () => now })
    const log = await opened(store)
    await append(store, changes(1, 2))
    now = 2_000
    await append(store, changes(3, 4))
    const late = new Seen()
    const last = new Seen()
    log.consume('late', { startAt: { time: 1_500 } }, late.add)
    log.consume('last', { startAt: 'end' }, last.add)
    expect(await late.count(2)).toEqual(['3', '4'])
    // The consumer has been created once its name is known.
    while ((await store.reader('consumer:last')) === undefined) await turn()
    await append(store, changes(5, 5))
    expect(await last.count(1)).toEqual(['5'])
  })

  it('gets the types that it wants, and another list of types holds from the cursor on', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, [change('1'), groupStatus('a'), fullRun('run')])
    const runs = new Seen()
    const job = log.consume('some', { types: ['task_run.state'] }, (entry) =>
      runs.add({ id: entry.data.run.run_id }),
    )
    expect(await runs.count(1)).toEqual(['run'])
    await job.stop()
    await append(store, [change('2'), groupStatus('b')])
    expect(await remaining(store, 'some')).toEqual(['2', 'b'])
  })

  it('gets what its function wants, and what it does not want does not hold it up', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 50))
    const seen = new Seen()
    const where = (entry: Entry) => Number(entry.id) % 10 === 0
    const job = log.consume('tens', { where, maxUnacknowledged: 2 }, seen.add)
    expect(await seen.count(5)).toEqual(['10', '20', '30', '40', '50'])
    await job.stop()
    expect(await remaining(store, 'tens')).toEqual([])
  })

  it('fails with what its function throws', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 2))
    const where = () => {
      throw new Error('this filter is broken')
    }
    await expect(log.consume('broken', { where }, () => {}).done).rejects.toThrow('this filter is broken')
  })

  it('gets each revision of an event, or the first alone', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, [bareRun('run')])
    await append(store, [fullRun('run')])
    await append(store, [change('last')])
    const all: string[] = []
    const first: string[] = []
    const end = new Seen()
    const into = (list: string[]) => (entry: Entry) => {
      list.push(`${entry.id} ${entry.revision}`)
      if (entry.id === 'last') end.add(entry)
    }
    log.consume('all', {}, into(all))
    log.consume('first', { revisions: 'first' }, into(first))
    await end.count(2)
    expect(all).toEqual(['run:completed 1', 'run:completed 2', 'last 1'])
    expect(first).toEqual(['run:completed 1', 'last 1'])
  })

  it('has no more entries out than the maximum', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 30))
    const out: Entry[] = []
    const seen = new Seen()
    log
      .consume('slow', { maxUnacknowledged: 5 })
      .pipe(
        bufferCount(5),
        deliver((entries) => void (out.push(...entries), entries.forEach(seen.add))),
      )
      .subscribe()
    expect(await seen.count(30)).toHaveLength(30)
    const most: number[] = []
    const held = new Set<string>()
    log.consume('held', { maxUnacknowledged: 7 }).subscribe((entry) => {
      held.add(entry.position)
      most.push(held.size)
    })
    await append(store, changes(31, 40))
    await seen.count(40)
    expect(Math.max(...most)).toBe(7)
  })

  it('names the entry that an operator has dropped, when that holds it up for too long', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 20))
    const scheduler = new VirtualTimeScheduler()
    const seen = new Seen()
    const delivered = log.consume('filtered', { maxUnacknowledged: 8, stallTimeout: 60_000, scheduler }).pipe(
      filter(({ id }) => Number(id) > 3),
      deliver(seen.add),
    )
    const failure = failureOf(delivered)
    await seen.count(5)
    while (scheduler.actions.length === 0) await turn()
    scheduler.flush()
    expect(await failure).toMatchObject({
      name: 'StalledConsumerError',
      message: expect.stringContaining('"1" of /v1/monitors/m'),
    })
    expect(scheduler.now()).toBe(60_000)
    await log.close()
    const again = await remaining(store, 'filtered')
    expect(again).toEqual([
      '1',
      '2',
      '3',
      ...changes(4, 20)
        .map(({ id }) => id)
        .filter((id) => !seen.ids.includes(id)),
    ])
  })

  it('does not take an entry that is retried for one that was dropped', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 9))
    const scheduler = new VirtualTimeScheduler()
    const attempts = new Seen()
    let failures = 0
    const job = log.consume(
      'retried',
      {
        maxUnacknowledged: 2,
        stallTimeout: 10,
        concurrency: 1,
        retries: 5,
        initialDelay: 1_000,
        random: () => 1,
        scheduler,
      },
      (entry) => {
        attempts.add(entry)
        if (entry.id === '1' && failures++ < 3) throw new Error('not yet')
      },
    )
    await attempts.count(1)
    while (scheduler.actions.length === 0) await turn()
    scheduler.flush()
    await attempts.count(12)
    await job.stop()
    expect(attempts.ids.slice(0, 5)).toEqual(['1', '1', '1', '1', '2'])
  })

  it('acknowledges what ofType drops', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, [...changes(1, 20), fullRun('run')])
    const seen = new Seen()
    const subscription = log
      .consume('runs', { maxUnacknowledged: 3 })
      .pipe(ofType('task_run.state'), deliver(seen.add))
      .subscribe()
    await seen.count(1)
    subscription.unsubscribe()
    await log.close()
    expect(await remaining(store, 'runs')).toEqual([])
  })

  it('refuses a value without a position at once, and takes one that kept it', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    const bare = log.consume('bare').pipe(
      map(({ data }) => data),
      deliver(() => {}),
    )
    expect(await failureOf(bare)).toMatchObject({ name: 'AcknowledgementError', retryable: false })

    const seen = new Seen()
    log
      .consume('kept')
      .pipe(
        map((entry) => keepPosition(entry, { id: `kept ${entry.id}` })),
        deliver(seen.add),
      )
      .subscribe()
    expect(await seen.count(3)).toEqual(['kept 1', 'kept 2', 'kept 3'])
    await log.close()
    expect(await remaining(store, 'kept')).toEqual([])
  })

  it('takes copies of entries, and arrays of them', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 6))
    const seen = new Seen()
    log
      .consume('batches')
      .pipe(
        mergeMap(async (entry) => ({ ...entry, looked: 'up' })),
        bufferCount(2),
        deliver((batch) => batch.forEach(seen.add)),
      )
      .subscribe()
    expect(await seen.count(6)).toHaveLength(6)
    await log.close()
    expect(await remaining(store, 'batches')).toEqual([])
  })

  it('has an entry acknowledged when the loop asks for the next, and not when it is left', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 5))
    for await (const { id } of iterate(log.consume('loop'))) if (id === '3') break
    await log.close()
    expect(await remaining(store, 'loop')).toEqual(['3', '4', '5'])
  })

  it('has its name for itself: another open log is refused, and can wait', async () => {
    const store = simulatedStore({ owner: 'the first' })
    const log = await opened(store)
    const other = await opened(store.connect())
    await append(store, changes(1, 2))
    const seen = new Seen()
    const job = log.consume('one', {}, seen.add)
    await seen.count(2)
    await expect(other.consume('one', {}, () => {}).done).rejects.toMatchObject({
      name: 'LogInUseError',
      owner: 'the first',
    })
    const waiting = new Seen()
    const { signal } = new AbortController()
    other.consume('one', { wait: signal }, waiting.add)
    await job.stop()
    await append(store, changes(3, 3))
    expect(await waiting.count(1)).toEqual(['3'])
  })

  it('is refused a second subscription in the same log, and a later one waits until the first has ended', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 2))
    const resumed = new Subject<void>()
    const started = new Seen()
    const first = log.consume('one', {}, async (entry) => {
      started.add(entry)
      await firstValueFrom(resumed)
    })
    await started.count(2)
    await expect(log.consume('one', {}, () => {}).done).rejects.toMatchObject({ name: 'LogInUseError' })
    const stopped = first.stop()
    const second = new Seen()
    const job = log.consume('one', {}, second.add)
    await append(store, changes(3, 3))
    for (let turns = 0; turns < 10; turns++) await turn()
    expect(second.ids).toEqual([])
    resumed.next()
    await stopped
    expect(await second.count(1)).toEqual(['3'])
    await job.stop()
  })

  it('is fenced by a log that has taken over its name', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 2))
    const resumed = new Subject<void>()
    const started = new Seen()
    const first = log.consume('one', {}, async (entry) => {
      started.add(entry)
      await firstValueFrom(resumed)
    })
    await started.count(2)
    store.loseClaims()
    const other = await opened(store.connect())
    const second = new Seen()
    const job = other.consume('one', {}, second.add)
    expect(await second.count(2)).toEqual(['1', '2'])
    resumed.next()
    await expect(first.done).rejects.toMatchObject({ name: 'FencedError' })
    await job.stop()
    expect(await remaining(store, 'one')).toEqual([])
  })

  it('releases its name when it is stopped at once', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 2))
    await log.consume('one', {}, () => {}).stop()
    const other = await opened(store.connect())
    const seen = new Seen()
    other.consume('one', seen.add)
    expect(await seen.count(2)).toEqual(['1', '2'])
  })

  it('ends when its log is closed: a job as when it is stopped, an Observable and a loop complete', async () => {
    const store = simulatedStore()
    const log = await openLog(store)
    await append(store, changes(1, 3))
    const resumed = new Subject<void>()
    const started = new Seen()
    const job = log.consume('job', {}, async (entry) => {
      started.add(entry)
      await firstValueFrom(resumed)
    })
    const completed = lastValueFrom(
      log.consume('observable').pipe(
        deliver(() => {}),
        ignoreElements(),
      ),
      { defaultValue: 'completed' },
    )
    const looping = new Seen()
    const looped = (async () => {
      for await (const entry of iterate(log.consume('loop'))) looping.add(entry)
    })()
    await started.count(3)
    await looping.count(3)
    const closed = log.close()
    resumed.next()
    await Promise.all([closed, job.done, completed, looped])
    expect(await remaining(store, 'job')).toEqual([])
    expect(await remaining(store, 'loop')).toEqual([])
  })

  it('saves what the handlers of a job end with after the close of its log began', async () => {
    const store = simulatedStore()
    const log = await openLog(store)
    await append(store, changes(1, 3))
    const resumed = new Subject<void>()
    const started = new Seen()
    log.consume('job', {}, async (entry) => {
      started.add(entry)
      await firstValueFrom(resumed)
    })
    await started.count(3)
    const closed = log.close()
    for (let turns = 0; turns < 5; turns++) await turn()
    resumed.next()
    await closed
    expect(await remaining(store, 'job')).toEqual([])
  })

  it('rejects stop() with the error of a save that failed', async () => {
    let isBroken = false
    const faults = (write: string) => {
      if (isBroken && write === 'commit') throw new Error('the disk is full')
    }
    const store = simulatedStore({ faults })
    const log = await openLog(store)
    await append(store, changes(1, 1))
    const seen = new Seen()
    const job = log.consume('one', {}, async (entry) => {
      isBroken = true
      seen.add(entry)
    })
    await seen.count(1)
    await expect(job.stop()).rejects.toThrow('the disk is full')
    isBroken = false
    await log.close()
  })

  it('gives its name up after a save that failed, so that another process can go on', async () => {
    let isBroken = false
    const faults = (write: string) => {
      if (isBroken && write === 'commit') throw new Error('the disk is full')
    }
    const store = simulatedStore({ faults })
    const log = await opened(store)
    await append(store, changes(1, 1))
    const job = log.consume('one', {}, () => void (isBroken = true))
    await expect(job.done).rejects.toThrow('the disk is full')
    expect(await remaining(store, 'one')).toEqual(['1'])
  })

  it('fails with the error of its handler, and handles the entry again the next time', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 4))
    const job = log.consume('failing', { retries: 0, concurrency: 1 }, ({ id }) => {
      if (id === '3') throw new Error('three is refused')
    })
    await expect(job.done).rejects.toThrow('three is refused')
    await log.close()
    expect(await remaining(store, 'failing')).toEqual(['3', '4'])
  })

  it('saves a dead letter as handled', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 4))
    const letters = new Seen()
    const deadLetters = { next: ({ event }: { readonly event: Entry }) => letters.add(event) }
    const seen = new Seen()
    const job = log.consume('letters', { retries: 0, deadLetters }, (entry) => {
      seen.add(entry)
      if (entry.id === '3') throw new Error('three is refused')
    })
    await letters.count(1)
    await seen.count(4)
    await job.stop()
    expect(letters.ids).toEqual(['3'])
    expect(await remaining(store, 'letters')).toEqual([])
  })

  it.each([
    ['name', () => ['', {}]],
    ['types', () => ['a', { types: 'monitor.completion' }]],
    ['where', () => ['a', { where: true }]],
    ['startAt', () => ['a', { startAt: 'now' }]],
    ['revisions', () => ['a', { revisions: 'last' }]],
    ['maxUnacknowledged', () => ['a', { maxUnacknowledged: 0 }]],
    ['stallTimeout', () => ['a', { stallTimeout: -1 }]],
    ['options', () => ['a', { type: [] }]],
  ])('is refused at the call for a wrong %s', async (argument, given) => {
    const log = await opened(simulatedStore())
    const call = () => Reflect.apply(log.consume, log, given())
    expect(call).toThrow(expect.objectContaining({ name: 'ArgumentError' }))
    expect(call).toThrow(argument)
  })

  it('of `consume` is refused at the call with the options after the handler, which would be ignored', async () => {
    const log = await opened(simulatedStore())
    const call = () => Reflect.apply(log.consume, log, ['a', () => {}, { types: ['monitor.completion'] }])
    expect(call).toThrow(expect.objectContaining({ name: 'ArgumentError' }))
    expect(call).toThrow('after the options')
  })

  it.each([
    ['an option that is not known', { concurency: 3 }, 'concurrency'],
    ['null as its options', null, 'options'],
  ])('of `consume` with a handler is refused at the call for %s', async (_, options, message) => {
    const log = await opened(simulatedStore())
    const call = () => Reflect.apply(log.consume, log, ['a', options, () => {}])
    expect(call).toThrow(expect.objectContaining({ name: 'ArgumentError' }))
    expect(call).toThrow(message)
  })

  it.each([[undefined], ['rivulet.db'], [{}]])('of a log needs a store: %j is refused', async (store) => {
    await expect(Reflect.apply(openLog, undefined, [store])).rejects.toThrow('store must be a store')
  })

  it.each([[undefined], [null], ['a text'], [{}]])(
    'of `consume` is refused at the call without a handler: %j',
    async (handler) => {
      const log = await opened(simulatedStore())
      expect(() => Reflect.apply(log.consume, log, ['a', {}, handler])).toThrow('handler')
    },
  )
})

/** Whether another open log gets the name. */
describe('a consumer whose types have changed', () => {
  it.each([
    ['are the last ones', [2, 3], [4]],
    ['come before wanted ones', [2, 3, 5], [4, 5]],
  ])(
    'forgets its acknowledgements of unwanted types that %s, before the end of the log',
    async (_, before, after) => {
      const store = simulatedStore()
      const log = await opened(store)
      await append(store, [change('1'), bareRun('2'), bareRun('3'), ...changes(4, 9)])
      const start = await store.positionAt('start')
      const positions = (await store.read(start, { limit: 20 })).entries.map(({ position }) => position)
      const fence = await store.claim('consumer:c')
      const acknowledged = positions.filter((_position, index) => before.includes(index + 1))
      await store.commit(fence, { expect: null, cursor: start, acknowledged })
      await store.release(fence)
      const numbersOf = async () =>
        (await store.reader('consumer:c'))?.acknowledged.map((position) => positions.indexOf(position) + 1)

      const seen = new Seen()
      const held = new Promise<void>(() => {})
      const subscription = log
        .consume('c', { types: ['monitor.event_stream'], maxUnacknowledged: 3 })
        .pipe(
          tap(seen.add),
          deliver(({ id }) => (id === '4' ? undefined : held), { concurrency: 8 }),
        )
        .subscribe()
      const expected = before.includes(5) ? ['1', '4', '6', '7'] : ['1', '4', '5', '6']
      expect(await seen.count(4)).toEqual(expected)
      while ((await numbersOf())?.includes(4) !== true) await turn()
      expect(await numbersOf()).toEqual(after)
      subscription.unsubscribe()
    },
  )
})

async function nameIsFree(store: SimulatedStore, name: string): Promise<boolean> {
  const other = await opened(store.connect())
  for (let turns = 0; turns < 20; turns++) await turn()
  const end = await new Promise<unknown>((resolve) => {
    const subscription = other.consume(name).subscribe({ next: () => resolve('free'), error: resolve })
    onTestFinished(() => subscription.unsubscribe())
  })
  await other.close()
  return end === 'free'
}

describe('the name of a consumer', () => {
  const keys = [undefined, ({ id }: Entry) => `${Number(id) % 2}`]

  it.each(keys)('is free after unsubscribing from deliver, whatever it holds (key: %s)', async (key) => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 9))
    const seen = new Seen()
    const handler = (entry: Entry) => {
      seen.add(entry)
      return new Promise(() => {})
    }
    const subscription = log
      .consume('x')
      .pipe(deliver(handler, { concurrency: 2, ...(key !== undefined && { key }) }))
      .subscribe()
    await seen.count(2)
    subscription.unsubscribe()
    expect(await nameIsFree(store, 'x')).toBe(true)
  })

  it('is free after a handler has failed', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 9))
    const failing = log.consume('x').pipe(
      deliver(
        ({ id }) => {
          if (id === '3') throw new Error('three is refused')
        },
        { retries: 0 },
      ),
    )
    expect(await failureOf(failing)).toMatchObject({ message: 'three is refused' })
    expect(await nameIsFree(store, 'x')).toBe(true)
    await log.close()
    expect((await remaining(store, 'x'))[0]).toBe('3')
  })

  it('is free after another event failed while one waited for its retry', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 9))
    const failing = log.consume('x').pipe(
      deliver(
        ({ id }) => {
          throw new Error(id)
        },
        { retryable: (error) => error instanceof Error && error.message !== '3' },
      ),
    )
    expect(await failureOf(failing)).toMatchObject({ message: '3' })
    expect(await nameIsFree(store, 'x')).toBe(true)
  })

  it('is free after a key function has thrown', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    const key = () => {
      throw new Error('no key')
    }
    expect(await failureOf(log.consume('x').pipe(deliver(() => {}, { key })))).toMatchObject({
      message: 'no key',
    })
    expect(await nameIsFree(store, 'x')).toBe(true)
  })

  it('is free after an abort, once the handlers in flight have ended', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 9))
    const abort = new AbortController()
    const seen = new Seen()
    const resumed = new Subject<void>()
    const ended = new Promise<void>((resolve) =>
      log
        .consume('x')
        .pipe(
          deliver(
            async (entry) => {
              seen.add(entry)
              await firstValueFrom(resumed)
            },
            { concurrency: 2, signal: abort.signal },
          ),
        )
        .subscribe({ complete: resolve }),
    )
    await seen.count(2)
    abort.abort()
    resumed.next()
    await ended
    expect(await nameIsFree(store, 'x')).toBe(true)
    await log.close()
    expect((await remaining(store, 'x'))[0]).toBe('3')
  })
})

describe('a consumer that is read by a loop', () => {
  it('takes acknowledgements of buffered entries after an error of the source', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 40))
    const where = ({ id }: Entry) => {
      if (id === '40') throw new Error('forty is refused')
      return true
    }
    const handled = new Seen()
    const loop = async () => {
      for await (const entry of iterate(log.consume('loop', { where }))) {
        await turn()
        handled.add(entry)
      }
    }
    await expect(loop()).rejects.toThrow('forty is refused')
    expect(handled.ids).toHaveLength(39)
    expect(await nameIsFree(store, 'loop')).toBe(true)
    expect(await remaining(store, 'loop')).toEqual(['40'])
  })

  it.each(['break', 'throw'])('gets again what was buffered at a %s', async (how) => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 5))
    const loop = async () => {
      for await (const { id } of iterate(log.consume('loop'))) {
        await turn()
        if (id !== '2') continue
        if (how === 'break') break
        throw new Error('two is refused')
      }
    }
    await loop().catch(() => {})
    expect(await nameIsFree(store, 'loop')).toBe(true)
    expect(await remaining(store, 'loop')).toEqual(['2', '3', '4', '5'])
  })

  it('refuses a value without a position once those before it were read', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 3))
    const bareSecond = map((entry: Entry): unknown => (entry.id === '2' ? entry.data : entry))
    const values = iterate(log.consume('loop').pipe(bareSecond))
    expect(await values.next()).toMatchObject({ value: { id: '1' } })
    await turn()
    await expect(values.next()).rejects.toMatchObject({ name: 'AcknowledgementError' })
    expect(await values.next()).toEqual({ done: true, value: undefined })
    expect(await nameIsFree(store, 'loop')).toBe(true)
    expect(await remaining(store, 'loop')).toEqual(['2', '3'])
  })

  it('takes the acknowledgements of concurrent calls of next()', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 5))
    const values = iterate(log.consume('loop'))
    await Promise.all([values.next(), values.next(), values.next()])
    expect(await values.next()).toMatchObject({ value: { id: '4' } })
    await values.return?.()
    expect(await nameIsFree(store, 'loop')).toBe(true)
    expect(await remaining(store, 'loop')).toEqual(['4', '5'])
  })
})

describe('an entry that more than one handler gets', () => {
  it('comes again while one of its parts is not handled', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 2))
    const handled = new Seen()
    const subscription = log
      .consume('parts')
      .pipe(
        mergeMap((entry) => [1, 2].map((part) => keepPosition(entry, { id: `${entry.id}.${part}` }))),
        deliver(async (part) => {
          if (part.id === '2.2') await new Promise(() => {})
          handled.add(part)
        }),
      )
      .subscribe()
    expect(await handled.count(3)).toEqual(['1.1', '1.2', '2.1'])
    for (let turns = 0; turns < 5; turns++) await turn()
    subscription.unsubscribe()
    await log.close()
    expect(await remaining(store, 'parts')).toEqual(['2'])
  })

  it('frees the name when one delivery gave it up before the other handled it', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const shared = log.consume('shared').pipe(share())
    const resumed = new Subject<void>()
    const started = new Seen()
    const hold = (entry: Entry) => {
      started.add(entry)
      return firstValueFrom(resumed)
    }
    const first = shared.pipe(deliver(hold)).subscribe()
    const second = shared.pipe(take(1), deliver(hold)).subscribe()
    await started.count(2)
    first.unsubscribe()
    expect(second.closed).toBe(false)
    // The reading has ended before the acknowledgement.
    for (let turns = 0; turns < 5; turns++) await turn()
    resumed.next()
    expect(await nameIsFree(store, 'shared')).toBe(true)
    expect(await remaining(store, 'shared')).toEqual(['1'])
  })

  it('comes again while one of two deliveries has not handled it, although ofType dropped it for the other', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, [...changes(1, 2), fullRun('run')])
    const shared = log.consume('shared').pipe(share())
    const slow = new Seen()
    const runs = new Seen()
    const subscription = shared
      .pipe(
        deliver(async (entry) => {
          slow.add(entry)
          if (entry.id === '2') await new Promise(() => {})
        }),
      )
      .subscribe()
    subscription.add(
      shared
        .pipe(
          ofType('task_run.state'),
          deliver(({ data }) => runs.add({ id: data.run.run_id })),
        )
        .subscribe(),
    )
    await runs.count(1)
    await slow.count(3)
    for (let turns = 0; turns < 5; turns++) await turn()
    subscription.unsubscribe()
    await log.close()
    expect(await remaining(store, 'shared')).toEqual(['2'])
  })
})

describe('keepPosition', () => {
  const kept = async (make: (entry: Entry) => object) => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 1))
    const value = await new Promise<unknown>((resolve, reject) =>
      log
        .consume('kept')
        .pipe(
          map((entry) => keepPosition(entry, make(entry))),
          map((made) => ({ ...made })),
          deliver(() => {}),
        )
        .subscribe({ next: resolve, error: reject }),
    )
    await log.close()
    return { value, left: await remaining(store, 'kept') }
  }

  it('leaves the properties of the value as they are', async () => {
    const { value, left } = await kept(() => ({ position: 'CEO' }))
    expect(value).toMatchObject({ position: 'CEO' })
    expect(left).toEqual([])
  })

  it('adds no property that JSON or Object.keys shows', async () => {
    const { value } = await kept(() => ({ name: 'a' }))
    expect(JSON.stringify(value)).toBe('{"name":"a"}')
  })

  it.each([
    ['an array', [1, 2]],
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['a function', () => {}],
    ['an instance of a class', new Seen()],
  ])('refuses %s and says how to keep it', async (_, value) => {
    await expect(kept(() => value)).rejects.toMatchObject({
      name: 'ArgumentError',
      message: expect.stringContaining('{ value }'),
    })
  })

  it('makes one value of a batch, which acknowledges each of its entries', async () => {
    const store = simulatedStore()
    const log = await opened(store)
    await append(store, changes(1, 5))
    const counts: number[] = []
    const batches = log.consume('batches', { types: ['monitor.event_stream'] }).pipe(
      bufferCount(2),
      map((batch) => keepPosition(batch, { count: batch.length })),
      // A value of values.
      bufferCount(2),
      map((pair) => keepPosition(pair, { count: pair.reduce((sum, { count }) => sum + count, 0) })),
      deliver(({ count }) => void counts.push(count)),
      take(1),
    )
    await lastValueFrom(batches)
    await log.close()
    expect(counts).toEqual([4])
    expect(await remaining(store, 'batches')).toEqual(['5'])
  })
})

describe('deliver', () => {
  it.each(['unsubscribe', 'fail', 'abort', 'time out'])(
    'acknowledges or releases each value that it received exactly once (%s)',
    async (end) => {
      const calls = new Map<string, string[]>()
      const note = (call: string) => (position: string) =>
        void calls.set(position, [...(calls.get(position) ?? []), call])
      const acknowledger = {
        received: note('received'),
        acknowledge: note('acknowledge'),
        release: note('release'),
      }
      const valueAt = (position: string) => ({ position, [ACKNOWLEDGER]: acknowledger })
      const source = new Subject<ReturnType<typeof valueAt>>()
      const abort = new AbortController()
      const failing = new Subject<void>()
      const isHanging = end !== 'abort' && end !== 'fail'
      const handler = async ({ position }: { readonly position: string }) => {
        if (position === '1') return
        await firstValueFrom(failing, { defaultValue: undefined })
        if (end === 'fail' && position === '2') throw new Error('two is refused')
        if (isHanging) await new Promise(() => {})
      }
      const ended = new Promise<void>((resolve) => {
        const subscription = source
          .pipe(deliver(handler, { concurrency: 3, retries: 0, signal: abort.signal, drainTimeout: 0 }))
          .subscribe({ complete: resolve, error: () => resolve() })
        if (end === 'unsubscribe') failing.subscribe(() => resolve(subscription.unsubscribe()))
      })
      for (let n = 1; n <= 6; n++) source.next(valueAt(`${n}`))
      await turn()
      if (end === 'abort' || end === 'time out') abort.abort()
      failing.next()
      await ended
      expect(calls.get('1')).toEqual(['received', 'acknowledge'])
      expect([...calls.values()].map((each) => each.length)).toEqual([2, 2, 2, 2, 2, 2])
      expect(calls.get('6')).toEqual(['received', 'release'])
    },
  )
})
