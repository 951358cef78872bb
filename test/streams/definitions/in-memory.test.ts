import { concat, from as fromList, lastValueFrom, map, NEVER, of, take, throwError, toArray } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import {
  aggregate,
  collect,
  define,
  inMemory,
  keyBy,
  ProcessError,
  session,
  sum,
  tumbling,
} from 'rivulet/streams'
import type { DefinitionInMemoryOptions, Windows } from 'rivulet/streams'
import { describe, expect, it } from 'vitest'
import { inVirtualTime } from '../../operators/virtual-time.ts'
import { fromReadings, reading, readings, short } from './readings.ts'

/** An event of so many ms after 1970, the time of the virtual clock. */
const event = (ms: number, key = 'a'): ResearchEvent => {
  const time = new Date(ms).toISOString()
  return {
    id: `${key}${ms}`,
    source: '/s',
    type: 'unknown',
    time,
    data: { key, number: ms },
    received: time,
    via: 'log',
  }
}

const e = { a: event(0), b: event(4), c: event(12), d: event(3), k: event(5, 'k') }

/** Results as a text: the window in ms, and the numbers in it. */
const texts = map(({ type, data }: Pick<ResearchEvent, 'type' | 'data'>) => {
  const { start, end, values, count } = data as {
    readonly start: string
    readonly end: string
    readonly values?: { readonly all: readonly number[] }
    readonly count?: number
  }
  const span = `${Date.parse(start)}-${Date.parse(end)}`
  return type === 'window.result' ? `${span}: ${values?.all.join(' ')}` : `${span} dropped: ${count}`
})

const inTen = (lateness = 0, windows: Windows = tumbling(10)) => readings(windows, { lateness })

describe('a definition in memory, by arrival', () => {
  const byArrival: DefinitionInMemoryOptions = { watermark: 'arrival' }

  it('gives a result when the clock passes the end of the window', () => {
    inVirtualTime(({ hot, expectObservable }, scheduler) => {
      const source = hot('a---b-------c--------------', e)
      const result = source.pipe(inMemory(inTen(), { ...byArrival, scheduler }), texts)
      expectObservable(result).toBe('----------(A)-------(B)----', { A: '0-10: 0 4', B: '10-20: 12' })
    })
  })

  it('waits for `lateness` more, and takes events until then', () => {
    inVirtualTime(({ hot, expectObservable }, scheduler) => {
      const source = hot('a-----------d----------', e)
      const result = source.pipe(inMemory(inTen(3), { ...byArrival, scheduler }), texts)
      expectObservable(result).toBe('-------------A---------', { A: '0-10: 0 3' })
    })
  })

  it('drops an event that comes later, and reports it within a minute', () => {
    inVirtualTime(({ hot, expectObservable }, scheduler) => {
      const source = hot('a---------d-------', e)
      const result = source.pipe(inMemory(inTen(), { ...byArrival, scheduler }), texts)
      expectObservable(result).toBe('----------A 59999ms B', { A: '0-10: 0', B: '0-10 dropped: 1' })
    })
  })

  it('ends a session when its gap has passed', () => {
    inVirtualTime(({ hot, expectObservable }, scheduler) => {
      const source = hot('a---b-------c-------', e)
      const result = source.pipe(inMemory(inTen(0, session(5)), { ...byArrival, scheduler }), texts)
      expectObservable(result).toBe('---------A-------B--', { A: '0-9: 0 4', B: '12-17: 12' })
    })
  })

  it('ends all windows when the source completes', () => {
    inVirtualTime(({ hot, expectObservable }, scheduler) => {
      const source = hot('a---b--|', e)
      const result = source.pipe(inMemory(inTen(), { ...byArrival, scheduler }), texts)
      expectObservable(result).toBe('-------(A|)', { A: '0-10: 0 4' })
    })
  })

  it('has neither the source nor a timer left once it is unsubscribed', () => {
    inVirtualTime(({ hot, expectObservable, expectSubscriptions }, scheduler) => {
      const source = hot('a---b-------c------', e)
      const result = source.pipe(inMemory(inTen(), { ...byArrival, scheduler }), texts)
      expectObservable(result, '^------!').toBe('--------')
      expectSubscriptions(source.subscriptions).toBe('^------!')
    })
  })
})

describe('a definition in memory, by ticks', () => {
  it('gives all results when the source completes, however long it was silent', () => {
    inVirtualTime(({ hot, expectObservable }, scheduler) => {
      const source = hot('a---b-------c----- 1m |', e)
      const result = source.pipe(inMemory(inTen(), { scheduler }), texts)
      expectObservable(result).toBe('------------------ 1m (AB|)', { A: '0-10: 0 4', B: '10-20: 12' })
    })
  })

  it('gives no result of a source that fails', () => {
    inVirtualTime(({ hot, expectObservable }, scheduler) => {
      const source = hot('a---b--#', e)
      expectObservable(source.pipe(inMemory(inTen(), { scheduler }), texts)).toBe('-------#')
    })
  })

  it('completes without a result for a source without events', async () => {
    expect(await lastValueFrom(of<ResearchEvent>().pipe(inMemory(inTen()), toArray()))).toEqual([])
  })

  it('begins anew with each subscription', async () => {
    const results = fromList([e.a, e.b]).pipe(inMemory(inTen()), texts, toArray())
    expect(await lastValueFrom(results)).toEqual(['0-10: 0 4'])
    expect(await lastValueFrom(results)).toEqual(['0-10: 0 4'])
  })

  it('is ended by a subscriber that has enough', async () => {
    const source = fromList([e.a, e.c])
    expect(await lastValueFrom(source.pipe(inMemory(inTen()), texts, take(1), toArray()))).toEqual([
      '0-10: 0',
    ])
  })

  it('skips its own results', async () => {
    const first = await lastValueFrom(of(e.a).pipe(inMemory(inTen()), toArray()))
    const events = await lastValueFrom(fromList([e.a, ...first]).pipe(inMemory(inTen()), toArray()))
    expect(events.map(({ id, data }) => [id, data])).toEqual(first.map(({ id, data }) => [id, data]))
  })

  it('has the same ids as an earlier run over the same events', async () => {
    const ids = () =>
      lastValueFrom(
        fromList([e.a, e.k, e.c]).pipe(
          inMemory(inTen()),
          map(({ id }) => id),
          toArray(),
        ),
      )
    const once = await ids()
    expect(new Set(once).size).toBe(3)
    expect(await ids()).toEqual(once)
  })

  it('takes a list of events in the place of a log: any number of windows of a key', async () => {
    const events = Array.from({ length: 5_000 }, (_, n) => event(n * 86_400))
    const results = await lastValueFrom(fromList(events).pipe(inMemory(inTen()), toArray()))
    expect(results).toHaveLength(5_000)
  })
})

describe('a definition in memory that fails', () => {
  const failing = define(
    'failing',
    { version: 1 },
    fromReadings().pipe(
      keyBy(({ key }) => key),
      aggregate('windows', tumbling(10), {
        all: collect(({ number }) => number),
        sum: sum(({ number }) => (number === 4 ? NaN : number)),
      }),
    ),
  )

  it('ends with a ProcessError, after the results before it', async () => {
    const seen: string[] = []
    const error: unknown = await lastValueFrom(
      fromList([e.a, e.b, e.c]).pipe(
        inMemory(failing),
        texts,
        map((text) => seen.push(text)),
      ),
    ).catch((cause: unknown) => cause)
    expect(error).toBeInstanceOf(ProcessError)
    expect(error).toMatchObject({ process: 'failing', entry: { source: '/s', id: 'a4' } })
    expect(seen).toEqual([])
  })

  it('hands the event to `onDeadLetter`, and goes on without it', async () => {
    const failed: ProcessError[] = []
    const onDeadLetter = (error: ProcessError) => failed.push(error)
    const results = fromList([e.a, e.b, e.c]).pipe(inMemory(failing, { onDeadLetter }), texts, toArray())
    expect(await lastValueFrom(results)).toEqual(['0-10: 0', '10-20: 12'])
    expect(failed.map(({ entry }) => entry?.id)).toEqual(['a4'])
  })

  it('ends at one window more than `maxKeys`', async () => {
    const results = fromList([e.a, e.b, e.k]).pipe(inMemory(inTen(), { maxKeys: 1 }))
    await expect(lastValueFrom(results)).rejects.toThrow(/at most so many are kept \(maxKeys\)/)
    const ended = fromList([e.a, e.b]).pipe(inMemory(inTen(), { maxKeys: 1 }), texts)
    expect(await lastValueFrom(ended)).toBe('0-10: 0 4')
  })
})

it('runs over events with the fields of a log, whose ticks end windows before the source does', () => {
  const entry = (seconds: number) => {
    const { time, data } = reading(seconds)
    const text = new Date(Number(time)).toISOString()
    return {
      id: String(seconds),
      source: '/s',
      type: 'unknown' as const,
      time: text,
      data,
      received: text,
      via: 'log' as const,
    }
  }
  const tick: ResearchEvent = {
    ...entry(60),
    type: 'log.tick',
    data: { at: entry(60).time, through: entry(60).time, complete: true },
  }
  const seen: ResearchEvent[] = []
  concat(fromList([entry(1), tick, entry(61)]), NEVER)
    .pipe(inMemory(readings(tumbling('1m'))))
    .subscribe((result) => seen.push(result))
    .unsubscribe()
  expect(short(seen)).toEqual(['a 0-60: 1'])
  const failed: unknown[] = []
  concat(
    fromList([entry(1), tick]),
    throwError(() => new Error('gone')),
  )
    .pipe(inMemory(readings(tumbling('1m'))))
    .subscribe({
      next: (result) => failed.push(...short([result])),
      error: (error: Error) => failed.push(error.message),
    })
  expect(failed).toEqual(['a 0-60: 1', 'gone'])
})
