import { interval, map, Observable, Subject, tap } from 'rxjs'
import type { SchedulerAction, SchedulerLike } from 'rxjs'
import type { RunHelpers, TestScheduler } from 'rxjs/testing'
import { deliver, DrainTimeoutError, Gate, gateOf, underGate } from 'rivulet/operators'
import type { DeadLetter, DeliverOptions } from 'rivulet/operators'
import { describe, it } from 'vitest'
import { Refused, Work } from './handlers.ts'
import { inVirtualTime } from './virtual-time.ts'

type MarbleTest = (helpers: RunHelpers, scheduler: TestScheduler) => void

const refused = new Refused('no')

/** The maximum delay of the backoff instead of a random one. */
const full = { initialDelay: 2, maxDelay: 8, random: () => 1 }

/** A handler that takes 1 ms and fails the given number of times. */
function failing(scheduler: SchedulerLike, times: number) {
  let left = times
  return () => new Work(scheduler, 1, left-- > 0 ? { error: refused } : {})
}

/** A source that reads a letter each ms, unless its gate is closed. `read` emits each. */
function reading(scheduler: SchedulerLike, letters: string) {
  const read = new Subject<string>()
  const source = new Observable<string>((subscriber) => {
    const gate = gateOf(subscriber)
    let next = 0
    return interval(1, scheduler).subscribe(() => {
      if (gate?.closed === true) return
      const letter = letters[next++]
      if (letter === undefined) return subscriber.complete()
      read.next(letter)
      subscriber.next(letter)
    })
  })
  return { source, read }
}

/** Every option, and its effect on when events are emitted. */
const EVERY_OPTION: {
  readonly [Option in keyof DeliverOptions<string>]-?: Readonly<Record<string, MarbleTest>>
} = {
  concurrency: {
    'limits how many events are in flight'({ cold, expectObservable }, scheduler) {
      const handler = () => new Work(scheduler, 3)
      expectObservable(cold('abc------|').pipe(deliver(handler, { concurrency: 1 }))).toBe('---a--b--(c|)')
      expectObservable(cold('abc------|').pipe(deliver(handler, { concurrency: 2 }))).toBe('---ab-c--|')
      expectObservable(cold('abc------|').pipe(deliver(handler, { concurrency: 3 }))).toBe('---abc---|')
    },
  },
  key: {
    'delays an event until the one before it with the same key is handled'(
      { cold, expectObservable },
      scheduler,
    ) {
      const values = { a: 'x1', b: 'x2', c: 'y1' }
      const handler = () => new Work(scheduler, 3)
      const key = (event: string) => event.slice(0, 1)
      expectObservable(cold('abc|', values).pipe(deliver(handler, { key }))).toBe('---a-c(b|)', values)
    },
  },
  highWaterMark: {
    'pauses the source when so many events are buffered, and resumes it at half of them'(
      { expectObservable },
      scheduler,
    ) {
      const handler = () => new Work(scheduler, 4)
      const { source, read } = reading(scheduler, 'abcdefghij')
      const handled = source.pipe(deliver(handler, { concurrency: 1, highWaterMark: 4 }))
      expectObservable(read).toBe('   -abcdef------gh------ij')
      expectObservable(handled).toBe('-----a---b---c---d---e---f---g---h---i---(j|)')
    },
  },
  gate: {
    'pauses a source that was subscribed elsewhere'({ expectObservable }, scheduler) {
      const gate = new Gate()
      const handler = () => new Work(scheduler, 4)
      const { source } = reading(scheduler, 'abcdef')
      const shared = new Subject<string>()
      const handled = shared.pipe(deliver(handler, { concurrency: 1, highWaterMark: 2, gate }))
      const read = source.pipe(underGate(gate), tap(shared))
      // The downstream one subscribes first.
      expectObservable(handled).toBe('-----a---b---c---d---e---(f|)')
      expectObservable(read).toBe('   -abc-d---e---f---|')
    },
  },
  retries: {
    'limits how often a handler is retried'({ cold, expectObservable }, scheduler) {
      const handled = cold('           a').pipe(deliver(failing(scheduler, 9), { ...full, retries: 2 }))
      expectObservable(handled).toBe('---------#', undefined, refused)
    },
  },
  retryable: {
    'decides after which errors'({ cold, expectObservable }, scheduler) {
      const retryable = (error: unknown) => error !== refused
      const handled = cold('           a').pipe(deliver(failing(scheduler, 9), { ...full, retryable }))
      expectObservable(handled).toBe('-#', undefined, refused)
    },
  },
  initialDelay: {
    'is the delay before the first retry'({ cold, expectObservable }, scheduler) {
      const config = { ...full, initialDelay: 5 }
      const handled = cold('           a|').pipe(deliver(failing(scheduler, 1), config))
      expectObservable(handled).toBe('-------(a|)')
    },
  },
  maxDelay: {
    'is the maximum delay'({ cold, expectObservable }, scheduler) {
      const config = { ...full, maxDelay: 3 }
      // 1 + 2 + 1 + 3 + 1 + 3 + 1
      const handled = cold('           a|').pipe(deliver(failing(scheduler, 3), config))
      expectObservable(handled).toBe('------------(a|)')
    },
  },
  random: {
    'selects a part of the delay'({ cold, expectObservable }, scheduler) {
      const config = { ...full, initialDelay: 8, random: () => 0.25 }
      const handled = cold('           a|').pipe(deliver(failing(scheduler, 1), config))
      expectObservable(handled).toBe('----(a|)')
    },
  },
  deadLetters: {
    'get the events that failed for good, which are not emitted'({ cold, expectObservable }, scheduler) {
      const deadLetters = new Subject<DeadLetter<string>>()
      const letters = deadLetters.pipe(map(({ event }) => event))
      const handled = cold('           ab|').pipe(deliver(failing(scheduler, 1), { retries: 0, deadLetters }))
      expectObservable(letters).toBe('-a')
      expectObservable(handled).toBe('--(b|)')
    },
  },
  signal: {
    'completes the result once the events in flight have ended'(
      { cold, expectObservable, expectSubscriptions },
      scheduler,
    ) {
      const stopping = new AbortController()
      scheduler.schedule(() => stopping.abort(), 2)
      const source = cold('                           ab-c')
      const handled = source.pipe(deliver(() => new Work(scheduler, 4), { signal: stopping.signal }))
      expectObservable(handled).toBe('                ----a(b|)')
      expectSubscriptions(source.subscriptions).toBe('^-!')
    },
  },
  drainTimeout: {
    'limits how long that may take'({ cold, expectObservable }, scheduler) {
      const stopping = new AbortController()
      scheduler.schedule(() => stopping.abort(), 2)
      const handler = (event: string) => new Work(scheduler, event === 'a' ? 4 : 9)
      const config = { drainTimeout: 3, signal: stopping.signal }
      const handled = cold('           ab-c').pipe(deliver(handler, config))
      expectObservable(handled).toBe('----a#', undefined, new DrainTimeoutError(1, 3))
    },
    'limits how long the others may take when one has failed'({ cold, expectObservable }, scheduler) {
      const handler = (event: string) =>
        event === 'a' ? new Work(scheduler, 2, { error: refused }) : new Work(scheduler, 9)
      const handled = cold('           ab--').pipe(deliver(handler, { retries: 0, drainTimeout: 3 }))
      expectObservable(handled).toBe('-----#', undefined, new DrainTimeoutError(1, 3, { cause: refused }))
    },
  },
  scheduler: {
    'schedules retries and the drainTimeout'({ cold, expectObservable }, scheduler) {
      const slow = {
        now: () => scheduler.now(),
        schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T) {
          return scheduler.schedule(work, 2 * delay, state)
        },
      }
      const handled = cold('           a|').pipe(deliver(failing(scheduler, 1), { ...full, scheduler: slow }))
      expectObservable(handled).toBe('------(a|)')
      const stopping = new AbortController()
      scheduler.schedule(() => stopping.abort(), 1)
      const config = { signal: stopping.signal, drainTimeout: 3, scheduler: slow }
      const hanging = cold('           a').pipe(deliver(() => new Work(scheduler, 9), config))
      expectObservable(hanging).toBe('-------#', undefined, new DrainTimeoutError(1, 3))
    },
  },
}

describe.each(Object.entries(EVERY_OPTION))('deliver, its option %s', (_name, tests) => {
  it.each(Object.entries(tests))('%s', (_sentence, test) => inVirtualTime(test))
})
