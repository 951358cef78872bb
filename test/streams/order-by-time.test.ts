import {
  from as fromList,
  lastValueFrom,
  Observable,
  Subject,
  switchMap,
  take,
  throwError,
  toArray,
} from 'rxjs'
import * as fc from 'fast-check'
import type { ResearchEvent } from 'rivulet'
import { Gate, gateOf, underGate } from 'rivulet/operators'
import { orderByTime } from 'rivulet/streams'
import { describe, expect, it } from 'vitest'
import { inVirtualTime } from '../operators/virtual-time.ts'

const T = Date.UTC(2026, 0, 1)

type OrderOptions = Parameters<typeof orderByTime<ResearchEvent>>[0]

/** An event at a second of the day. */
function at(second: number, id = String(second)): ResearchEvent {
  const time = new Date(T + second * 1_000).toISOString()
  const received = new Date(T + 1e9).toISOString()
  return { id, source: '/s', type: 'unknown', time, data: {}, received, via: 'app' }
}

const ids = (events: readonly ResearchEvent[]) => events.map(({ id }) => id).join(' ')

/** The ids of events at these seconds, as they are emitted. */
async function ordered(seconds: readonly number[], options: Partial<OrderOptions> = {}) {
  const events = seconds.map((second) => at(second))
  const settings = { lateness: '2s', ...options }
  return ids(await lastValueFrom(fromList(events).pipe(orderByTime(settings), toArray())))
}

const marbles = (diagram: string) =>
  Object.fromEntries([...diagram].filter((c) => /\d/.test(c)).map((c) => [c, at(Number(c))]))

describe('orderByTime', () => {
  it('emits events by their time, each once an event has come that happened `lateness` later', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const events = marbles('12345')
      const source = cold('  -1-3-2--5---4--|', events)
      const expected = '     ---1----(23)---(45|)'
      expectObservable(source.pipe(orderByTime({ lateness: '2s' }))).toBe(expected, events)
      expectSubscriptions(source.subscriptions).toBe('^--------------!')
    }))

  it('keeps the order in which events of one time came', async () => {
    const events = [at(1, 'a'), at(2, 'b'), at(1, 'c'), at(2, 'd'), at(1, 'e')]
    const result = await lastValueFrom(fromList(events).pipe(orderByTime({ lateness: '9s' }), toArray()))
    expect(ids(result)).toBe('a c e b d')
  })

  it('emits each event at once with a lateness of 0', async () => {
    expect(await ordered([1, 3, 3, 2], { lateness: 0 })).toBe('1 3 3 2')
  })

  it('emits what comes too late at once and out of order, or gives it to `onLate`', async () => {
    const late: ResearchEvent[] = []
    expect(await ordered([1, 5, 9, 2, 8, 6])).toBe('1 5 2 6 8 9')
    expect(await ordered([1, 5, 9, 2, 5, 8], { onLate: (event) => late.push(event) })).toBe('1 5 5 8 9')
    expect(ids(late)).toBe('2')
  })

  it('emits the first event before its time if more than `maxWaiting` wait', async () => {
    const late: ResearchEvent[] = []
    const given = { lateness: '1h', maxWaiting: 2, onLate: (event: ResearchEvent) => late.push(event) }
    expect(await ordered([3, 2, 4, 1, 5], given)).toBe('2 3 4 5')
    expect(ids(late)).toBe('1')
  })

  it('orders events that have no time by when they were received, and none after its recording', async () => {
    const received = { ...at(3, 'received'), received: new Date(T + 3_000).toISOString(), time: null }
    const ahead = { ...at(99, 'ahead'), recorded: T + 2_000 }
    const result = await lastValueFrom(
      fromList([received, at(4), ahead]).pipe(orderByTime({ lateness: '9s' }), toArray()),
    )
    expect(ids(result)).toBe('ahead received 4')
  })

  it('emits what waits before the error of its source', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const events = marbles('32')
      const source = cold('  -3-2-#', events, new Error('lost'))
      const expected = '     -----(23#)'
      expectObservable(source.pipe(orderByTime({ lateness: '9s' }))).toBe(expected, events, new Error('lost'))
    }))

  it('drops what waits when it is unsubscribed, and ends its source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const events = marbles('32')
      const source = cold('  -3-2-----', events)
      expectObservable(source.pipe(orderByTime({ lateness: '9s' })), '----!').toBe('----')
      expectSubscriptions(source.subscriptions).toBe('^---!')
    }))

  it('fails if `onLate` throws', async () => {
    const refuse = () => {
      throw new Error('late')
    }
    await expect(ordered([1, 5, 9, 2], { onLate: refuse })).rejects.toThrow('late')
  })

  it('ends a source that emits while it is being subscribed', () => {
    let emitted = 0
    const endless = new Observable<ResearchEvent>((subscriber) => {
      while (!subscriber.closed) subscriber.next(at((emitted += 1)))
    })
    const taken: ResearchEvent[] = []
    endless.pipe(orderByTime({ lateness: '1s' }), take(3)).subscribe((event) => taken.push(event))
    expect([ids(taken), emitted]).toEqual(['1 2 3', 4])
  })

  it('takes an event that its subscriber causes after those that wait no longer', () => {
    const source = new Subject<ResearchEvent>()
    const taken: ResearchEvent[] = []
    source.pipe(orderByTime({ lateness: '2s' })).subscribe((event) => {
      taken.push(event)
      if (event.id === '1') source.next(at(9))
    })
    source.next(at(1))
    source.next(at(2))
    source.next(at(4))
    source.complete()
    expect(ids(taken)).toBe('1 2 4 9')
  })

  it('lets a slow consumer pause a source, also one that is subscribed later', () => {
    const gate = new Gate()
    const gates: unknown[] = []
    const source = new Observable<ResearchEvent>((subscriber) => {
      gates.push(gateOf(subscriber))
    })
    const begin = new Subject<void>()
    begin
      .pipe(
        switchMap(() => source),
        orderByTime({ lateness: '1s' }),
        underGate(gate),
      )
      .subscribe()
    begin.next()
    expect(gates).toEqual([gate])
  })

  it('has events of its own for each subscription', async () => {
    const source = fromList([at(3), at(1), at(2)])
    const result = source.pipe(orderByTime({ lateness: '9s' }), toArray())
    const other = throwError(() => new Error('lost')).pipe(orderByTime({ lateness: '9s' }), toArray())
    expect(ids(await lastValueFrom(result))).toBe('1 2 3')
    await expect(lastValueFrom(other)).rejects.toThrow('lost')
    expect(ids(await lastValueFrom(result))).toBe('1 2 3')
  })

  it('is a sort of what is no more than `lateness` out of order', async () => {
    const seconds = fc.array(fc.nat({ max: 20 }), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(seconds, fc.nat({ max: 10 }), async (given, lateness) => {
        const latest = (n: number) => Math.max(...given.slice(0, n + 1))
        const inTime = given.filter((second, n) => second >= latest(n) - lateness)
        const sorted = inTime.toSorted((a, b) => a - b).join(' ')
        expect(await ordered(inTime, { lateness: lateness * 1_000 })).toBe(sorted)
      }),
    )
  })

  it('refuses wrong options at the call', () => {
    // @ts-expect-error An option that is missing.
    expect(() => orderByTime({})).toThrow(/lateness/)
    expect(() => orderByTime({ lateness: -1 })).toThrow(/lateness/)
    expect(() => orderByTime({ lateness: Number.NaN })).toThrow(/lateness/)
    expect(() => orderByTime({ lateness: 1, maxWaiting: 0 })).toThrow(/maxWaiting/)
    // @ts-expect-error It is no function.
    expect(() => orderByTime({ lateness: 1, onLate: 'drop' })).toThrow(/onLate/)
    // @ts-expect-error There is no such option.
    expect(() => orderByTime({ lateness: 1, scheduler: null })).toThrow(/scheduler/)
  })
})
