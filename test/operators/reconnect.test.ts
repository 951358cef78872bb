import {
  defer,
  EMPTY,
  NEVER,
  Observable,
  of,
  queueScheduler,
  Subject,
  take,
  takeUntil,
  throwError,
  timer,
  VirtualTimeScheduler,
} from 'rxjs'
import type { ObservableInput, SchedulerAction, SchedulerLike } from 'rxjs'
import { ArgumentError } from 'rivulet'
import { Gate, reconnect } from 'rivulet/operators'
import type { Reconnection } from 'rivulet/operators'
import { describe, expect, it } from 'vitest'
import { currentGate, throughGate } from '../../src/protocol/gate.ts'
import { inVirtualTime } from './virtual-time.ts'

/** A failure that says that it may pass, and when to come back where that is given. */
class Dropped extends Error {
  readonly retryable = true
  readonly retryAfter: number | undefined

  constructor(retryAfter?: number) {
    super('dropped')
    this.retryAfter = retryAfter
  }
}

const dropped = new Dropped()
/** The longest wait that the backoff allows, instead of a random one up to it. */
const full = { initialDelay: 2, maxDelay: 8, random: () => 1 }
const never = () => of(false)
const isOdd = (error: unknown) => error === 'odd'
const fail = (): never => {
  throw new Error('callback')
}

/** Each subscription gets the next of these sources; the last one again and again. */
function inTurn<T>(...sources: readonly Observable<T>[]): Observable<T> {
  let next = 0
  return defer(() => sources[Math.min(next++, sources.length - 1)] ?? EMPTY)
}

describe('reconnect', () => {
  it('passes a source that completes through', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-b-|')
      expectObservable(source.pipe(reconnect())).toBe('-a-b-|')
      expectSubscriptions(source.subscriptions).toBe('^----!')
    }))

  it('subscribes again after a failure, once the backoff is over', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const first = cold<string>('-a-#', undefined, dropped)
      const second = cold('-b-|')
      expectObservable(inTurn(first, second).pipe(reconnect(full))).toBe('-a----b-|')
      expectSubscriptions(first.subscriptions).toBe('^--!')
      expectSubscriptions(second.subscriptions).toBe('-----^--!')
    }))

  it('doubles the wait with each failure, up to the longest', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('#', undefined, dropped)
      expectObservable(source.pipe(reconnect(full)), '^-----------------------!').toBe('')
      // Waits of 2, 4, 8 and 8.
      expectSubscriptions(source.subscriptions).toBe([
        '(^!)',
        '--(^!)',
        '------(^!)',
        '--------------(^!)',
        '----------------------(^!)',
      ])
    }))

  it('begins the backoff anew after an event', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const bad = cold<string>('#', undefined, dropped)
      const good = cold<string>('a#', undefined, dropped)
      const last = cold('b|')
      expectObservable(inTurn(bad, bad, good, last).pipe(reconnect(full))).toBe('------a--b|')
      expectSubscriptions(bad.subscriptions).toBe(['(^!)', '--(^!)'])
      expectSubscriptions(good.subscriptions).toBe('------^!')
      expectSubscriptions(last.subscriptions).toBe('---------^!')
    }))

  it('waits a random part of the bound', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('#', undefined, dropped)
      const half = reconnect<string>({ initialDelay: 4, maxDelay: 8, random: () => 0.5 })
      expectObservable(source.pipe(half), '^-----!').toBe('')
      expectSubscriptions(source.subscriptions).toBe(['(^!)', '--(^!)'])
    }))

  it('waits as long as an error asks for, whatever else says otherwise', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const first = cold<string>('#', undefined, new Dropped(20))
      const second = cold('a|')
      const config = { ...full, serverDelay: () => 5 }
      expectObservable(inTurn(first, second).pipe(reconnect(config))).toBe('20ms a|')
      expectSubscriptions(second.subscriptions).toBe('20ms ^!')
    }))

  it('waits at least for the delay of the server, and backs off from there', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('#', undefined, dropped)
      const config = { ...full, random: () => 0.75, maxDelay: 9, serverDelay: () => 4 }
      expectObservable(source.pipe(reconnect(config)), '^-----------------!').toBe('')
      // Three quarters of 4, of 8 and of 9, but at least 4: 4, 6 and 6.75.
      expectSubscriptions(source.subscriptions).toBe(['(^!)', '----(^!)', '10ms (^!)', '16.75ms (^!)'])
    }))

  it('takes no delay from a server whose delay makes no sense', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = inTurn(
        cold<string>('#', undefined, new Dropped(Number.NaN)),
        cold<string>('#', undefined, new Dropped(-1)),
        cold('a|'),
      )
      expectObservable(source.pipe(reconnect({ ...full, serverDelay: () => Number.NaN }))).toBe('------a|')
    }))

  it('takes the longest time that a timer can wait for an even longer one', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const delays: number[] = []
      const source = inTurn(cold<string>('#', undefined, new Dropped(Infinity)), NEVER)
      const onReconnect = ({ delay }: Reconnection) => delays.push(delay)
      expectObservable(source.pipe(reconnect({ onReconnect })), '^-!').toBe('')
      flush()
      expect(delays).toEqual([2 ** 31 - 1])
    }))

  it('passes an error on that is not retryable', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-#')
      expectObservable(source.pipe(reconnect(full))).toBe('-a-#')
      expectSubscriptions(source.subscriptions).toBe('^--!')
    }))

  it('lets its caller decide what is retryable', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = inTurn(cold<string>('#', undefined, 'odd'), cold('a#', undefined, 'bad'))
      expectObservable(source.pipe(reconnect({ ...full, retryable: isOdd }))).toBe('--a#', undefined, 'bad')
    }))

  it('passes on the failure that is one too many in a row', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const bad = cold<string>('#', undefined, dropped)
      const good = cold<string>('a#', undefined, dropped)
      const source = inTurn(bad, bad, good, bad)
      // Two failures, an event, and three failures.
      expectObservable(source.pipe(reconnect({ ...full, maxFailures: 2 }))).toBe(
        '------a------#',
        undefined,
        dropped,
      )
      expectSubscriptions(bad.subscriptions).toBe(['(^!)', '--(^!)', '---------(^!)', '-------------(^!)'])
    }))

  it('bears no failure with maxFailures 0', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('a#', undefined, dropped)
      expectObservable(source.pipe(reconnect({ maxFailures: 0 }))).toBe('a#', undefined, dropped)
    }))

  it('connects again at once after a clean close that is not the end', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const first = cold('-a-|')
      const second = cold('-b-|')
      let asked = 0
      const done = () => of(++asked === 2)
      expectObservable(inTurn(first, second).pipe(reconnect({ ...full, done }))).toBe('-a--b-|')
      expectSubscriptions(first.subscriptions).toBe('^--!')
      expectSubscriptions(second.subscriptions).toBe('---^--!')
    }))

  it('backs off from a server that accepts and closes without an event', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('-|')
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^-----------------!').toBe('')
      // Waits of 2, 4 and 8.
      expectSubscriptions(source.subscriptions).toBe(['^!', '---^!', '--------^!', '-----------------^!'])
    }))

  it('connects again at once after a first quiet connection that held, and then backs off', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('--|')
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^------------!').toBe('')
      expectSubscriptions(source.subscriptions).toBe(['^-!', '--^-!', '------^-!', '------------^!'])
    }))

  it('waits for the first delay after a clean close of a connection that was shorter, whatever it brought', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('a|')
      const config = { ...full, initialDelay: 3, done: never }
      expectObservable(source.pipe(reconnect(config)), '^--------!').toBe('a---a---a')
      expectSubscriptions(source.subscriptions).toBe(['^!', '----^!', '--------^!'])
    }))

  it("waits for the server's delay after every clean close, and backs off from there without progress", () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const steady = cold('-----a|')
      const quiet = cold<string>('-|')
      const source = inTurn(steady, steady, quiet, quiet, NEVER)
      const config = { ...full, maxDelay: 20, done: never, serverDelay: () => 5 }
      expectObservable(source.pipe(reconnect(config)), '^ 40ms !').toBe('-----a----------a')
      // A wait of 5 after each of the two that held; then 5 and 10.
      expectSubscriptions(steady.subscriptions).toBe(['^-----!', '-----------^-----!'])
      expectSubscriptions(quiet.subscriptions).toBe(['22ms ^!', '28ms ^!'])
    }))

  it('takes for progress what its caller takes for it: what is repeated begins no backoff anew', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('--a|')
      const seen = new Set<string>()
      const progress = (value: string) => !seen.has(value) && seen.add(value).has(value)
      expectObservable(source.pipe(reconnect({ ...full, done: never, progress })), '^----------------!').toBe(
        '--a--a----a-----',
      )
      // At once after the first, then waits of 2 and 4.
      expectSubscriptions(source.subscriptions).toBe([
        '^--!',
        '---^--!',
        '--------^--!',
        '---------------^-!',
      ])
    }))

  it('counts failures until there is progress, and not until any value comes', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('a#', undefined, dropped)
      const config = { ...full, maxFailures: 2, progress: () => false }
      expectObservable(source.pipe(reconnect(config))).toBe('a--a----a#', undefined, dropped)
    }))

  it('backs off from closes and failures that take turns', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const closes = cold<string>('-|')
      const fails = cold<string>('-#', undefined, dropped)
      const source = inTurn(fails, closes, fails, NEVER)
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^------------------!').toBe('')
      // Waits of 2, 4 and 8: the close is not the first of its kind without an event before it.
      expectSubscriptions(fails.subscriptions).toBe(['^!', '--------^!'])
      expectSubscriptions(closes.subscriptions).toBe('---^!')
    }))

  it('connects at once after each close that had an event before it', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-|')
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^-------!').toBe('-a--a--a')
      expectSubscriptions(source.subscriptions).toBe(['^--!', '---^--!', '------^-!'])
    }))

  it('waits for an answer whether it is done, and takes the first', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a|')
      const answer = cold('--tf', { t: true, f: false })
      expectObservable(source.pipe(reconnect({ done: () => answer }))).toBe('-a--|')
      expectSubscriptions(answer.subscriptions).toBe('--^-!')
    }))

  it('takes no answer for a no', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const answers: ObservableInput<boolean>[] = [EMPTY, of(true)]
      const source = cold('-a-|')
      const done = () => answers.shift() ?? NEVER
      expectObservable(source.pipe(reconnect({ ...full, done }))).toBe('-a--a-|')
    }))

  it('takes a failed answer for a failure of the source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-|')
      const answers: ObservableInput<boolean>[] = [throwError(() => dropped), of(true)]
      const done = () => answers.shift() ?? NEVER
      expectObservable(source.pipe(reconnect({ ...full, done }))).toBe('-a----a-|')
      expectSubscriptions(source.subscriptions).toBe(['^--!', '-----^--!'])
    }))

  it('passes on an answer that failed for good, thrown or emitted', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      expectObservable(cold('-a|').pipe(reconnect({ done: fail }))).toBe(
        '-a#',
        undefined,
        new Error('callback'),
      )
      expectObservable(cold('-a|').pipe(reconnect({ done: () => throwError(() => 'no') }))).toBe(
        '-a#',
        undefined,
        'no',
      )
    }))

  it('ends the connection when it is unsubscribed', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-b-c-')
      expectObservable(source.pipe(reconnect()), '^---!').toBe('-a-b-')
      expectSubscriptions(source.subscriptions).toBe('^---!')
    }))

  it('waits on its scheduler, and ends the wait when it is unsubscribed', () => {
    const scheduler = new VirtualTimeScheduler()
    let connections = 0
    const source = defer(() => {
      connections += 1
      return throwError(() => dropped)
    })
    const subscription = source.pipe(reconnect({ ...full, scheduler })).subscribe()
    expect(scheduler.actions.map((action) => action.delay)).toEqual([2])
    subscription.unsubscribe()
    expect(scheduler.actions).toEqual([])
    expect(connections).toBe(1)
  })

  it('ends the question whether it is done when it is unsubscribed', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const answer = cold<boolean>('-----')
      expectObservable(cold('-a|').pipe(reconnect({ done: () => answer })), '^---!').toBe('-a')
      expectSubscriptions(answer.subscriptions).toBe('--^-!')
    }))

  it('ends a question that was asked by somebody who then left', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const answer = cold<boolean>('-----')
      const left = new Subject<void>()
      const done = () => {
        left.next()
        return answer
      }
      expectObservable(cold('-a|').pipe(reconnect({ done }), takeUntil(left))).toBe('-a|')
      expectSubscriptions(answer.subscriptions).toBe('--(^!)')
    }))

  it('waits for nobody who leaves when the reconnection is told', () => {
    const scheduler = new VirtualTimeScheduler()
    let connections = 0
    const source = defer(() => {
      connections += 1
      return throwError(() => dropped)
    })
    const left = new Subject<void>()
    const onReconnect = () => left.next()
    source.pipe(reconnect({ ...full, scheduler, onReconnect }), takeUntil(left)).subscribe()
    scheduler.flush()

    expect(connections).toBe(1)
  })

  it('ends the present wait on a scheduler that does not wait for the first', () => {
    const scheduler = new VirtualTimeScheduler()
    const mixed: SchedulerLike = {
      now: () => scheduler.now(),
      schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T) {
        return (delay > 0 ? scheduler : queueScheduler).schedule(work, delay, state)
      },
    }
    let connections = 0
    const source = defer(() => {
      connections += 1
      return connections === 1 ? EMPTY : throwError(() => dropped)
    })
    // The first wait is none.
    const random = () => (connections === 1 ? 0 : 1)
    const subscription = source
      .pipe(reconnect({ ...full, random, scheduler: mixed, done: never }))
      .subscribe()
    const waiting = scheduler.actions.length
    subscription.unsubscribe()
    scheduler.flush()

    expect([waiting, connections]).toEqual([1, 2])
  })

  it('tells of each reconnection', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const told: Reconnection[] = []
      const source = inTurn(
        cold<string>('#', undefined, dropped),
        cold<string>('#', undefined, dropped),
        cold('a-|'),
        cold('b-|'),
        cold('c'),
      )
      const onReconnect = (reconnection: Reconnection) => told.push(reconnection)
      const config = { ...full, done: never, onReconnect }
      expectObservable(source.pipe(reconnect(config)), '^-----------!').toBe('------a-b-c')
      flush()
      expect(told).toEqual([
        { cause: dropped, attempt: 1, delay: 2 },
        { cause: dropped, attempt: 2, delay: 4 },
        { cause: undefined, attempt: 1, delay: 0 },
        { cause: undefined, attempt: 1, delay: 0 },
      ])
    }))

  it('hands what its callbacks throw to the subscriber', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('-#', undefined, dropped)
      for (const config of [
        { retryable: fail },
        { onReconnect: fail },
        { serverDelay: fail },
        { random: fail },
      ]) {
        expectObservable(source.pipe(reconnect(config))).toBe('-#', undefined, new Error('callback'))
      }
    }))

  it('hands what its question for progress throws to the subscriber, and ends the connection', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('a--#', undefined, dropped)
      const config = { ...full, progress: fail }
      expectObservable(source.pipe(reconnect(config))).toBe('#', undefined, new Error('callback'))
      expectSubscriptions(source.subscriptions).toBe('(^!)')
    }))

  it('hands what they throw after a clean close to the subscriber as well', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const thrown = new Error('callback')
      const closes = cold<string>('-|')
      const no = () => of(false)
      const unknown = () => throwError(() => dropped)
      expectObservable(closes.pipe(reconnect({ done: no, onReconnect: fail }))).toBe('-#', undefined, thrown)
      expectObservable(closes.pipe(reconnect({ done: unknown, retryable: fail }))).toBe(
        '-#',
        undefined,
        thrown,
      )
      for (const config of [{ serverDelay: fail }, { random: fail }]) {
        expectObservable(closes.pipe(reconnect({ ...config, done: no }))).toBe('-#', undefined, thrown)
      }
    }))

  it('keeps nothing of the connections and waits that are over', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const flaky = cold<string>('-#', undefined, dropped)
      let connections = 0
      let kept: unknown
      const counted = defer(() => {
        connections += 1
        return flaky
      })
      const watched = new Observable<never>((subscriber) => {
        const subscription = counted.pipe(reconnect({ ...full, maxDelay: 2 })).subscribe()
        subscriber.add(
          timer(9_000).subscribe(() => {
            // RxJS tells it nowhere else: what the subscription would have to tear down.
            kept = Reflect.get(subscription, '_finalizers')
            subscriber.complete()
          }),
        )
        return subscription
      })
      expectObservable(watched).toBe('9s |')
      flush()
      expect(connections).toBeGreaterThan(1_000)
      expect(Array.isArray(kept) ? kept.length : Infinity).toBeLessThan(4)
    }))

  it('counts for each subscription anew', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('#', undefined, dropped).pipe(reconnect({ ...full, maxFailures: 1 }))
      expectObservable(source).toBe('--#', undefined, dropped)
      expectObservable(source, '-^').toBe('---#', undefined, dropped)
    }))

  it('does not grow the stack when the source ends within its subscription', () =>
    inVirtualTime(({ expectObservable, flush }) => {
      let connections = 0
      const source = defer(() => (++connections % 2 === 0 ? of('a') : throwError(() => dropped)))
      const config = { initialDelay: 0, done: never }
      let got = 0
      source.pipe(reconnect(config), take(20_000)).subscribe(() => got++)
      expectObservable(EMPTY).toBe('|')
      flush()
      expect(got).toBe(20_000)
    }))

  it('stops a synchronous source once the subscriber has enough', () => {
    let produced = 0
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed) subscriber.next(produced++)
    })
    const got: number[] = []
    endless.pipe(reconnect(), take(2)).subscribe((n) => got.push(n))
    expect(got).toEqual([0, 1])
    expect(produced).toBe(2)
  })

  it('subscribes under the gate of its subscriber each time', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const gate = new Gate()
      const gates: (Gate | undefined)[] = []
      const sources: Observable<string>[] = [cold<string>('#', undefined, dropped), cold('a|')]
      const source = defer(() => {
        gates.push(currentGate())
        return sources.shift() ?? EMPTY
      })
      const gated = new Observable<string>((subscriber) =>
        throughGate(gate, () => source.pipe(reconnect(full)).subscribe(subscriber)),
      )
      expectObservable(gated).toBe('--a|')
      flush()
      expect(gates).toEqual([gate, gate])
      expect(currentGate()).toBeUndefined()
    }))

  it.each([
    ['initialDelay', { initialDelay: -1 }],
    ['maxDelay', { maxDelay: Infinity }],
    ['maxFailures', { maxFailures: -1 }],
    ['maxFailures', { maxFailures: 0.5 }],
  ])('refuses a wrong %s at the call: %o', (argument, config) => {
    const call = () => reconnect(config)
    expect(call).toThrow(ArgumentError)
    expect(call).toThrow(argument)
  })
})
