import {
  concat,
  from,
  lastValueFrom,
  map,
  merge,
  Observable,
  of,
  Subject,
  switchMap,
  throwError,
  toArray,
} from 'rxjs'
import { ArgumentError } from 'rivulet'
import { Gate, gateOf, iterate, underGate } from 'rivulet/operators'
import { describe, expect, expectTypeOf, it } from 'vitest'

/** A source that the test controls, with the gate that it was subscribed under. */
class Tap<T> extends Subject<T> {
  gate: Gate | undefined
  readonly values = new Observable<T>((subscriber) => {
    this.gate = gateOf(subscriber)
    return this.subscribe(subscriber)
  })
}

async function readAll<T>(values: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = []
  for await (const value of values) read.push(value)
  return read
}

const done = { done: true, value: undefined }

describe('iterate', () => {
  it('reads every value in order and ends with the source', async () => {
    expect(await readAll(iterate(of(1, 2, 3)))).toEqual([1, 2, 3])
  })

  it('reads undefined as a value', async () => {
    expect(await readAll(iterate(of(1, undefined, 2)))).toEqual([1, undefined, 2])
  })

  it('does not subscribe before the first next()', async () => {
    const tap = new Tap<number>()
    const values = iterate(tap.values)
    expect(tap.observed).toBe(false)
    const first = values.next()
    expect(tap.observed).toBe(true)
    tap.next(1)
    expect(await first).toEqual({ done: false, value: 1 })
    await values.return?.()
  })

  it('throws the error of the source once the values before it are read', async () => {
    const values = iterate(
      concat(
        of(1, 2),
        throwError(() => new Error('down')),
      ),
    )
    expect(await values.next()).toEqual({ done: false, value: 1 })
    expect(await values.next()).toEqual({ done: false, value: 2 })
    await expect(values.next()).rejects.toThrow('down')
    expect(await values.next()).toEqual(done)
  })

  it('throws the error from the oldest pending next(), and ends for the others', async () => {
    const tap = new Tap<number>()
    const values = iterate(tap.values)
    const [first, second] = [values.next(), values.next()]
    tap.error(new Error('down'))
    await expect(first).rejects.toThrow('down')
    expect(await second).toEqual(done)
    expect(await values.next()).toEqual(done)
  })

  it('resolves concurrent next() calls in order', async () => {
    const tap = new Tap<string>()
    const values = iterate(tap.values)
    const answers = Promise.all([values.next(), values.next(), values.next()])
    tap.next('a')
    tap.next('b')
    tap.complete()
    expect(await answers).toEqual([{ done: false, value: 'a' }, { done: false, value: 'b' }, done])
  })

  it('closes the gate at the high-water mark and opens it at half of it', async () => {
    const tap = new Tap<number>()
    const values = iterate(tap.values, { highWaterMark: 4 })
    const first = values.next()
    tap.next(0)
    await first

    const closed: (boolean | undefined)[] = []
    for (const n of [1, 2, 3, 4]) {
      tap.next(n)
      closed.push(tap.gate?.closed)
    }
    for (let i = 0; i < 3; i++) {
      await values.next()
      closed.push(tap.gate?.closed)
    }
    expect(closed).toEqual([false, false, false, true, true, false, false])
    await values.return?.()
  })

  it('pauses every source upstream, through merge and map', async () => {
    const [one, two] = [new Tap<number>(), new Tap<number>()]
    const values = iterate(merge(one.values.pipe(map((n) => n * 10)), two.values), { highWaterMark: 1 })
    const first = values.next()
    one.next(1)
    two.next(2)
    expect([one.gate?.closed, two.gate?.closed]).toEqual([true, true])
    expect(one.gate).toBe(two.gate)
    expect(await first).toEqual({ done: false, value: 10 })
    expect(await values.next()).toEqual({ done: false, value: 2 })
    expect(one.gate?.closed).toBe(false)
    await values.return?.()
  })

  it('never buffers more than its high-water mark from a source with support for gates', async () => {
    let produced = 0
    let read = 0
    let most = 0
    const gated = new Observable<number>((subscriber) => {
      const gate = gateOf(subscriber)
      const mayProduce = () => produced < 1_000 && gate?.closed === false
      const produce = () => {
        for (; mayProduce(); produced++) {
          subscriber.next(produced)
          most = Math.max(most, produced + 1 - read)
        }
        if (produced === 1_000) subscriber.complete()
      }
      const unlisten = gate?.onChange(produce)
      produce()
      return unlisten
    })
    for await (const n of iterate(gated, { highWaterMark: 16 })) {
      expect(n).toBe(read)
      read += 1
    }
    expect(read).toBe(1_000)
    // Plus the one that the loop has taken.
    expect(most).toBeLessThanOrEqual(17)
  })

  it('unsubscribes and drops buffered values when the loop is left', async () => {
    let ended = false
    const source = new Observable<number>((subscriber) => {
      for (const n of [1, 2, 3]) subscriber.next(n)
      return () => {
        ended = true
      }
    })
    const values = iterate(source)
    for await (const n of values) if (n === 2) break
    expect(ended).toBe(true)
    expect(await values.next()).toEqual(done)
  })

  it.each<[string, (values: AsyncIterableIterator<number>, tap: Subject<number>) => unknown]>([
    ['is left', (values) => values.return?.()],
    ['is thrown an error into', (values) => values.throw?.(new Error('mine')).catch(() => {})],
    ['has a source that completes', (_values, tap) => tap.complete()],
    ['has a source that errors', (_values, tap) => tap.error(new Error('down'))],
  ])('leaves no gate closed behind when it %s', async (_name, end) => {
    const tap = new Tap<number>()
    const values = iterate(tap.values, { highWaterMark: 1 })
    const first = values.next()
    tap.next(1)
    tap.next(2)
    await first
    const closed = [tap.gate?.closed]
    await end(values, tap)
    closed.push(tap.gate?.closed)
    expect(closed).toEqual([true, false])
  })

  it('pauses a source that is subscribed after the loop began', async () => {
    const [begin, tap] = [new Subject<void>(), new Tap<number>()]
    const values = iterate(begin.pipe(switchMap(() => tap.values)), { highWaterMark: 1 })
    const first = values.next()
    begin.next()
    tap.next(1)
    tap.next(2)
    expect(tap.gate?.closed).toBe(true)
    expect(await first).toEqual({ done: false, value: 1 })
    await values.return?.()
  })

  it('ends pending next() calls when it is returned', async () => {
    const tap = new Tap<number>()
    const values = iterate(tap.values)
    const waiting = values.next()
    expect(await values.return?.()).toEqual(done)
    expect(await waiting).toEqual(done)
    expect(tap.observed).toBe(false)
  })

  it('unsubscribes when an error is thrown into it', async () => {
    const tap = new Tap<number>()
    const values = iterate(tap.values)
    const waiting = values.next()
    await expect(values.throw?.(new Error('mine'))).rejects.toThrow('mine')
    expect(await waiting).toEqual(done)
    expect(tap.observed).toBe(false)
  })

  it('never subscribes when it is returned first', async () => {
    const tap = new Tap<number>()
    const values = iterate(tap.values)
    await values.return?.()
    expect(await values.next()).toEqual(done)
    expect(tap.gate).toBeUndefined()
  })

  it('refuses a source that is not an Observable and a wrong highWaterMark at the call', () => {
    // @ts-expect-error an array is no observable
    expect(() => iterate([1])).toThrow(ArgumentError)
    expect(() => iterate(of(1), { highWaterMark: 0 })).toThrow(/highWaterMark/)
  })

  it('is its source to RxJS, so that a consumer of from() pauses it', async () => {
    const tap = new Tap<number>()
    const gate = new Gate()
    const seen: number[] = []

    const subscription = from(iterate(tap.values))
      .pipe(
        map((n) => n * 10),
        underGate(gate),
      )
      .subscribe((n) => seen.push(n))
    tap.next(1)
    tap.next(2)

    expect(tap.gate).toBe(gate)
    expect(seen).toEqual([10, 20])
    subscription.unsubscribe()
    expect(tap.observed).toBe(false)
  })

  it('is subscribed to separately by each subscription of from() and by a loop', async () => {
    const values = iterate(of(1, 2))
    const seen: number[] = []

    from(values).subscribe((n) => seen.push(n))
    from(values).subscribe((n) => seen.push(n))

    expect(seen).toEqual([1, 2, 1, 2])
    expect(await readAll(values)).toEqual([1, 2])
  })

  it('emits the values that a loop left unread through from()', async () => {
    const values = iterate(of(1, 2, 3))
    await values.next()
    expect(await lastValueFrom(from(values).pipe(toArray()))).toEqual([2, 3])
    expect(await lastValueFrom(from(values).pipe(toArray()))).toEqual([])
  })

  it('emits nothing through from() once it was returned', async () => {
    const tap = new Tap<number>()
    const values = iterate(tap.values)
    await values.return?.()
    expect(await lastValueFrom(from(values).pipe(toArray()))).toEqual([])
    expect(tap.gate).toBeUndefined()
  })

  it('keeps the type of the values', () => {
    expectTypeOf(from(iterate(of('a')))).toEqualTypeOf<Observable<string>>()
    expectTypeOf(iterate(of('a'))).toEqualTypeOf<AsyncIterableIterator<string>>()
  })
})
