import { getEventListeners } from 'node:events'
import {
  EMPTY,
  firstValueFrom,
  lastValueFrom,
  Observable,
  of,
  queueScheduler,
  range,
  repeat,
  retry,
  Subject,
  Subscription,
  take,
  tap,
  toArray,
  VirtualTimeScheduler,
} from 'rxjs'
import type { SchedulerLike, Subscriber } from 'rxjs'
import { ArgumentError } from 'rivulet'
import type { EventOf, ResearchEvent } from 'rivulet'
import { deliver, DrainTimeoutError, ofType } from 'rivulet/operators'
import type { DeadLetter, DeliverOptions } from 'rivulet/operators'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { ACKNOWLEDGER } from '../../src/protocol/acknowledgement.ts'
import type { Acknowledger } from '../../src/protocol/acknowledgement.ts'
import { Refused, Work } from './handlers.ts'
import { inVirtualTime } from './virtual-time.ts'

/** The maximum delay of the backoff instead of a random one. */
const full = { initialDelay: 2, maxDelay: 8, random: () => 1 }
const refused = new Refused('no')
const fail = (): never => {
  throw refused
}

/** A handler that takes the given time for each event, in virtual time, and records its calls. */
function working(scheduler: SchedulerLike, times: Readonly<Record<string, number>>) {
  const calls: string[] = []
  const handler = (event: string) => {
    calls.push(`${event}@${scheduler.now()}`)
    return new Work(scheduler, times[event] ?? 1)
  }
  return { calls, handler }
}

/** A handler that takes 1 ms and fails the given number of times for each event. */
function failing(
  scheduler: SchedulerLike,
  times: Readonly<Record<string, number>>,
  error: unknown = refused,
) {
  const calls: string[] = []
  const left: Record<string, number> = { ...times }
  const handler = (event: string) => {
    calls.push(`${event}@${scheduler.now()}`)
    const failures = left[event] ?? 0
    left[event] = failures - 1
    return new Work(scheduler, 1, failures > 0 ? { error } : {})
  }
  return { calls, handler }
}

/** Values that their source wants acknowledged, and what becomes of each. */
function acknowledgeable(now: () => number, calls: Partial<Acknowledger> = {}) {
  const notes: string[] = []
  const note = (what: string) => (position: string) => void notes.push(`${what} ${position}@${now()}`)
  const acknowledger: Acknowledger = {
    received: note('received'),
    handedOn: note('handed on'),
    acknowledge: note('acknowledged'),
    release: note('released'),
    deadLetter: note('dead'),
    ...calls,
  }
  const value = (position: string) => ({ position, [ACKNOWLEDGER]: acknowledger })
  return { notes, values: { a: value('a'), b: value('b'), c: value('c'), d: value('d') } }
}

/** Calls a handler of strings with the position of a value. */
function ofPosition<R>(handler: (position: string) => R) {
  return ({ position }: { readonly position: string }) => handler(position)
}

/** Dead letters that are recorded. */
function deadLettering(scheduler: SchedulerLike) {
  const letters: string[] = []
  const deadLetters = {
    next: ({ event, error, attempts }: DeadLetter<string>) =>
      void letters.push(`${event} after ${attempts}: ${String(error)}@${scheduler.now()}`),
  }
  return { letters, deadLetters }
}

describe('deliver, handling', () => {
  it('emits each event once it was handled, in the order of completion', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('                           --a--b-c--------d--|')
      const { handler } = working(scheduler, { a: 10, b: 4, c: 5, d: 5 })
      const handled = source.pipe(deliver(handler, { concurrency: 2 }))
      expectObservable(handled).toBe('                ---------b--a-c------(d|)')
      expectSubscriptions(source.subscriptions).toBe('^------------------!')
    }))

  it('handles one event after another with a concurrency of 1', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = working(scheduler, { a: 4, b: 2, c: 1 })
      const handled = cold('           abc---|').pipe(deliver(handler, { concurrency: 1 }))
      expectObservable(handled).toBe('----a-b(c|)')
    }))

  it('handles 8 events at once by default', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = working(scheduler, {})
      of(...'abcdefghij')
        .pipe(deliver(handler))
        .subscribe()
      flush()
      expect(calls).toEqual([...'abcdefgh'].map((event) => `${event}@0`).concat('i@1', 'j@1'))
    }))

  it('emits an event synchronously when its handler is synchronous', () => {
    const log: string[] = []
    const source = new Subject<string>()
    source
      .pipe(deliver((event) => void log.push(`handled ${event}`)))
      .subscribe((event) => log.push(`emitted ${event}`))
    source.next('a')
    log.push('between')
    source.next('b')
    expect(log).toEqual(['handled a', 'emitted a', 'between', 'handled b', 'emitted b'])
  })

  it('handles a million events with a synchronous handler without growing the stack', async () => {
    let sum = 0
    const handled = range(0, 1_000_000).pipe(
      deliver((n) => {
        sum += n
      }),
    )
    expect(await lastValueFrom(handled)).toBe(999_999)
    expect(sum).toBe(499_999_500_000)
  })

  it('handles reentrant events without growing the stack', () => {
    const source = new Subject<number>()
    let last = 0
    source.pipe(deliver(() => {})).subscribe((n) => {
      last = n
      if (n < 100_000) source.next(n + 1)
    })
    source.next(0)
    expect(last).toBe(100_000)
  })

  it('waits for the promises of an asynchronous handler', async () => {
    const log: string[] = []
    const handler = async (event: string) => {
      log.push(`began ${event}`)
      await Promise.resolve()
      log.push(`ended ${event}`)
    }
    const handled = of('a', 'b').pipe(deliver(handler, { concurrency: 1 }), toArray())
    expect(await lastValueFrom(handled)).toEqual(['a', 'b'])
    expect(log).toEqual(['began a', 'ended a', 'began b', 'ended b'])
  })

  it('handles undefined as an event', async () => {
    const got: unknown[] = []
    const handler = (event: unknown) => void got.push(event)
    await lastValueFrom(of(undefined, null, 0).pipe(deliver(handler, { concurrency: 1 })))
    expect(got).toEqual([undefined, null, 0])
  })

  it('has a separate concurrency limit and backlog for each subscription', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = working(scheduler, { a: 3 })
      const handled = cold('a|').pipe(deliver(handler, { concurrency: 1 }))
      expectObservable(handled).toBe('---(a|)')
      expectObservable(handled, '-^').toBe('----(a|)')
    }))

  it('keeps the type of the events', () => {
    const events: Observable<ResearchEvent> = EMPTY
    const narrowed = events.pipe(
      ofType('monitor.event_stream'),
      deliver(async (event) => event.data.output, {
        key: (event) => event.source,
        deadLetters: {
          next: ({ event }) => expectTypeOf(event).toEqualTypeOf<EventOf<'monitor.event_stream'>>(),
        },
      }),
    )
    expectTypeOf(narrowed).toEqualTypeOf<Observable<EventOf<'monitor.event_stream'>>>()
  })
})

describe('deliver, order by key', () => {
  const byLetter = { key: (event: string) => event.slice(0, 1) }

  it('handles events of one key one after another, and different keys side by side', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const values = { a: 'a1', b: 'a2', c: 'b1' }
      const { handler } = working(scheduler, { a1: 5, a2: 1, b1: 1 })
      const handled = cold('           abc--|', values).pipe(deliver(handler, byLetter))
      expectObservable(handled).toBe('---c-a(b|)', values)
    }))

  it('does not let a key whose handler hangs block the others', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = working(scheduler, { a1: 1_000, b1: 2, b2: 2 })
      const options = { ...byLetter, concurrency: 2 }
      of('a1', 'a2', 'a3', 'b1', 'b2', 'c1').pipe(deliver(handler, options)).subscribe()
      flush()
      expect(calls).toEqual(['a1@0', 'b1@0', 'c1@2', 'b2@3', 'a2@1000', 'a3@1001'])
    }))

  it('serves keys round-robin', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = working(scheduler, {})
      of('a1', 'a2', 'a3', 'b1', 'b2', 'c1')
        .pipe(deliver(handler, { ...byLetter, concurrency: 1 }))
        .subscribe()
      flush()
      expect(calls).toEqual(['a1@0', 'b1@1', 'c1@2', 'a2@3', 'b2@4', 'a3@5'])
    }))

  it('keeps the order of a key across retries and dead letters', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = failing(scheduler, { a1: 1, a2: 9 })
      const { deadLetters } = deadLettering(scheduler)
      of('a1', 'a2', 'a3')
        .pipe(deliver(handler, { ...full, ...byLetter, retries: 1, deadLetters }))
        .subscribe()
      flush()
      expect(calls).toEqual(['a1@0', 'a1@3', 'a2@4', 'a2@7', 'a3@8'])
    }))

  it('errors with what a key function throws, once the events in flight have ended', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('                           ab----')
      const { handler } = working(scheduler, { a: 4 })
      const key = (event: string) => (event === 'b' ? fail() : event)
      expectObservable(source.pipe(deliver(handler, { key }))).toBe('----(a#)', undefined, refused)
      expectSubscriptions(source.subscriptions).toBe('^!')
    }))
})

describe('deliver, retries', () => {
  it('retries a failed handler after delays that double up to maxDelay', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = failing(scheduler, { a: 4 })
      of('a').pipe(deliver(handler, full)).subscribe()
      flush()
      // Each call takes 1 ms; delays of 2, 4, 8 and 8.
      expect(calls).toEqual(['a@0', 'a@3', 'a@8', 'a@17', 'a@26'])
    }))

  it('waits a random part of the backoff', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = failing(scheduler, { a: 2 })
      of('a')
        .pipe(deliver(handler, { initialDelay: 8, maxDelay: 12, random: () => 0.25 }))
        .subscribe()
      flush()
      expect(calls).toEqual(['a@0', 'a@3', 'a@7'])
    }))

  it('retries a handler that threw as one that rejected', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      let calls = 0
      const handler = () => (++calls < 3 ? fail() : undefined)
      expectObservable(cold('a|').pipe(deliver(handler, full))).toBe('------(a|)')
    }))

  it('waits for the retryAfter of the error', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = failing(scheduler, { a: 1 }, new Refused('later', { retryAfter: 50 }))
      of('a').pipe(deliver(handler, full)).subscribe()
      flush()
      expect(calls).toEqual(['a@0', 'a@51'])
    }))

  it('ignores an invalid retryAfter', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = failing(
        scheduler,
        { a: 1 },
        new Refused('later', { retryAfter: Number.NaN }),
      )
      of('a').pipe(deliver(handler, full)).subscribe()
      flush()
      expect(calls).toEqual(['a@0', 'a@3'])
    }))

  it('caps the delay at the limit of setTimeout', () => {
    const scheduler = new VirtualTimeScheduler()
    const handler = () => {
      throw new Refused('later', { retryAfter: Infinity })
    }
    const subscription = of('a').pipe(deliver(handler, { scheduler })).subscribe()
    expect(scheduler.actions.map((action) => action.delay)).toEqual([2 ** 31 - 1])
    subscription.unsubscribe()
  })

  it('counts an event that waits for a retry as in flight', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = failing(scheduler, { a: 1 })
      of('a', 'b')
        .pipe(deliver(handler, { ...full, concurrency: 1 }))
        .subscribe()
      flush()
      expect(calls).toEqual(['a@0', 'a@3', 'b@4'])
    }))

  it('schedules retries on its scheduler, which may be synchronous', () => {
    let calls = 0
    const got: number[] = []
    const handler = () => (++calls < 3 ? fail() : undefined)
    of(0)
      .pipe(deliver(handler, { initialDelay: 0, scheduler: queueScheduler }))
      .subscribe((n) => got.push(n))
    expect([calls, got]).toEqual([3, [0]])
  })

  it('does not mistake a running second attempt for a pending retry', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const calls = new Set<string>()
      const handler = (event: string) => {
        if (event === 'b')
          return new Work(scheduler, 2, { error: new Refused('for good', { retryable: false }) })
        if (calls.has(event)) return new Work(scheduler, 6)
        calls.add(event)
        return fail()
      }
      const handled = cold('(ab)').pipe(deliver(handler, { initialDelay: 0, scheduler: queueScheduler }))
      expectObservable(handled).toBe('------(a#)', undefined, new Refused('for good', { retryable: false }))
    }))

  it('gives up after four retries by default', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const { handler, calls } = failing(scheduler, { a: 9 })
      const { deadLetters, letters } = deadLettering(scheduler)
      of('a')
        .pipe(deliver(handler, { ...full, deadLetters }))
        .subscribe()
      flush()
      expect(calls).toHaveLength(5)
      expect(letters).toEqual(['a after 5: Error: no@27'])
    }))

  it('never gives up with retries of Infinity', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = failing(scheduler, { a: 20 })
      const handled = cold('a|').pipe(deliver(handler, { ...full, maxDelay: 1, retries: Infinity }))
      // 21 calls and 20 delays of 1 ms.
      expectObservable(handled).toBe('41ms (a|)')
    }))

  it('does not retry with retries of 0', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = failing(scheduler, { a: 1 })
      expectObservable(cold('a|').pipe(deliver(handler, { ...full, retries: 0 }))).toBe(
        '-#',
        undefined,
        refused,
      )
    }))

  it('does not retry after an error with retryable false', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const final = new Refused('for good', { retryable: false })
      const { handler } = failing(scheduler, { a: 1 }, final)
      expectObservable(cold('a|').pipe(deliver(handler, full))).toBe('-#', undefined, final)
    }))

  it('decides with the option retryable whether to retry', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = failing(scheduler, { a: 1 }, new Refused('for good', { retryable: false }))
      const retryable = (error: unknown) => error instanceof Refused
      expectObservable(cold('a|').pipe(deliver(handler, { ...full, retryable }))).toBe('----(a|)')
      const unwilling = failing(scheduler, { a: 1 })
      const never = deliver(unwilling.handler, { ...full, retryable: () => false })
      expectObservable(cold('a|').pipe(never)).toBe('-#', undefined, refused)
    }))

  it('errors with what its callbacks throw', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      for (const options of [{ retryable: fail }, { random: fail }]) {
        const { handler } = failing(scheduler, { a: 1 }, 'an error of the handler')
        expectObservable(cold('a|').pipe(deliver(handler, options))).toBe('-#', undefined, refused)
      }
    }))
})

describe('deliver, dead letters', () => {
  it('dead-letters an event with its error and continues with the others', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler } = failing(scheduler, { a: 2 })
      const { deadLetters, letters } = deadLettering(scheduler)
      const handled = cold('           ab|').pipe(deliver(handler, { ...full, retries: 1, deadLetters }))
      expectObservable(handled).toBe('--b-|')
      flush()
      expect(letters).toEqual(['a after 2: Error: no@4'])
    }))

  it('dead-letters an event at once after an error with retryable false', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler } = failing(scheduler, { a: 1 }, new Refused('for good', { retryable: false }))
      const { deadLetters, letters } = deadLettering(scheduler)
      expectObservable(cold('a|').pipe(deliver(handler, { ...full, deadLetters }))).toBe('-|')
      flush()
      expect(letters).toEqual(['a after 1: Error: for good@1'])
    }))

  it('keeps an event in flight until its dead letter is stored', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler, calls } = failing(scheduler, { a: 1 })
      const deadLetters = { next: () => new Work(scheduler, 5) }
      const { values, notes } = acknowledgeable(() => scheduler.now())
      const options = { concurrency: 1, retries: 0, deadLetters }
      const handled = cold('(ab|)', values).pipe(deliver(ofPosition(handler), options))
      expectObservable(handled).toBe('-------(b|)', values)
      flush()
      expect(notes).toEqual(['received a@0', 'received b@0', 'acknowledged a@6', 'acknowledged b@7'])
      expect(calls).toEqual(['a@0', 'b@6'])
    }))

  it.each<[string, (scheduler: SchedulerLike) => DeliverOptions<{ readonly position: string }>, string]>([
    ['throws', () => ({ deadLetters: { next: fail } }), '-#'],
    [
      'rejects',
      (scheduler) => ({ deadLetters: { next: () => new Work(scheduler, 3, { error: refused }) } }),
      '----#',
    ],
    ['is a Subject without subscribers', () => ({ deadLetters: new Subject() }), '-#'],
  ])('errors when deadLetters %s, and does not acknowledge the event', (_, options, end) =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler } = failing(scheduler, { a: 1 })
      const { values, notes } = acknowledgeable(() => scheduler.now())
      const settings = { retries: 0, ...options(scheduler) }
      expectObservable(cold('a|', values).pipe(deliver(ofPosition(handler), settings))).toBe(
        end,
        undefined,
        refused,
      )
      flush()
      expect(notes).toEqual(['received a@0', `released a@${end.length - 1}`])
    }),
  )

  it('does not acknowledge when a subscriber of the deadLetters Subject unsubscribes from the result', () => {
    const letters = new Subject<DeadLetter<{ readonly position: string }>>()
    const { values, notes } = acknowledgeable(() => 0)
    const source = new Subject<{ readonly position: string }>()
    const subscription = source.pipe(deliver(fail, { retries: 0, deadLetters: letters })).subscribe()
    letters.subscribe(() => subscription.unsubscribe())
    source.next(values.a)
    expect(source.observed).toBe(false)
    expect(notes).toEqual(['received a@0', 'released a@0'])
  })
})

describe('deliver, failing without dead letters', () => {
  it('waits for the running handlers, starts no other event, and errors', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const source = cold('                           abc-----')
      const calls: string[] = []
      const handler = (event: string) => {
        calls.push(event)
        return new Work(scheduler, event === 'a' ? 4 : 6, event === 'a' ? { error: refused } : {})
      }
      const handled = source.pipe(deliver(handler, { concurrency: 2, retries: 0 }))
      expectObservable(handled).toBe('                -------(b#)', undefined, refused)
      expectSubscriptions(source.subscriptions).toBe('^---!')
      flush()
      expect(calls).toEqual(['a', 'b'])
    }))

  it('retries nothing, neither pending retries nor handlers that fail later', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const final = new Refused('for good', { retryable: false })
      const calls: string[] = []
      const handler = (event: string) => {
        calls.push(event)
        if (event === 'a') return new Work(scheduler, 1, { error: refused })
        if (event === 'b') return new Work(scheduler, 5, { error: final })
        return new Work(scheduler, 7, { error: refused })
      }
      const patient = { initialDelay: 100, maxDelay: 100, random: () => 1 }
      expectObservable(cold('(abc)').pipe(deliver(handler, patient))).toBe('-------#', undefined, final)
      flush()
      expect(calls).toEqual(['a', 'b', 'c'])
    }))

  it('errors with the first of several failures', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const times: Record<string, number> = { a: 5, b: 3 }
      const handler = (event: string) => new Work(scheduler, times[event] ?? 0, { error: event })
      expectObservable(cold('(ab)').pipe(deliver(handler, { retries: 0 }))).toBe('-----#', undefined, 'b')
    }))

  it('emits and acknowledges events that are handled after the failure', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const handler = (event: string) =>
        event === 'a' ? new Work(scheduler, 1, { error: refused }) : new Work(scheduler, 3)
      const { values, notes } = acknowledgeable(() => scheduler.now())
      const handled = cold('(ab)', values).pipe(deliver(ofPosition(handler), { retries: 0 }))
      expectObservable(handled).toBe('---(b#)', values, refused)
      flush()
      expect(notes).toEqual(['received a@0', 'received b@0', 'released a@1', 'acknowledged b@3'])
    }))
})

describe('deliver, failing while handlers hang', () => {
  /** Fails at 1 ms for `a`, and takes 99 ms for the others; records their abort reasons. */
  function hanging(scheduler: SchedulerLike) {
    const reasons: unknown[] = []
    const handler = (event: string, signal: AbortSignal) => {
      if (event === 'a') return new Work(scheduler, 1, { error: refused })
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      return new Work(scheduler, 99)
    }
    return { reasons, handler }
  }

  it('aborts them at the drainTimeout after the failure, which is the cause of the error', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler, reasons } = hanging(scheduler)
      const handled = cold('(abc)').pipe(deliver(handler, { retries: 0, drainTimeout: 5 }))
      const error = new DrainTimeoutError(2, 5, { cause: refused })
      expectObservable(handled).toBe('------#', undefined, error)
      flush()
      expect(reasons).toEqual([error, error])
      expect(reasons).toHaveProperty('0.cause', refused)
    }))

  it('errors at the drainTimeout when a key function throws', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const options = { key: (event: string) => (event === 'c' ? fail() : event), drainTimeout: 5 }
      const handled = cold('bc---').pipe(deliver(hanging(scheduler).handler, options))
      expectObservable(handled).toBe('------#', undefined, new DrainTimeoutError(1, 5, { cause: refused }))
    }))

  it('errors at the drainTimeout when an event cannot be acknowledged', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { values } = acknowledgeable(() => scheduler.now(), {
        received: (position) => void (position === 'c' && fail()),
      })
      const { handler } = hanging(scheduler)
      const handled = cold('bc---', values).pipe(
        deliver(({ position }, signal) => handler(position, signal), { drainTimeout: 5 }),
      )
      expectObservable(handled).toBe('------#', undefined, new DrainTimeoutError(1, 5, { cause: refused }))
    }))

  it('does not restart the drainTimeout when it is aborted as well', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const stopping = new AbortController()
      scheduler.schedule(() => stopping.abort(), 4)
      const options = { retries: 0, drainTimeout: 5, signal: stopping.signal }
      const handled = cold('(ab)').pipe(deliver(hanging(scheduler).handler, options))
      expectObservable(handled).toBe('------#', undefined, new DrainTimeoutError(1, 5, { cause: refused }))
    }))

  it('waits for them without a limit with a drainTimeout of Infinity', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const options = { retries: 0, drainTimeout: Infinity }
      const handled = cold('(ab)').pipe(deliver(hanging(scheduler).handler, options))
      expectObservable(handled).toBe('99ms (b#)', undefined, refused)
    }))

  it('aborts them at the drainTimeout after an error of the source, too', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler, reasons } = hanging(scheduler)
      const source = cold<string>('-b-#', undefined, refused)
      const error = new DrainTimeoutError(1, 5, { cause: refused })
      expectObservable(source.pipe(deliver(handler, { drainTimeout: 5 }))).toBe('--------#', undefined, error)
      flush()
      expect(reasons).toHaveProperty('0.cause', refused)
    }))

  it('handles buffered events after an error of the source, however long all of them take', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold<string>('(bcd#)', undefined, refused)
      const handler = () => new Work(scheduler, 4)
      const handled = source.pipe(deliver(handler, { concurrency: 1, drainTimeout: 5 }))
      expectObservable(handled).toBe('----b---c---(d#)', undefined, refused)
    }))

  it('aborts a hanging handler behind others after an error of the source', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold<string>('(bcd#)', undefined, refused)
      const handler = (event: string) => new Work(scheduler, event === 'd' ? 99 : 4)
      const handled = source.pipe(deliver(handler, { concurrency: 1, drainTimeout: 5 }))
      expectObservable(handled).toBe(
        '----b---c----#',
        undefined,
        new DrainTimeoutError(1, 5, { cause: refused }),
      )
    }))

  it('waits for them without a limit when the source has completed, which is no failure', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const handled = cold<string>('(b|)').pipe(deliver(hanging(scheduler).handler, { drainTimeout: 5 }))
      expectObservable(handled).toBe('99ms (b|)')
    }))
})

describe('deliver, acknowledgement', () => {
  it('receives a value when it arrives, and acknowledges it once it is handled, before it is emitted', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler, calls } = working(scheduler, { a: 2, b: 1 })
      const { values, notes } = acknowledgeable(() => scheduler.now())
      const handled = cold('ab---|', values).pipe(
        deliver(ofPosition(handler), { concurrency: 1 }),
        tap(({ position }) => void notes.push(`emitted ${position}`)),
      )
      expectObservable(handled).toBe('--ab-|', values)
      flush()
      expect(notes).toEqual([
        'received a@0',
        'received b@1',
        'acknowledged a@2',
        'emitted a',
        'acknowledged b@3',
        'emitted b',
      ])
      expect(calls).toEqual(['a@0', 'b@2'])
    }))

  it('emits synchronously when the handler is synchronous', () => {
    const source = new Subject<string>()
    const emitted: string[] = []
    source.pipe(deliver(() => {})).subscribe((event) => emitted.push(event))
    source.next('a')
    expect(emitted).toEqual(['a'])
  })

  it('errors when a value cannot be acknowledged, and does not handle it', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const { values } = acknowledgeable(() => scheduler.now(), {
        received: (position) => void (position === 'b' && fail()),
      })
      const source = cold('                           abc', values)
      const { handler, calls } = working(scheduler, { a: 4 })
      const handled = source.pipe(deliver(ofPosition(handler)))
      expectObservable(handled).toBe('                ----(a#)', values, refused)
      expectSubscriptions(source.subscriptions).toBe('^!')
      flush()
      expect(calls).toEqual(['a@0'])
    }))

  it('errors with what an acknowledgement throws, and does not emit the value', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { values } = acknowledgeable(() => scheduler.now(), { acknowledge: fail })
      const handled = cold('a--', values).pipe(deliver(() => new Work(scheduler, 1)))
      expectObservable(handled).toBe('-#', undefined, refused)
    }))

  it('emits nothing where an acknowledgement unsubscribes', () => {
    const subscription = new Subscription()
    const { values } = acknowledgeable(() => 0, { acknowledge: () => subscription.unsubscribe() })
    const source = new Subject<{ readonly position: string }>()
    const emitted: unknown[] = []
    subscription.add(source.pipe(deliver(() => {})).subscribe((value) => emitted.push(value)))
    source.next(values.a)
    expect(emitted).toEqual([])
    expect(source.observed).toBe(false)
  })
})

describe('deliver, ends', () => {
  it('completes once all events are handled', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('                           (abc|)')
      const { handler } = working(scheduler, { a: 2, b: 2, c: 2 })
      const handled = source.pipe(deliver(handler, { concurrency: 1 }))
      expectObservable(handled).toBe('                --a-b-(c|)')
      expectSubscriptions(source.subscriptions).toBe('(^!)')
    }))

  it('completes with an empty source', () =>
    inVirtualTime(({ cold, expectObservable }) => {
      expectObservable(cold<string>('--|').pipe(deliver(() => {}))).toBe('--|')
    }))

  it('errors with the source once all earlier events are handled', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold<string>('                   ab#', undefined, refused)
      const { handler } = working(scheduler, { a: 4, b: 2 })
      const handled = source.pipe(deliver(handler, { concurrency: 1 }))
      expectObservable(handled).toBe('                ----a-(b#)', undefined, refused)
      expectSubscriptions(source.subscriptions).toBe('^-!')
    }))

  it('errors with the failure of a handler rather than that of the source', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = failing(scheduler, { a: 1 })
      const source = cold<string>('(a#)', undefined, 'an error of the source')
      expectObservable(source.pipe(deliver(handler, { retries: 0 }))).toBe('-#', undefined, refused)
    }))

  it('does not abort the signal of handlers that have ended', async () => {
    let given: AbortSignal | undefined
    const handler = (_: string, signal: AbortSignal) => {
      given = signal
    }
    await lastValueFrom(of('a').pipe(deliver(handler)))
    expect(given?.aborted).toBe(false)
  })
})

describe('deliver, unsubscribed', () => {
  it('unsubscribes from the source and emits nothing more', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('                           ab-c-')
      const { handler } = working(scheduler, { a: 1, b: 5 })
      expectObservable(source.pipe(deliver(handler)), '^---!').toBe('-a')
      expectSubscriptions(source.subscriptions).toBe('^---!')
    }))

  it('aborts the signal of the handlers, and acknowledges nothing that they handle after that', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const signals: AbortSignal[] = []
      const handler = (_: unknown, signal: AbortSignal) => {
        signals.push(signal)
        return new Work(scheduler, 5)
      }
      const { values, notes } = acknowledgeable(() => scheduler.now())
      const subscription = of(values.a).pipe(deliver(handler)).subscribe()
      scheduler.schedule(() => subscription.unsubscribe(), 2)
      flush()
      expect(signals.map((signal) => signal.aborted)).toEqual([true])
      expect(notes).toEqual(['received a@0', 'released a@2'])
    }))

  it('clears the timers of retries and of the drain', () => {
    const scheduler = new VirtualTimeScheduler()
    const stopping = new AbortController()
    const subscription = of('a')
      .pipe(deliver(fail, { scheduler, signal: stopping.signal }))
      .subscribe()
    stopping.abort()
    expect(scheduler.actions).toHaveLength(2)
    subscription.unsubscribe()
    expect(scheduler.actions).toEqual([])
  })

  it('may be unsubscribed within a handler, whether that returns or throws', () => {
    for (const then of [() => {}, fail]) {
      const { values, notes } = acknowledgeable(() => 0)
      const source = new Subject<{ readonly position: string }>()
      const log: string[] = []
      const subscription = new Subscription()
      const handler = () => {
        subscription.unsubscribe()
        then()
      }
      subscription.add(
        source.pipe(deliver(handler, { retries: 0 })).subscribe({
          next: ({ position }) => log.push(`emitted ${position}`),
          error: (error: unknown) => log.push(String(error)),
        }),
      )
      source.next(values.a)
      expect(log).toEqual([])
      expect(notes).toEqual(['received a@0', 'released a@0'])
      expect(source.observed).toBe(false)
    }
  })

  it('stops a synchronous source once the subscriber has enough', () => {
    let produced = 0
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed) subscriber.next(produced++)
    })
    const got: number[] = []
    endless
      .pipe(
        deliver(() => {}),
        take(2),
      )
      .subscribe((n) => got.push(n))
    expect(got).toEqual([0, 1])
    expect(produced).toBe(2)
  })
})

describe('deliver, aborted', () => {
  /** A signal that is aborted at this time. */
  function abortAt(scheduler: SchedulerLike, time: number): AbortSignal {
    const stopping = new AbortController()
    scheduler.schedule(() => stopping.abort(), time)
    return stopping.signal
  }

  it('unsubscribes from the source, waits for events in flight, starts no other, and completes', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const { values, notes } = acknowledgeable(() => scheduler.now())
      const source = cold('                           abcd-----', values)
      const { handler, calls } = working(scheduler, { a: 6, b: 4 })
      const signal = abortAt(scheduler, 3)
      const handled = source.pipe(deliver(ofPosition(handler), { concurrency: 2, signal }))
      expectObservable(handled).toBe('                -----b(a|)', values)
      expectSubscriptions(source.subscriptions).toBe('^--!')
      flush()
      expect(calls).toEqual(['a@0', 'b@1'])
      expect(notes.slice(-3)).toEqual(['released c@3', 'acknowledged b@5', 'acknowledged a@6'])
      expect(getEventListeners(signal, 'abort')).toEqual([])
    }))

  it('completes at once when nothing is in flight', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('                           a---')
      const signal = abortAt(scheduler, 2)
      expectObservable(source.pipe(deliver(() => {}, { signal }))).toBe('a-|')
      expectSubscriptions(source.subscriptions).toBe('^-!')
    }))

  it('does not subscribe when it is aborted before', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }) => {
      const source = cold('a')
      expectObservable(source.pipe(deliver(() => {}, { signal: AbortSignal.abort() }))).toBe('|')
      expectSubscriptions(source.subscriptions).toBe([])
    }))

  it('retries events in flight', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = failing(scheduler, { a: 2 })
      const signal = abortAt(scheduler, 2)
      expectObservable(cold('a-----').pipe(deliver(handler, { ...full, signal }))).toBe('---------(a|)')
    }))

  it('errors when a handler fails for good after the abort', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const handler = () => new Work(scheduler, 3, { error: refused })
      const signal = abortAt(scheduler, 1)
      expectObservable(cold('a--').pipe(deliver(handler, { retries: 0, signal }))).toBe(
        '---#',
        undefined,
        refused,
      )
    }))

  it('aborts the handlers at the drainTimeout, and reports how many were in flight', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const reasons: unknown[] = []
      const handler = (event: string, signal: AbortSignal) => {
        if (event === 'a') return new Work(scheduler, 4)
        signal.addEventListener('abort', () => reasons.push(signal.reason))
        return new Work(scheduler, 99)
      }
      const signal = abortAt(scheduler, 2)
      const handled = cold('(abcd)').pipe(deliver(handler, { concurrency: 3, signal, drainTimeout: 5 }))
      const error = new DrainTimeoutError(2, 5)
      expectObservable(handled).toBe('----a--#', undefined, error)
      flush()
      expect(reasons).toEqual([error, error])
      expect(error).toMatchObject({ name: 'DrainTimeoutError', cutOff: 2, drainTimeout: 5 })
      expect(error.message).toMatch(
        /^2 events were still being handled when the drainTimeout of 5 ms was over/,
      )
    }))

  it('cancels pending retries and saves at the drainTimeout', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const signal = abortAt(scheduler, 2)
      const options = { signal, drainTimeout: 5 }
      const asksToWait = () => new Work(scheduler, 1, { error: new Refused('later', { retryAfter: 50 }) })
      expectObservable(cold('a').pipe(deliver(asksToWait, options))).toBe(
        '-------#',
        undefined,
        new DrainTimeoutError(1, 5),
      )
    }))

  it('drains for 10 seconds by default, and without a limit with Infinity', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const { handler } = working(scheduler, { a: 20_000 })
      const signal = abortAt(scheduler, 1)
      const error = new DrainTimeoutError(1, 10_000)
      expectObservable(cold('a').pipe(deliver(handler, { signal }))).toBe('10001ms #', undefined, error)
      expectObservable(cold('a').pipe(deliver(handler, { signal, drainTimeout: Infinity }))).toBe('20s (a|)')
    }))

  it('starts no buffered event after the source has ended, and keeps the error of the source', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { handler, calls } = working(scheduler, { a: 4 })
      const options = { concurrency: 1, signal: abortAt(scheduler, 2) }
      expectObservable(cold('(ab|)').pipe(deliver(handler, options))).toBe('----(a|)')
      const broken = cold<string>('(ab#)', undefined, refused)
      expectObservable(broken.pipe(deliver(handler, options))).toBe('----(a#)', undefined, refused)
      flush()
      expect(calls).toEqual(['a@0', 'a@0'])
    }))

  it('reports the earlier failure as the cause at the drainTimeout', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const handler = (event: string) =>
        event === 'a' ? new Work(scheduler, 1, { error: refused }) : new Work(scheduler, 50)
      const errors: unknown[] = []
      of('a', 'b')
        .pipe(deliver(handler, { retries: 0, signal: abortAt(scheduler, 2), drainTimeout: 5 }))
        .subscribe({ error: (error: unknown) => errors.push(error) })
      flush()
      expect(errors).toEqual([new DrainTimeoutError(1, 5, { cause: refused })])
      expect(errors).toHaveProperty('0.cause', refused)
    }))

  it('completes before a source that errors with the same signal', () => {
    const stopping = new AbortController()
    const source = new Observable<string>((subscriber) => {
      stopping.signal.addEventListener('abort', () => subscriber.error(stopping.signal.reason))
    })
    const ends: string[] = []
    source.pipe(deliver(() => {}, { signal: stopping.signal })).subscribe({
      error: () => ends.push('error'),
      complete: () => ends.push('complete'),
    })
    stopping.abort()
    expect(ends).toEqual(['complete'])
  })

  it('may be aborted within the key function', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const stopping = new AbortController()
      const { handler } = working(scheduler, { a: 3 })
      const key = (event: string) => {
        if (event === 'b') stopping.abort()
        return event
      }
      expectObservable(cold('ab').pipe(deliver(handler, { key, signal: stopping.signal }))).toBe('---(a|)')
    }))
})

describe('deliver, its options', () => {
  const wrong: readonly (readonly [string, DeliverOptions<string>])[] = [
    ['concurrency', { concurrency: 0 }],
    ['concurrency', { concurrency: Infinity }],
    ['highWaterMark', { highWaterMark: 0 }],
    ['retries', { retries: -1 }],
    ['retries', { retries: 1.5 }],
    ['initialDelay', { initialDelay: -1 }],
    ['maxDelay', { maxDelay: Infinity }],
    ['drainTimeout', { drainTimeout: Number.NaN }],
    // @ts-expect-error no function
    ['key', { key: 'source' }],
    // @ts-expect-error no gate
    ['gate', { gate: {} }],
    // @ts-expect-error no function
    ['retryable', { retryable: true }],
    // @ts-expect-error no observer
    ['deadLetters.next', { deadLetters: {} }],
    // @ts-expect-error no function
    ['random', { random: 1 }],
    // @ts-expect-error a controller, not its signal
    ['signal', { signal: new AbortController() }],
  ]

  it.each(wrong)('refuses a wrong %s at the call', (name, options) => {
    expect(() => deliver<string>(() => {}, options)).toThrow(ArgumentError)
    expect(() => deliver<string>(() => {}, options)).toThrow(`${name} must be`)
  })

  it('refuses a handler that is no function at the call', () => {
    // @ts-expect-error no function
    expect(() => deliver('save')).toThrow('handler must be a function')
  })
})

describe('a retry behind deliver', () => {
  /** A source that ends by `end`, and records how many subscriptions were open at each new one. */
  function counted(end: (subscriber: Subscriber<number>, attempt: number) => void) {
    const openBefore: number[] = []
    let open = 0
    const source = new Observable<number>((subscriber) => {
      openBefore.push(open)
      open += 1
      end(subscriber, openBefore.length)
      return () => {
        open -= 1
      }
    })
    return { source, openBefore }
  }

  it('resubscribes after a failed handler when the source is closed', async () => {
    const { source, openBefore } = counted((subscriber, attempt) => subscriber.next(attempt))
    const handler = async (attempt: number) => {
      if (attempt === 1) throw new Error('not yet')
    }

    await firstValueFrom(source.pipe(deliver(handler, { retries: 0 }), retry(1)))

    expect(openBefore).toEqual([0, 0])
  })

  it('resubscribes after an error of the source when it is closed', async () => {
    const { source, openBefore } = counted((subscriber, attempt) =>
      queueMicrotask(() => (attempt < 3 ? subscriber.error(new Error('broken')) : subscriber.next(attempt))),
    )

    await firstValueFrom(
      source.pipe(
        deliver(() => {}),
        retry(2),
      ),
    )

    expect(openBefore).toEqual([0, 0, 0])
  })

  it('repeats after completion when the source is closed', async () => {
    const { source, openBefore } = counted((subscriber) => queueMicrotask(() => subscriber.complete()))

    await lastValueFrom(
      source.pipe(
        deliver(() => {}),
        repeat(2),
      ),
      { defaultValue: 0 },
    )

    expect(openBefore).toEqual([0, 0])
  })
})
