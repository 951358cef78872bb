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
import type { ReconnectOptions, Reconnection } from 'rivulet/operators'
import { describe, expect, it } from 'vitest'
import { currentGate, withGate } from '../../src/protocol/gate.ts'
import { inVirtualTime } from './virtual-time.ts'

/** A retryable error, with an optional retryAfter in ms. */
class Dropped extends Error {
  readonly retryable = true
  readonly retryAfter: number | undefined

  constructor(retryAfter?: number) {
    super('dropped')
    this.retryAfter = retryAfter
  }
}

const dropped = new Dropped()
/** The maximum delay of the backoff instead of a random one. */
const full = { initialDelay: 2, maxDelay: 8, random: () => 1 }
const never = () => of(false)
const isOdd = (error: unknown) => error === 'odd'
const fail = (): never => {
  throw new Error('callback')
}

/** Subscribes to the next of these sources each time, and to the last one from then on. */
function inTurn<T>(...sources: readonly Observable<T>[]): Observable<T> {
  let next = 0
  return defer(() => sources[Math.min(next++, sources.length - 1)] ?? EMPTY)
}

describe('reconnect', () => {
  it('completes with the source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-b-|')
      expectObservable(source.pipe(reconnect())).toBe('-a-b-|')
      expectSubscriptions(source.subscriptions).toBe('^----!')
    }))

  it('resubscribes after a failure and its backoff', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const first = cold<string>('-a-#', undefined, dropped)
      const second = cold('-b-|')
      expectObservable(inTurn(first, second).pipe(reconnect(full))).toBe('-a----b-|')
      expectSubscriptions(first.subscriptions).toBe('^--!')
      expectSubscriptions(second.subscriptions).toBe('-----^--!')
    }))

  it('doubles the delay with each failure, up to maxDelay', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('#', undefined, dropped)
      expectObservable(source.pipe(reconnect(full)), '^-----------------------!').toBe('')
      // Delays of 2, 4, 8 and 8.
      expectSubscriptions(source.subscriptions).toBe([
        '(^!)',
        '--(^!)',
        '------(^!)',
        '--------------(^!)',
        '----------------------(^!)',
      ])
    }))

  it('resets the backoff after an event', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const bad = cold<string>('#', undefined, dropped)
      const good = cold<string>('a#', undefined, dropped)
      const last = cold('b|')
      expectObservable(inTurn(bad, bad, good, last).pipe(reconnect(full))).toBe('------a--b|')
      expectSubscriptions(bad.subscriptions).toBe(['(^!)', '--(^!)'])
      expectSubscriptions(good.subscriptions).toBe('------^!')
      expectSubscriptions(last.subscriptions).toBe('---------^!')
    }))

  it('waits a random part of the backoff', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('#', undefined, dropped)
      const half = reconnect<string>({ initialDelay: 4, maxDelay: 8, random: () => 0.5 })
      expectObservable(source.pipe(half), '^-----!').toBe('')
      expectSubscriptions(source.subscriptions).toBe(['(^!)', '--(^!)'])
    }))

  it.each([0, 0.4, 1])('backs off after failures in a row whose retryAfter is %d', (retryAfter) =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('#', undefined, new Dropped(retryAfter))
      expectObservable(source.pipe(reconnect(full)), '^-------------------!').toBe('')
      expectSubscriptions(source.subscriptions).toBe(['(^!)', '--(^!)', '------(^!)', '14ms (^!)'])
    }),
  )

  it('waits for the retryAfter of the error, if that is longer than the backoff', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const first = cold<string>('#', undefined, new Dropped(20))
      const second = cold('a|')
      const options = { ...full, serverDelay: () => 5 }
      expectObservable(inTurn(first, second).pipe(reconnect(options))).toBe('20ms a|')
      expectSubscriptions(second.subscriptions).toBe('20ms ^!')
    }))

  it('waits at least for the delay of the server, and backs off from it', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('#', undefined, dropped)
      const options = { ...full, random: () => 0.75, maxDelay: 9, serverDelay: () => 4 }
      expectObservable(source.pipe(reconnect(options)), '^-----------------!').toBe('')
      // Three quarters of 4, of 8 and of 9, but at least 4: 4, 6 and 6.75.
      expectSubscriptions(source.subscriptions).toBe(['(^!)', '----(^!)', '10ms (^!)', '16.75ms (^!)'])
    }))

  it.each([0, 1])('does not wait shorter than without it if the delay of the server is %d', (delay) =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const options = { ...full, done: never, serverDelay: () => delay }
      const fails = cold<string>('#', undefined, dropped)
      const closes = cold('a|')
      expectObservable(fails.pipe(reconnect(options)), '^-------------!').toBe('')
      expectObservable(closes.pipe(reconnect(options)), '^-------!').toBe('a--a--a--')
      // Delays of 2, 4 and 8 after failures; of 2 after each close that came soon after an event.
      expectSubscriptions(fails.subscriptions).toBe(['(^!)', '--(^!)', '------(^!)'])
      expectSubscriptions(closes.subscriptions).toBe(['^!', '---^!', '------^!'])
    }),
  )

  it('ignores an invalid delay of the server', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = inTurn(
        cold<string>('#', undefined, new Dropped(Number.NaN)),
        cold<string>('#', undefined, new Dropped(-1)),
        cold('a|'),
      )
      expectObservable(source.pipe(reconnect({ ...full, serverDelay: () => Number.NaN }))).toBe('------a|')
    }))

  it('caps the delay at the limit of setTimeout', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const delays: number[] = []
      const source = inTurn(cold<string>('#', undefined, new Dropped(Infinity)), NEVER)
      const onReconnect = ({ delay }: Reconnection) => delays.push(delay)
      expectObservable(source.pipe(reconnect({ onReconnect })), '^-!').toBe('')
      flush()
      expect(delays).toEqual([2 ** 31 - 1])
    }))

  it('passes on an error that is not retryable', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-#')
      expectObservable(source.pipe(reconnect(full))).toBe('-a-#')
      expectSubscriptions(source.subscriptions).toBe('^--!')
    }))

  it('decides with the option retryable whether to reconnect', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = inTurn(cold<string>('#', undefined, 'odd'), cold('a#', undefined, 'bad'))
      expectObservable(source.pipe(reconnect({ ...full, retryable: isOdd }))).toBe('--a#', undefined, 'bad')
    }))

  it.each([undefined, false])('does not reconnect where the option retryable returns %s', (answer) =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('-a-#', undefined, dropped)
      // As untyped code may have it.
      const retryable = () => answer as boolean
      expectObservable(source.pipe(reconnect({ ...full, retryable }))).toBe('-a-#', undefined, dropped)
      expectSubscriptions(source.subscriptions).toBe('^--!')
    }),
  )

  it.each([undefined, 0])('does not count a value as progress where the option returns %s', (answer) =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('a#', undefined, dropped)
      const progress = () => answer as unknown as boolean
      const options = { ...full, maxFailures: 2, progress }
      expectObservable(source.pipe(reconnect(options))).toBe('a--a----a#', undefined, dropped)
    }),
  )

  it('calls the functions of the options on them, so that they may be an instance of a class', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      class Options implements ReconnectOptions<string> {
        readonly initialDelay = 2
        readonly jitter = 1
        readonly tries: unknown[] = []
        retryable(error: unknown) {
          return this.tries.push(error) < 3
        }
        random() {
          return this.jitter
        }
      }
      const source = cold<string>('a#', undefined, dropped)
      expectObservable(source.pipe(reconnect(new Options()))).toBe('a--a--a#', undefined, dropped)
    }))

  it('passes on the failure that exceeds maxFailures in a row', () =>
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

  it('passes on the first failure with maxFailures 0', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('a#', undefined, dropped)
      expectObservable(source.pipe(reconnect({ maxFailures: 0 }))).toBe('a#', undefined, dropped)
    }))

  it('reconnects at once after a clean close when it is not done', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const first = cold('-a-|')
      const second = cold('-b-|')
      let calls = 0
      const done = () => of(++calls === 2)
      expectObservable(inTurn(first, second).pipe(reconnect({ ...full, done }))).toBe('-a--b-|')
      expectSubscriptions(first.subscriptions).toBe('^--!')
      expectSubscriptions(second.subscriptions).toBe('---^--!')
    }))

  it('backs off from a server that accepts and closes without an event', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('-|')
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^-----------------!').toBe('')
      // Delays of 2, 4 and 8.
      expectSubscriptions(source.subscriptions).toBe(['^!', '---^!', '--------^!', '-----------------^!'])
    }))

  it('reconnects at once after a first connection without events that lasted, and then backs off', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('--|')
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^------------!').toBe('')
      expectSubscriptions(source.subscriptions).toBe(['^-!', '--^-!', '------^-!', '------------^!'])
    }))

  it('waits for initialDelay after a connection that lasted shorter, with events or without', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('a|')
      const options = { ...full, initialDelay: 3, done: never }
      expectObservable(source.pipe(reconnect(options)), '^--------!').toBe('a---a---a')
      expectSubscriptions(source.subscriptions).toBe(['^!', '----^!', '--------^!'])
    }))

  it("waits for the server's delay after every clean close, and backs off from it without progress", () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const steady = cold('-----a|')
      const quiet = cold<string>('-|')
      const source = inTurn(steady, steady, quiet, quiet, NEVER)
      const options = { ...full, maxDelay: 20, done: never, serverDelay: () => 5 }
      expectObservable(source.pipe(reconnect(options)), '^ 40ms !').toBe('-----a----------a')
      // A delay of 5 after each of the two that lasted; then 5 and 10.
      expectSubscriptions(steady.subscriptions).toBe(['^-----!', '-----------^-----!'])
      expectSubscriptions(quiet.subscriptions).toBe(['22ms ^!', '28ms ^!'])
    }))

  it('does not reset the backoff for a value that is no progress', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('--a|')
      const seen = new Set<string>()
      const progress = (value: string) => !seen.has(value) && seen.add(value).has(value)
      expectObservable(source.pipe(reconnect({ ...full, done: never, progress })), '^----------------!').toBe(
        '--a--a----a-----',
      )
      // At once after the first, then delays of 2 and 4.
      expectSubscriptions(source.subscriptions).toBe([
        '^--!',
        '---^--!',
        '--------^--!',
        '---------------^-!',
      ])
    }))

  it('does not reset the count of failures for a value that is no progress', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('a#', undefined, dropped)
      const options = { ...full, maxFailures: 2, progress: () => false }
      expectObservable(source.pipe(reconnect(options))).toBe('a--a----a#', undefined, dropped)
    }))

  it('backs off from alternating closes and failures', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const closes = cold<string>('-|')
      const fails = cold<string>('-#', undefined, dropped)
      const source = inTurn(fails, closes, fails, NEVER)
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^------------------!').toBe('')
      // Delays of 2, 4 and 8: the close is not the first end without an event.
      expectSubscriptions(fails.subscriptions).toBe(['^!', '--------^!'])
      expectSubscriptions(closes.subscriptions).toBe('---^!')
    }))

  it('reconnects at once after each close with an event before it', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-|')
      expectObservable(source.pipe(reconnect({ ...full, done: never })), '^-------!').toBe('-a--a--a')
      expectSubscriptions(source.subscriptions).toBe(['^--!', '---^--!', '------^-!'])
    }))

  it('waits for the first value of done', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a|')
      const answer = cold('--tf', { t: true, f: false })
      expectObservable(source.pipe(reconnect({ done: () => answer }))).toBe('-a--|')
      expectSubscriptions(answer.subscriptions).toBe('--^-!')
    }))

  it('reconnects when done completes without a value', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const answers: ObservableInput<boolean>[] = [EMPTY, of(true)]
      const source = cold('-a-|')
      const done = () => answers.shift() ?? NEVER
      expectObservable(source.pipe(reconnect({ ...full, done }))).toBe('-a--a-|')
    }))

  it('treats an error of done as a failure of the source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-|')
      const answers: ObservableInput<boolean>[] = [throwError(() => dropped), of(true)]
      const done = () => answers.shift() ?? NEVER
      expectObservable(source.pipe(reconnect({ ...full, done }))).toBe('-a----a-|')
      expectSubscriptions(source.subscriptions).toBe(['^--!', '-----^--!'])
    }))

  it('passes on an error of done that is not retryable, thrown or emitted', () =>
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

  it('unsubscribes from the source when it is unsubscribed', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('-a-b-c-')
      expectObservable(source.pipe(reconnect()), '^---!').toBe('-a-b-')
      expectSubscriptions(source.subscriptions).toBe('^---!')
    }))

  it('schedules the delay on its scheduler, and cancels it when it is unsubscribed', () => {
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

  it('unsubscribes from done when it is unsubscribed', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const answer = cold<boolean>('-----')
      expectObservable(cold('-a|').pipe(reconnect({ done: () => answer })), '^---!').toBe('-a')
      expectSubscriptions(answer.subscriptions).toBe('--^-!')
    }))

  it('unsubscribes from done when done itself unsubscribes the result', () =>
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

  it('does not reconnect when onReconnect unsubscribes', () => {
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

  it('cancels the current delay on a scheduler that ran the first one synchronously', () => {
    const scheduler = new VirtualTimeScheduler()
    const mixed: SchedulerLike = {
      now: () => scheduler.now(),
      schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T) {
        return delay > 1 ? scheduler.schedule(work, delay, state) : queueScheduler.schedule(work, 0, state)
      },
    }
    let connections = 0
    const source = defer(() => {
      connections += 1
      return connections === 1 ? EMPTY : throwError(() => dropped)
    })
    // The first delay is the shortest one.
    const random = () => (connections === 1 ? 0 : 1)
    const subscription = source
      .pipe(reconnect({ ...full, random, scheduler: mixed, done: never }))
      .subscribe()
    const waiting = scheduler.actions.length
    subscription.unsubscribe()
    scheduler.flush()

    expect([waiting, connections]).toEqual([1, 2])
  })

  it('calls onReconnect before each reconnection', () =>
    inVirtualTime(({ cold, expectObservable, flush }) => {
      const reconnections: Reconnection[] = []
      const source = inTurn(
        cold<string>('#', undefined, dropped),
        cold<string>('#', undefined, dropped),
        cold('a-|'),
        cold('b-|'),
        cold('c'),
      )
      const onReconnect = (reconnection: Reconnection) => reconnections.push(reconnection)
      const options = { ...full, done: never, onReconnect }
      expectObservable(source.pipe(reconnect(options)), '^-----------!').toBe('------a-b-c')
      flush()
      expect(reconnections).toEqual([
        { cause: dropped, attempt: 1, delay: 2 },
        { cause: dropped, attempt: 2, delay: 4 },
        { cause: undefined, attempt: 1, delay: 0 },
        { cause: undefined, attempt: 1, delay: 0 },
      ])
    }))

  it('errors with what its callbacks throw', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('-#', undefined, dropped)
      for (const options of [
        { retryable: fail },
        { onReconnect: fail },
        { serverDelay: fail },
        { random: fail },
      ]) {
        expectObservable(source.pipe(reconnect(options))).toBe('-#', undefined, new Error('callback'))
      }
    }))

  it('errors with what progress throws, and unsubscribes from the source', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold<string>('a--#', undefined, dropped)
      const options = { ...full, progress: fail }
      expectObservable(source.pipe(reconnect(options))).toBe('#', undefined, new Error('callback'))
      expectSubscriptions(source.subscriptions).toBe('(^!)')
    }))

  it('errors with what its callbacks throw after a clean close', () =>
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
      for (const options of [{ serverDelay: fail }, { random: fail }]) {
        expectObservable(closes.pipe(reconnect({ ...options, done: no }))).toBe('-#', undefined, thrown)
      }
    }))

  it('keeps no reference to ended connections and delays', () =>
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
            // A private field of RxJS: the teardowns of the subscription.
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

  it('counts separately for each subscription', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      const source = cold<string>('#', undefined, dropped).pipe(reconnect({ ...full, maxFailures: 1 }))
      expectObservable(source).toBe('--#', undefined, dropped)
      expectObservable(source, '-^').toBe('---#', undefined, dropped)
    }))

  it('does not grow the stack when the source ends synchronously', () =>
    inVirtualTime(({ expectObservable, flush }) => {
      let connections = 0
      const source = defer(() => (++connections % 2 === 0 ? of('a') : throwError(() => dropped)))
      const options = { initialDelay: 0, done: never }
      let got = 0
      source.pipe(reconnect(options), take(20_000)).subscribe(() => got++)
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
        withGate(gate, () => source.pipe(reconnect(full)).subscribe(subscriber)),
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
  ])('refuses a wrong %s at the call: %o', (argument, options) => {
    const call = () => reconnect(options)
    expect(call).toThrow(ArgumentError)
    expect(call).toThrow(argument)
  })
})
