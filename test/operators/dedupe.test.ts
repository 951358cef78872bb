import { from, Observable, of, take } from 'rxjs'
import { ArgumentError } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { dedupe } from 'rivulet/operators'
import type { Identified } from 'rivulet/operators'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { bareRun, fullRun, groupStatus } from './events.ts'
import { inVirtualTime } from './virtual-time.ts'

const a = { id: 'a' }
const b = { id: 'b' }
const c = { id: 'c' }
const values = { a, b, c }

const fail = () => {
  throw new Error('full')
}

describe('dedupe', () => {
  it('drops duplicates and completes with the source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-b-a-c-b-|', values)
      expectObservable(source.pipe(dedupe())).toBe('-a-b---c---|', values)
      expectSubscriptions(source.subscriptions).toBe('^----------!')
    }))

  it('passes on an error and unsubscribes from the source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-a-#', values)
      expectObservable(source.pipe(dedupe())).toBe('-a---#', values)
      expectSubscriptions(source.subscriptions).toBe('^----!')
    }))

  it('unsubscribes from the source when it is unsubscribed', () =>
    inVirtualTime(({ hot, expectObservable, expectSubscriptions }) => {
      const source = hot('-a-a-b-c-', values)
      expectObservable(source.pipe(dedupe()), '^-----!').toBe('-a---b-', values)
      expectSubscriptions(source.subscriptions).toBe('^-----!')
    }))

  it('stops a synchronous source once the subscriber has enough', () => {
    let produced = 0
    const endless = new Observable<{ id: string }>((subscriber) => {
      while (!subscriber.closed) subscriber.next({ id: String(produced++) })
    })
    const got: string[] = []
    endless.pipe(dedupe(), take(2)).subscribe(({ id }) => got.push(id))
    expect(got).toEqual(['0', '1'])
    expect(produced).toBe(2)
  })

  it('emits a duplicate only if it is more complete', () => {
    const duplicates = [bareRun('r'), bareRun('r'), fullRun('r'), bareRun('r'), fullRun('r')]
    const got: ResearchEvent[] = []
    of(...duplicates)
      .pipe(dedupe())
      .subscribe((event) => got.push(event))
    expect(got).toEqual([duplicates[0], duplicates[2]])
  })

  it('treats the same id of two sources as two events', () => {
    const events = [groupStatus('1', 'g'), groupStatus('1', 'h'), groupStatus('1', 'g')]
    const got: ResearchEvent[] = []
    of(...events)
      .pipe(dedupe())
      .subscribe((event) => got.push(event))
    expect(got).toEqual([events[0], events[1]])
  })

  it('forgets the least recently seen when its capacity is reached', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      // The second a makes b the least recently seen, so that c pushes b out.
      const source = cold('-a-b-a-c-a-b-|', values)
      expectObservable(source.pipe(dedupe({ capacity: 2 }))).toBe('-a-b---c---b-|', values)
    }))

  it('forgets what was not seen for the time to live, on the clock of its scheduler', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('a--a----a-----a|', values)
      expectObservable(source.pipe(dedupe({ timeToLive: 6, scheduler }))).toBe('a-------------a|', values)
    }))

  it('remembers events separately for each subscription', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const events = cold('-a-a-|', values).pipe(dedupe())
      expectObservable(events).toBe('-a---|', values)
      expectObservable(events, '--^').toBe('---a---|', values)
    }))

  it('calls onDuplicate with each dropped event', () => {
    const dropped: { id: string; n: number }[] = []
    of({ id: 'a', n: 1 }, { id: 'a', n: 2 }, { id: 'b', n: 3 }, { id: 'a', n: 4 })
      .pipe(dedupe({ onDuplicate: (event) => dropped.push(event) }))
      .subscribe()
    expect(dropped.map(({ n }) => n)).toEqual([2, 4])
  })

  it('errors with what onDuplicate throws', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-a-b-|', values)
      expectObservable(source.pipe(dedupe({ onDuplicate: fail }))).toBe('-a-#', values, new Error('full'))
      expectSubscriptions(source.subscriptions).toBe('^--!')
    }))

  it('accepts malformed events of runs', () => {
    const odd = [
      { id: 'x', type: 'task_run.state' },
      { id: 'x', type: 'task_run.state', data: null },
      { id: 'y', type: 'task_run.state', data: { run: {} } },
    ]
    const got: string[] = []
    of(...odd)
      .pipe(dedupe())
      .subscribe(({ id }) => got.push(id))
    expect(got).toEqual(['x', 'y'])
  })

  it('errors for an id that is not a string', () => {
    const numbered: readonly Identified[] = JSON.parse('[{"id":1},{"id":2}]')
    const notifications: unknown[] = []
    from(numbered)
      .pipe(dedupe())
      .subscribe({
        next: (event) => notifications.push(event),
        error: (error: unknown) => notifications.push(error),
      })

    expect(notifications).toEqual([expect.any(ArgumentError)])
  })

  it.each([
    ['capacity', { capacity: 0 }],
    ['capacity', { capacity: 1.5 }],
    ['timeToLive', { timeToLive: -1 }],
    ['timeToLive', { timeToLive: Number.NaN }],
  ])('refuses a wrong %s at the call: %o', (argument, config) => {
    const call = () => dedupe(config)
    expect(call).toThrow(ArgumentError)
    expect(call).toThrow(argument)
  })

  it('keeps the type of the events', () => {
    const events = from<ResearchEvent[]>([]).pipe(dedupe())
    expectTypeOf(events).toEqualTypeOf<Observable<ResearchEvent>>()
    const others = of({ id: 'a', n: 1 }).pipe(dedupe({ onDuplicate: ({ n }) => n.toFixed() }))
    expectTypeOf(others).toEqualTypeOf<Observable<{ id: string; n: number }>>()
    // @ts-expect-error without an id there is no identity
    expect(() => of(1).pipe(dedupe())).not.toThrow()
  })
})
