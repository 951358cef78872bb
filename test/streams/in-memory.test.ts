import {
  EMPTY,
  from,
  lastValueFrom,
  map,
  NEVER,
  Observable,
  of,
  Subject,
  switchMap,
  take,
  throwError,
  toArray,
} from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { ResearchEvent } from 'rivulet'
import { Gate, gateOf, underGate } from 'rivulet/operators'
import { inMemory, ProcessError } from 'rivulet/streams'
import type { InMemoryOptions, ProcessFunctions } from 'rivulet/streams'
import { change } from '../operators/events.ts'
import { inVirtualTime } from '../operators/virtual-time.ts'

interface Count {
  readonly seen: number
}

/** Counts the entries of each source, and emits each count. */
const counting: ProcessFunctions<Count> = {
  key: (entry) => entry.source,
  init: () => ({ seen: 0 }),
  event: ({ seen }, _entry, context) => {
    context.set({ seen: seen + 1 })
    context.append({ type: 'unknown', data: seen + 1 })
  },
}

/** Emits that a source is silent, so many ms after its last event. */
function silence(after: number): ProcessFunctions<Count> {
  return {
    ...counting,
    event: (_state, _entry, context) => context.timer('silence', context.now() + after),
    timer: (_state, due, context) => context.append({ type: 'unknown', data: due }),
  }
}

const data = map(({ data: value }: ResearchEvent) => value)

/** The data of the output of these events, one after the other. */
const dataOf = (
  events: readonly ResearchEvent[],
  functions: ProcessFunctions<Count> = counting,
  options: InMemoryOptions = {},
) => lastValueFrom(from(events).pipe(inMemory('p', functions, options), data, toArray()))

const failing = (problem: string): ProcessFunctions<Count> => ({
  ...counting,
  event: (state, entry, context) => {
    counting.event(state, entry, context)
    if (entry.id === 'bad') throw new Error(problem)
  },
})

describe('a process in memory', () => {
  it('has a state for each key, and each subscription begins anew', async () => {
    const operator = inMemory('p', counting)
    const source = of(change('1', 'a'), change('2', 'b'), change('3', 'a'))
    for (const _ of [1, 2]) {
      expect(await lastValueFrom(source.pipe(operator, data, toArray()))).toEqual([1, 1, 2])
    }
  })

  it('emits events of its own source, with their cause', async () => {
    const [event] = await lastValueFrom(of(change('1')).pipe(inMemory('p', counting), toArray()))
    expect(event).toMatchObject({
      source: '/processes/p',
      via: 'process',
      time: null,
      cause: { process: 'p', source: '/v1/monitors/m', id: '1', revision: 1, hops: 1 },
    })
  })

  it('keeps nothing that a function changes without `set`, and emits nothing that it changes later', async () => {
    const shared = { list: [1] }
    const functions: ProcessFunctions<{ list: number[] }> = {
      key: () => 'k',
      init: () => shared,
      event: (state, _entry, context) => {
        state.list.push(2)
        context.append({ type: 'unknown', data: state.list })
        state.list.push(3)
      },
    }
    const output = lastValueFrom(of(change('1'), change('2')).pipe(inMemory('p', functions), data, toArray()))
    expect(await output).toEqual([
      [1, 2],
      [1, 2],
    ])
    expect(shared).toEqual({ list: [1] })
  })

  it('does not receive its own events, and those of another process up to the 16th hop', async () => {
    const caused = (process: string, hops: number): ResearchEvent => ({
      ...change(`${process}${hops}`),
      cause: { process, source: '/s', id: '1', revision: 1, hops },
    })
    expect(await dataOf([caused('p', 1), caused('q', 15)])).toEqual([1])
    await expect(dataOf([caused('q', 16)])).rejects.toThrow('17th in a row')
  })

  it('fires a timer while the source is silent', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('a-b------|', { a: change('1'), b: change('2') })
      const result = source.pipe(inMemory('p', silence(3), { scheduler }), data)
      expectObservable(result).toBe('-----x---|', { x: 5 })
      expectSubscriptions(source.subscriptions).toBe('^--------!')
    }))

  it('fires a timer of the watermark as late as events may be', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const functions: ProcessFunctions<Count> = {
        ...silence(3),
        lateness: 4,
        event: (_state, _entry, context) =>
          context.timer('silence', context.now('event') + 7, { clock: 'event' }),
      }
      const event = { ...change('1'), received: new Date(0).toISOString() }
      const result = cold('a--------|', { a: event }).pipe(inMemory('p', functions, { scheduler }), data)
      expectObservable(result).toBe('-------x-|', { x: 3 })
    }))

  it('moves the time with the entries of a log alone', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const entry = (id: string, recorded: number) => ({
        ...change(id),
        recorded,
        revision: 1,
        backfill: false,
      })
      const source = cold('a-----b--|', { a: entry('1', 1), b: entry('2', 60) })
      expectObservable(source.pipe(inMemory('p', silence(3), { scheduler }), data)).toBe('------x--|', {
        x: 4,
      })
    }))

  it('removes a state that was not set for long', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const events = { a: change('1'), b: change('2'), c: change('3') }
      const operator = inMemory('p', { ...counting, timeToLive: 4 }, { scheduler })
      expectObservable(cold('a--b----c|', events).pipe(operator, data)).toBe('x--y----z|', {
        x: 1,
        y: 2,
        z: 1,
      })
    }))

  it('ends the source and its timers when it is unsubscribed', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions }, scheduler) => {
      const source = cold('a-------', { a: change('1') })
      expectObservable(source.pipe(inMemory('p', silence(5), { scheduler })), '^--!').toBe('----')
      expectSubscriptions(source.subscriptions).toBe('^--!')
    }))

  it('ends a source that emits while it is being subscribed', () => {
    let emitted = 0
    const endless = new Observable<ResearchEvent>((subscriber) => {
      while (!subscriber.closed) subscriber.next(change(`${(emitted += 1)}`))
    })
    const taken: unknown[] = []
    endless.pipe(inMemory('p', counting), data, take(2)).subscribe((value) => taken.push(value))
    expect([taken, emitted]).toEqual([[1, 2], 2])
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
        inMemory('p', counting),
        data,
        underGate(gate),
      )
      .subscribe()
    begin.next()
    expect(gates).toEqual([gate])
  })

  it('processes an event that its output causes after the rest of that output', () => {
    const source = new Subject<ResearchEvent>()
    const twice: ProcessFunctions<Count> = {
      ...counting,
      event: (state, entry, context) => {
        counting.event(state, entry, context)
        context.append({ type: 'unknown', data: entry.id })
      },
    }
    const seen: unknown[] = []
    source.pipe(inMemory('p', twice), data).subscribe({
      next: (value) => {
        seen.push(value)
        if (value !== 1) return
        source.next(change('second'))
        source.complete()
      },
      complete: () => seen.push('complete'),
    })
    source.next(change('first'))
    expect(seen).toEqual([1, 'first', 2, 'second', 'complete'])
  })

  it('fails with the source, and completes with it', async () => {
    const failed = throwError(() => new Error('cut')).pipe(inMemory('p', counting))
    await expect(lastValueFrom(failed)).rejects.toThrow('cut')
    expect(await lastValueFrom(EMPTY.pipe(inMemory('p', counting), toArray()))).toEqual([])
  })

  it('fails with what its function threw, after the output before that', async () => {
    const seen: unknown[] = []
    const result = of(change('1'), change('bad'), change('2')).pipe(inMemory('p', failing('no')), data)
    const error = await new Promise((resolve) =>
      result.subscribe({ next: (value) => seen.push(value), error: resolve }),
    )
    expect(error).toBeInstanceOf(ProcessError)
    expect(error).toMatchObject({
      message:
        'the process "p" failed at the event "bad" of /v1/monitors/m, key "/v1/monitors/m": its function threw Error: no',
      process: 'p',
      key: '/v1/monitors/m',
      cause: new Error('no'),
    })
    expect(seen).toEqual([1])
  })

  it('goes on after a failure that it reports, with nothing of it kept', async () => {
    const messages: string[] = []
    const functions = { ...failing('no'), onError: 'dead-letter' } as const
    const events = [change('1'), change('bad'), change('2')]
    expect(
      await dataOf(events, functions, { onDeadLetter: ({ message }) => messages.push(message) }),
    ).toEqual([1, 2])
    expect(messages).toEqual([expect.stringContaining('its function threw Error: no')])
  })

  it('fails with what the report of a failure throws', async () => {
    const onDeadLetter = () => {
      throw new Error('full')
    }
    await expect(
      dataOf([change('bad')], { ...failing('no'), onError: 'dead-letter' }, { onDeadLetter }),
    ).rejects.toThrow('full')
  })

  it('refuses events of more keys than it may keep, and goes on with those that it has', async () => {
    const events = [change('1', 'a'), change('2', 'b'), change('3', 'c'), change('4', 'a')]
    await expect(dataOf(events, counting, { maxKeys: 2 })).rejects.toThrow(
      'of 2 keys: at most so many are kept',
    )
    const keys: unknown[] = []
    const onDeadLetter = ({ key }: ProcessError) => keys.push(key)
    const functions = { ...counting, onError: 'dead-letter' } as const
    expect(await dataOf(events, functions, { maxKeys: 2, onDeadLetter })).toEqual([1, 1, 2])
    expect(keys).toEqual(['/v1/monitors/c'])
  })

  it('keeps no more timers of keys without a state', async () => {
    const timers = dataOf([change('1', 'a'), change('2', 'b')], silence(3), { maxKeys: 1 })
    await expect(timers).rejects.toThrow('of 1 keys')
  })

  it.each<[string, Partial<ProcessFunctions<Count>>, string]>([
    ['a promise', { event: async () => {} }, 'functions of a process are synchronous'],
    [
      'a state that is not JSON',
      { event: (_s, _e, context) => context.set(Object(1n)) },
      'its state is not JSON',
    ],
    [
      'a large state',
      { maxStateBytes: 8, event: (_s, _e, context) => context.set({ seen: 1_000_000 }) },
      'over the limit of 8',
    ],
    [
      'an event that is not JSON',
      { event: (_s, _e, context) => context.append({ type: 'unknown', data: 1n }) },
      'the event that it appends is not JSON',
    ],
    [
      'a timer without a function for it',
      { event: (_s, _e, context) => context.timer('t', 5) },
      'and has no function `timer`',
    ],
    [
      'a key that is none',
      { key: () => 'k'.repeat(1_025) },
      'its key must be a text of up to 1024 characters',
    ],
  ])('refuses %s, as over a log', async (_what, functions, message) => {
    await expect(dataOf([change('1')], { ...counting, ...functions })).rejects.toThrow(message)
  })

  it('refuses invalid arguments at the call', () => {
    expect(() => inMemory('', counting)).toThrow('name')
    expect(() => inMemory('p', { ...counting, lateness: -1 })).toThrow('lateness')
    expect(() => inMemory('p', counting, { maxKeys: 0 })).toThrow('maxKeys')
    expect(() => inMemory('p', { ...counting, onError: 'dead-letter' })).toThrow('onDeadLetter')
    expect(() => NEVER.pipe(inMemory('p', Object({})))).toThrow('key')
  })
})
