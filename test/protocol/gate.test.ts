import {
  asapScheduler,
  bufferCount,
  catchError,
  combineLatest,
  concat,
  concatMap,
  concatWith,
  defer,
  delay,
  EMPTY,
  exhaustMap,
  expand,
  filter,
  finalize,
  forkJoin,
  groupBy,
  map,
  materialize,
  merge,
  mergeAll,
  mergeMap,
  NEVER,
  Observable,
  observeOn,
  of,
  race,
  repeat,
  retry,
  scan,
  Subject,
  subscribeOn,
  switchMap,
  take,
  takeUntil,
  tap,
  throwError,
  timeout,
  windowCount,
  withLatestFrom,
  zip,
} from 'rxjs'
import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { dedupe, deliver, Gate, gateOf, mergeWebhooks, reconnect, underGate } from 'rivulet/operators'
import { describe, expect, it } from 'vitest'
import { currentGate, withGate } from '../../src/protocol/gate.ts'
import { unknownEvent } from '../../src/protocol/event.ts'
import { inVirtualTime } from '../operators/virtual-time.ts'

const fail = () => {
  throw new Error('no')
}

/** A source that records its gate at each subscription, and then behaves as another source. */
class Noting {
  readonly gates: (Gate | undefined)[] = []

  source<T>(then: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      this.gates.push(gateOf(subscriber))
      return then.subscribe(subscriber)
    })
  }
}

/** An operator that hides its subscriber, by subscribing with its own observer as many do. */
function hiding<T>(): MonoTypeOperatorFunction<T> {
  return (source) =>
    new Observable((subscriber) =>
      source.subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      }),
    )
}

describe('Gate', () => {
  it('calls its listeners only on a change, until they are removed', () => {
    const gate = new Gate()
    const heard: boolean[] = []
    const leave = gate.onChange((closed) => heard.push(closed))
    gate.open()
    gate.close()
    gate.close()
    gate.open()
    leave()
    gate.close()
    expect(heard).toEqual([true, false])
    expect(gate.closed).toBe(true)
  })
})

describe('withGate', () => {
  it('reaches every source that is subscribed within, through operators that are unaware of it', () => {
    const gate = new Gate()
    const noting = new Noting()
    const source = noting.source(NEVER)
    withGate(gate, () => merge(source, source.pipe(hiding())).subscribe()).unsubscribe()
    expect(noting.gates).toEqual([gate, gate])
    expect(currentGate()).toBeUndefined()
  })

  it('restores the outer gate after an inner subscription, even one that throws', () => {
    const [outer, inner] = [new Gate(), new Gate()]
    withGate(outer, () => {
      expect(() => withGate(inner, fail)).toThrow('no')
      expect(currentGate()).toBe(outer)
    })
  })
})

/** Fails or completes at the first subscription, and is the source after that. */
function unlikeAtFirst<T>(first: Observable<never>, source: Observable<T>): Observable<T> {
  let subscriptions = 0
  return defer(() => (subscriptions++ === 0 ? first : source))
}

const failing = throwError(() => new Error('not yet'))

/** Every way to subscribe to the source when `later` emits. */
type Way = (
  source: Observable<number>,
  later: Observable<number>,
  scheduler: SchedulerLike,
) => Observable<unknown>

const WAYS: Readonly<Record<string, Way>> = {
  catchError: (source, later) => concat(later, failing).pipe(catchError(() => source)),
  combineLatest: (source, later) => later.pipe(switchMap(() => combineLatest([source, of(1)]))),
  concat: (source, later) => concat(later, source),
  concatMap: (source, later) => later.pipe(concatMap(() => source)),
  defer: (source, later) => later.pipe(switchMap(() => defer(() => source))),
  exhaustMap: (source, later) => later.pipe(exhaustMap(() => source)),
  expand: (source, later) => later.pipe(expand((n) => (n === 0 ? source : EMPTY))),
  forkJoin: (source, later) => later.pipe(switchMap(() => forkJoin([source]))),
  merge: (source, later) => later.pipe(switchMap(() => merge(source, source.pipe(take(0))))),
  mergeMap: (source, later) => later.pipe(mergeMap(() => source)),
  race: (source, later) => later.pipe(switchMap(() => race(source, NEVER))),
  reconnect: (source, _later, scheduler) =>
    unlikeAtFirst(failing, source).pipe(reconnect({ retryable: () => true, scheduler })),
  repeat: (source, later) => unlikeAtFirst(EMPTY, source).pipe(repeat({ count: 2, delay: () => later })),
  retry: (source, later) => unlikeAtFirst(failing, source).pipe(retry({ delay: () => later })),
  subscribeOn: (source, _later, scheduler) => source.pipe(subscribeOn(scheduler, 1)),
  switchMap: (source, later) => later.pipe(switchMap(() => source)),
  timeout: (source, _later, scheduler) => NEVER.pipe(timeout({ each: 1, with: () => source, scheduler })),
  zip: (source, later) => later.pipe(switchMap(() => zip(source, of(1)))),
}

/** Operators between a source and its consumer. */
const BETWEEN: Readonly<Record<string, MonoTypeOperatorFunction<number>>> = {
  buffer: (source) =>
    source.pipe(
      bufferCount(1),
      map(([n = 0]) => n),
    ),
  dedupe: (source) =>
    source.pipe(
      map((n) => ({ id: `${n}`, n })),
      dedupe(),
      map(({ n }) => n),
    ),
  delay: delay(1),
  filter: filter(() => true),
  finalize: finalize(() => {}),
  groupBy: (source) =>
    source.pipe(
      groupBy((n) => n),
      mergeAll(),
    ),
  mergeWebhooks: (source) =>
    source.pipe(
      map((n): ResearchEvent => unknownEvent('/numbers', n, 'stream')),
      mergeWebhooks(EMPTY),
      map(() => 1),
    ),
  observeOn: observeOn(asapScheduler),
  scan: scan((sum, n) => sum + n),
  takeUntil: takeUntil(NEVER),
  tap: tap(() => {}),
  window: (source) => source.pipe(windowCount(1), mergeAll()),
  withLatestFrom: (source) =>
    source.pipe(
      withLatestFrom(of(0)),
      map(([n]) => n),
    ),
}

describe('a source that is subscribed later than its consumer subscribed', () => {
  it.each(Object.entries(WAYS))('finds the gate through %s', (_name, way) =>
    inVirtualTime(({ cold, flush }, scheduler) => {
      const gate = new Gate()
      const noting = new Noting()
      way(noting.source(of(1)), cold('-(a|)', { a: 0 }), scheduler)
        .pipe(underGate(gate))
        .subscribe()
      expect(noting.gates).toEqual([])
      flush()
      expect(noting.gates.length).toBeGreaterThan(0)
      expect(noting.gates.every((found) => found === gate)).toBe(true)
    }),
  )

  it.each(Object.entries(BETWEEN))('finds the gate with %s in between', (_name, operator) => {
    const gate = new Gate()
    const noting = new Noting()
    const later = new Subject<void>()
    const subscription = later
      .pipe(
        switchMap(() => noting.source(NEVER).pipe(operator)),
        underGate(gate),
      )
      .subscribe()
    later.next()
    expect(noting.gates).toHaveLength(1)
    expect(noting.gates[0]).toBe(gate)
    subscription.unsubscribe()
  })

  it('finds the gate behind an operator that hides its subscriber, if a source was subscribed synchronously', () => {
    const gate = new Gate()
    const noting = new Noting()
    const later = new Subject<number>()
    const both = noting.source(later).pipe(
      concatMap(() => noting.source(NEVER)),
      hiding(),
    )
    const subscription = both.pipe(underGate(gate)).subscribe()
    later.next(1)
    expect(noting.gates).toEqual([gate, gate])
    expect(noting.gates[1]).toBe(gate)
    subscription.unsubscribe()
  })

  it.each<[string, MonoTypeOperatorFunction<ResearchEvent>]>([
    ['reconnect', reconnect()],
    ['mergeWebhooks', mergeWebhooks(EMPTY)],
    ['deliver', deliver(() => {})],
    ['underGate', underGate(new Gate())],
  ])('finds a gate behind an operator that hides its subscriber, with %s downstream', (_name, operator) => {
    const noting = new Noting()
    const later = new Subject<void>()
    const subscription = later
      .pipe(
        switchMap(() => noting.source<ResearchEvent>(NEVER).pipe(hiding(), operator)),
        underGate(new Gate()),
      )
      .subscribe()
    later.next()
    expect(noting.gates).toEqual([expect.any(Gate)])
    subscription.unsubscribe()
  })

  it('finds the gate behind an operator that hides its subscriber and passes the gate on', () => {
    const gate = new Gate()
    const noting = new Noting()
    const later = new Subject<void>()
    const handingOn: MonoTypeOperatorFunction<never> = (source) =>
      new Observable((subscriber) =>
        source.pipe(underGate(gateOf(subscriber))).subscribe({ complete: () => subscriber.complete() }),
      )
    const subscription = later
      .pipe(
        switchMap(() => noting.source(NEVER).pipe(handingOn)),
        underGate(gate),
      )
      .subscribe()
    later.next()
    expect(noting.gates).toHaveLength(1)
    expect(noting.gates[0]).toBe(gate)
    subscription.unsubscribe()
  })

  it('finds no gate where its consumer has none, even if another subscribes meanwhile', () => {
    const noting = new Noting()
    const later = new Subject<void>()
    const plain = later.pipe(switchMap(() => noting.source(NEVER))).subscribe()
    const held = NEVER.pipe(underGate(new Gate())).subscribe()
    later.next()
    expect(noting.gates).toEqual([undefined])
    plain.unsubscribe()
    held.unsubscribe()
  })
})

describe('underGate', () => {
  it('pauses the sources upstream of it, and none downstream', () => {
    const [before, behind] = [new Gate(), new Gate()]
    const noting = new Noting()
    noting
      .source(of(1))
      .pipe(
        underGate(before),
        concatMap(() => noting.source(of(2))),
        concatWith(noting.source(of(3))),
        underGate(behind),
      )
      .subscribe()
    expect(noting.gates.map((gate) => [before, behind].findIndex((own) => own === gate))).toEqual([0, 1, 1])
  })

  it.each<[string, Observable<number>]>([
    ['emits', of(1)],
    ['completes', EMPTY],
    ['fails', failing],
  ])('is not found downstream when a source %s synchronously', (_name, source) => {
    const [own, outer] = [new Gate(), new Gate()]
    const noting = new Noting()
    const behind = noting.source(NEVER).pipe(hiding())
    const pipe = source.pipe(
      underGate(own),
      materialize(),
      concatMap(() => behind),
    )
    pipe.subscribe().unsubscribe()
    pipe.pipe(underGate(outer)).subscribe().unsubscribe()
    expect(noting.gates).toEqual([undefined, outer])
    expect(noting.gates[1]).toBe(outer)
  })

  it('changes nothing without a gate', () => {
    const source = of(1)
    expect(underGate(undefined)(source)).toBe(source)
  })

  it('passes on values, completion and errors', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      expectObservable(cold('-a-b|').pipe(underGate(new Gate()))).toBe('-a-b|')
      expectObservable(cold('-a-#').pipe(underGate(new Gate()))).toBe('-a-#')
    }))

  it('unsubscribes with its subscriber', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-b-c')
      expectObservable(source.pipe(underGate(new Gate())), '^---!').toBe('-a-b-')
      expectSubscriptions(source.subscriptions).toBe('^---!')
    }))

  it('stops a synchronous source once its subscriber unsubscribes', () => {
    let produced = 0
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed) subscriber.next(produced++)
    })
    endless.pipe(underGate(new Gate()), take(2)).subscribe()
    expect(produced).toBe(2)
  })
})
