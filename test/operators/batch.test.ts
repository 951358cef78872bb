import {
  concat,
  defer,
  map,
  merge,
  NEVER,
  Observable,
  of,
  range,
  share,
  Subject,
  take,
  throwError,
} from 'rxjs'
import { batch, deliver, Gate, iterate, underGate } from 'rivulet/operators'
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  ACKNOWLEDGER,
  awaitAcknowledgements,
  expectAcknowledgements,
} from '../../src/protocol/acknowledgement.ts'
import type { Acknowledger } from '../../src/protocol/acknowledgement.ts'
import { currentGate } from '../../src/protocol/gate.ts'
import { Refused, Work } from './handlers.ts'
import { inVirtualTime } from './virtual-time.ts'

/** A batch of letters as one text, for marble diagrams. */
const joined = map((letters: readonly string[]) => letters.join(''))

/** A source that the test controls, with the gate that it was subscribed under. */
class Tap<T> extends Subject<T> {
  gate: Gate | undefined
  readonly values = defer(() => {
    this.gate = currentGate()
    return this
  })
}

/** Values that their source wants acknowledged, and what becomes of each. */
function acknowledgeable(letters: string) {
  const notes: string[] = []
  const note = (what: string) => (position: string) => void notes.push(`${what} ${position}`)
  const acknowledger: Acknowledger = {
    received: note('received'),
    handedOn: note('handed on'),
    acknowledge: note('acknowledged'),
    release: note('released'),
    deadLetter: note('dead'),
  }
  return { notes, values: Array.from(letters, (position) => ({ position, [ACKNOWLEDGER]: acknowledger })) }
}

describe('batch', () => {
  it('emits a batch when it is full, or when its first value has waited for long enough', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   --a-b-c------d--------e-|')
      const result = source.pipe(batch({ size: 3, wait: 5, scheduler }), joined)
      expectObservable(result).toBe('------x-----------y-----(z|)', { x: 'abc', y: 'd', z: 'e' })
    }))

  it('waits anew for each batch, also for the one after a full one', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   ab---c------|')
      const result = source.pipe(batch({ size: 2, wait: 5, scheduler }), joined)
      expectObservable(result).toBe('-x--------y-|', { x: 'ab', y: 'c' })
    }))

  it('collects what comes in the same turn with a wait of 0', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   (abc)d|')
      const result = source.pipe(batch({ size: 10, wait: 0, scheduler }), joined)
      expectObservable(result).toBe('x----y|', { x: 'abc', y: 'd' })
    }))

  it('emits each value alone with a size of 1', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   a-b-(cd|)')
      const result = source.pipe(batch({ size: 1, wait: 5, scheduler }), joined)
      expectObservable(result).toBe('a-b-(cd|)')
    }))

  it('collects each key by itself', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   a-b-A---B-A|')
      const key = (letter: string) => letter.toLowerCase()
      const result = source.pipe(batch({ size: 2, wait: 6, key, scheduler }), joined)
      expectObservable(result).toBe('----x---y--(z|)', { x: 'aA', y: 'bB', z: 'A' })
    }))

  it('emits nothing for a source without values', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      expectObservable(cold('---|').pipe(batch({ size: 2, wait: 1, scheduler }))).toBe('---|')
      expectObservable(cold('---#').pipe(batch({ size: 2, wait: 1, scheduler }))).toBe('---#')
    }))

  it('emits what it has before an error of the source, the oldest batch first', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   a-b-#')
      const key = (letter: string) => letter
      const result = source.pipe(batch({ size: 2, wait: 20, key, scheduler }), joined)
      expectObservable(result).toBe('----(ab#)')
    }))

  it('unsubscribes from the source, and starts no timer again, when its subscriber does', () =>
    inVirtualTime(({ cold, expectObservable, expectSubscriptions, flush }, scheduler) => {
      const source = cold('   a-b-c-d')
      const result = source.pipe(batch({ size: 2, wait: 2, scheduler }), joined)
      expectObservable(result, '---!').toBe('--x-', { x: 'ab' })
      expectSubscriptions(source.subscriptions).toBe('^--!')
      flush()
      expect(scheduler.actions).toEqual([])
    }))

  it('stops a synchronous source once its subscriber has enough', () => {
    let produced = 0
    const endless = new Observable<number>((subscriber) => {
      while (!subscriber.closed && produced < 1_000) subscriber.next(produced++)
    })
    const batches: (readonly number[])[] = []
    endless.pipe(batch({ size: 2, wait: 1 }), take(2)).subscribe((values) => batches.push(values))

    expect(batches).toEqual([
      [0, 1],
      [2, 3],
    ])
    expect(produced).toBe(4)
  })

  it('errors at once when key throws, and releases what it has', () => {
    const { notes, values } = acknowledgeable('abc')
    const error = new Error('no key')
    const errors: unknown[] = []
    const key = ({ position }: { readonly position: string }) => {
      if (position === 'b') throw error
      return position
    }
    concat(values, NEVER)
      .pipe(batch({ size: 2, wait: 1_000, key }))
      .subscribe({ error: (given) => errors.push(given) })

    expect(errors).toEqual([error])
    expect(notes).toEqual(['received a', 'received b', 'released b', 'released a'])
  })

  it('keeps the order when its subscriber makes the source emit', () => {
    const source = new Subject<number>()
    const batches: (readonly number[])[] = []
    source.pipe(batch({ size: 2, wait: 1_000 })).subscribe((values) => {
      if (values[0] === 1) for (const n of [3, 4, 5, 6]) source.next(n)
      batches.push(values)
    })
    source.next(1)
    source.next(2)

    expect(batches).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ])
  })

  it('says in its types that a batch is not empty', () => {
    const first = of('a').pipe(
      batch({ size: 2, wait: 0 }),
      map(([value]) => value),
    )
    expectTypeOf(first).toEqualTypeOf<Observable<string>>()
  })
})

describe('batch and gates', () => {
  it('fills batches while the gate is closed, and emits them when it opens', () =>
    inVirtualTime(({ cold, hot, expectObservable }, scheduler) => {
      const gate = new Gate()
      const source = cold('        ab--c-d--------|')
      hot('                        x-----o---------').subscribe((mark) =>
        mark === 'x' ? gate.close() : gate.open(),
      )
      const result = source.pipe(batch({ size: 4, wait: 2, scheduler }), underGate(gate), joined)
      // Its first value has waited for long enough long before.
      expectObservable(result).toBe('------x-y------|', { x: 'abc', y: 'd' })
    }))

  it('pauses the source once a full batch waits, and resumes it', () => {
    const downstream = new Gate()
    const source = new Tap<number>()
    const batches: (readonly number[])[] = []
    source.values
      .pipe(batch({ size: 2, wait: 1_000 }), underGate(downstream))
      .subscribe((values) => batches.push(values))
    const closed: (boolean | undefined)[] = []
    const send = (n: number) => {
      source.next(n)
      closed.push(source.gate?.closed)
    }
    downstream.close()
    for (const n of [1, 2, 3]) send(n)
    downstream.open()
    send(4)

    expect(closed).toEqual([false, true, true, false])
    expect(batches).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  it('holds at most 1,000 values of keys, or ten batches: then the oldest one is emitted before it is full', () => {
    const source = new Subject<number>()
    const batches: (readonly number[])[] = []
    source.pipe(batch({ size: 50, wait: 1_000, key: String })).subscribe((values) => batches.push(values))
    for (let n = 1; n <= 1_002; n++) source.next(n)
    expect(batches).toEqual([[1], [2], [3]])
    expect(() => batch({ size: 200, wait: 1 })).not.toThrow()
  })

  it('pauses the source of many keys at the same number while the gate is closed', () => {
    const downstream = new Gate()
    const source = new Tap<number>()
    source.values.pipe(batch({ size: 5, wait: 1_000, key: String }), underGate(downstream)).subscribe()
    downstream.close()
    for (let n = 1; n < 1_000; n++) source.next(n)
    expect(source.gate?.closed).toBe(false)
    source.next(1_000)
    expect(source.gate?.closed).toBe(true)
    downstream.open()
    expect(source.gate?.closed).toBe(false)
  })

  it('opens the gate of a shared source for good when it ends', () => {
    const downstream = new Gate()
    const source = new Tap<number>()
    const shared = source.values.pipe(share())
    const subscription = shared.pipe(batch({ size: 1, wait: 1 }), underGate(downstream)).subscribe()
    downstream.close()
    source.next(1)
    expect(source.gate?.closed).toBe(true)
    subscription.unsubscribe()
    expect(source.gate?.closed).toBe(false)
  })
})

describe('batch and acknowledgements', () => {
  it('counts values as received until the next subscriber has received them', () => {
    const { notes, values } = acknowledgeable('abc')
    const source = new Subject<(typeof values)[number]>()
    source
      .pipe(
        batch({ size: 2, wait: 1_000 }),
        deliver(() => {}),
      )
      .subscribe()
    for (const value of values) source.next(value)

    expect(notes).toEqual([
      'received a',
      'received b',
      'received a',
      'received b',
      'acknowledged a',
      'acknowledged b',
      'handed on a',
      'handed on b',
      'received c',
    ])
    source.complete()
    expect(notes.slice(-3)).toEqual(['received c', 'acknowledged c', 'handed on c'])
  })

  it('releases what it has when its subscriber unsubscribes', () => {
    const { notes, values } = acknowledgeable('abc')
    const key = ({ position }: { readonly position: string }) => position
    concat(values, NEVER)
      .pipe(batch({ size: 2, wait: 1_000, key }))
      .subscribe()
      .unsubscribe()
    expect(notes.slice(3)).toEqual(['released a', 'released b', 'released c'])
  })

  it('emits what it has when the source waits for the acknowledgement of it, and not sooner', () => {
    const source = new Tap<number>()
    const batches: (readonly number[])[] = []
    source.values.pipe(batch({ size: 9, wait: 1_000 })).subscribe((values) => batches.push(values))
    source.next(1)
    source.next(2)
    // A third value is in the hands of somebody else.
    awaitAcknowledgements(source.gate, 3)
    expect(batches).toEqual([])
    awaitAcknowledgements(source.gate, 2)
    expect(batches).toEqual([[1, 2]])
    source.next(3)
    expect(batches).toEqual([[1, 2]])
  })

  it('emits what the source waits for once the gate opens', () => {
    const downstream = new Gate()
    const source = new Tap<number>()
    const batches: (readonly number[])[] = []
    source.values
      .pipe(batch({ size: 9, wait: 1_000, key: String }), underGate(downstream))
      .subscribe((values) => batches.push(values))
    downstream.close()
    source.next(1)
    source.next(2)
    awaitAcknowledgements(source.gate, 0)
    expect(batches).toEqual([])
    downstream.open()
    expect(batches).toEqual([[1], [2]])
  })

  it('refuses a value without a position from a source that expects acknowledgements, here or after it', () => {
    const { values } = acknowledgeable('ab')
    const expecting = <T>(given: Iterable<T>) =>
      defer(() => {
        const gate = currentGate()
        if (gate !== undefined) expectAcknowledgements(gate)
        return given
      })
    const names: unknown[] = []
    const observer = { error: ({ name }: Error) => names.push(name) }
    expecting([1])
      .pipe(batch({ size: 1, wait: 1 }))
      .subscribe(observer)
    expecting(values)
      .pipe(
        batch({ size: 2, wait: 1 }),
        map(({ length }) => ({ length })),
        deliver(() => {}),
      )
      .subscribe(observer)
    expect(names).toEqual(['AcknowledgementError', 'AcknowledgementError'])
  })

  it('lets for await acknowledge a batch when it asks for the next one', async () => {
    const { notes, values } = acknowledgeable('abcd')
    const source = of(...values).pipe(batch({ size: 2, wait: 1_000 }))
    const sizes: number[] = []
    for await (const { length } of iterate(source)) {
      sizes.push(length)
      expect(notes.filter((note) => note.startsWith('acknowledged'))).toHaveLength(2 * (sizes.length - 1))
    }
    expect(sizes).toEqual([2, 2])
    expect(notes.filter((note) => note.startsWith('acknowledged'))).toHaveLength(4)
  })
})

describe('deliver and batches', () => {
  /** A handler that notes its calls, and fails for a batch with one of these letters. */
  function failingAt(bad: string, error: unknown = new Refused('refused')) {
    const calls: string[] = []
    const handler = (letters: readonly string[]) => {
      calls.push(letters.join(''))
      if (letters.some((letter) => bad.includes(letter))) throw error
    }
    return { calls, handler }
  }

  it('divides a batch that fails for good until the value at fault is alone', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const { calls, handler } = failingAt('e')
      const dead: unknown[] = []
      const result = cold('(abcdefgh|)').pipe(
        batch({ size: 8, wait: 1, scheduler }),
        deliver(handler, {
          concurrency: 1,
          retries: 1,
          initialDelay: 10,
          random: () => 1,
          scheduler,
          deadLetters: { next: (letter) => dead.push(letter) },
        }),
        joined,
      )
      // One retry of the whole batch, none of its parts, and one of the value that is alone.
      expectObservable(result).toBe('10ms x 9ms (yz|)', { x: 'abcd', y: 'f', z: 'gh' })
      flush()
      expect(calls).toEqual(['abcdefgh', 'abcdefgh', 'abcd', 'efgh', 'ef', 'e', 'e', 'f', 'gh'])
      expect(dead).toMatchObject([{ event: ['e'], attempts: 6, error: { message: 'refused' } }])
    }))

  it('divides a batch at once whose error cannot be retried', () => {
    const { calls, handler } = failingAt('c', new Refused('never', { retryable: false }))
    const dead: unknown[] = []
    of('a', 'b', 'c')
      .pipe(
        batch({ size: 3, wait: 1 }),
        deliver(handler, { concurrency: 1, deadLetters: { next: (letter) => dead.push(letter) } }),
      )
      .subscribe()
    expect(calls).toEqual(['abc', 'ab', 'c'])
    expect(dead).toMatchObject([{ event: ['c'], attempts: 2 }])
  })

  it('does not divide before the retryAfter of the error', () =>
    inVirtualTime(({ cold, expectObservable, flush }, scheduler) => {
      const refused = new Refused('later', { retryable: false, retryAfter: 7 })
      const { calls, handler } = failingAt('ab', refused)
      const times: number[] = []
      const timed = (letters: readonly string[]) => {
        times.push(scheduler.now())
        handler(letters)
      }
      const result = cold('(ab|)').pipe(
        batch({ size: 2, wait: 1, scheduler }),
        deliver(timed, { concurrency: 1, scheduler, deadLetters: new Subject() }),
      )
      expectObservable(result).toBe('7ms #', undefined, refused)
      flush()
      expect(calls).toEqual(['ab', 'a'])
      expect(times).toEqual([0, 7])
    }))

  it('without dead letters, the value at fault errors the result, and those before it are handled', () => {
    const { calls, handler } = failingAt('d')
    const results: unknown[] = []
    of('a', 'b', 'c', 'd')
      .pipe(batch({ size: 4, wait: 1 }), deliver(handler, { concurrency: 1, retries: 0 }))
      .subscribe({
        next: (letters) => results.push(letters.join('')),
        error: ({ message }) => results.push(message),
      })
    expect(calls).toEqual(['abcd', 'ab', 'cd', 'c', 'd'])
    expect(results).toEqual(['ab', 'c', 'refused'])
  })

  it('acknowledges the good parts and the dead letter, each once', () => {
    const { notes, values } = acknowledgeable('abcde')
    const handler = (given: readonly { readonly position: string }[]) => {
      if (given.some(({ position }) => position === 'b')) throw new Error('refused')
    }
    of(...values)
      .pipe(batch({ size: 5, wait: 1 }), deliver(handler, { retries: 0, deadLetters: 'log' }))
      .subscribe()
    const ends = notes.filter((note) => /acknowledged|released|dead/.test(note))
    expect(ends.toSorted()).toEqual(
      [
        'acknowledged a',
        'acknowledged b',
        'acknowledged c',
        'acknowledged d',
        'acknowledged e',
        'dead b',
      ].toSorted(),
    )
  })

  it('releases the parts of a divided batch that were not started when it ends', () =>
    inVirtualTime((_, scheduler) => {
      const { notes, values } = acknowledgeable('abcd')
      const abort = new AbortController()
      const handler = (given: readonly unknown[]) =>
        new Work(scheduler, 5, given.length > 2 ? { error: 'no' } : {})
      concat(of(...values), NEVER)
        .pipe(
          batch({ size: 4, wait: 1, scheduler }),
          deliver(handler, {
            concurrency: 1,
            retries: 0,
            scheduler,
            signal: abort.signal,
            deadLetters: 'log',
          }),
        )
        .subscribe()
      scheduler.schedule(() => abort.abort(), 7)
      scheduler.flush()
      const ends = notes.filter((note) => /acknowledged|released/.test(note))
      expect(ends).toEqual(['released c', 'released d', 'acknowledged a', 'acknowledged b'])
    }))

  it('keeps the order of each key while it divides', () =>
    inVirtualTime((_, scheduler) => {
      const handled: string[] = []
      const handler = (values: readonly string[]) =>
        new Work(scheduler, 3, {
          ...(values.includes('a2') && values.length > 1 && { error: 'refused' }),
          onSettled: () => {
            if (values.length === 1 || !values.includes('a2')) handled.push(...values)
          },
        })
      const key = (value: string) => value.slice(0, 1)
      of('a1', 'b1', 'a2', 'a3', 'b2', 'a4', 'a5', 'b3')
        .pipe(
          batch({ size: 3, wait: 1, key, scheduler }),
          deliver<readonly [string, ...string[]]>(handler, {
            retries: 0,
            key: ([first]) => key(first),
            scheduler,
          }),
        )
        .subscribe()
      scheduler.flush()
      expect(handled.filter((value) => value.startsWith('a'))).toEqual(['a1', 'a2', 'a3', 'a4', 'a5'])
      expect(handled.filter((value) => value.startsWith('b'))).toEqual(['b1', 'b2', 'b3'])
    }))

  it('joins batches that wait behind a slow handler, up to their size', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   a-b-c-d-e-f-g|')
      const result = source.pipe(
        batch({ size: 4, wait: 1, scheduler }),
        deliver(() => new Work(scheduler, 10), { concurrency: 1, scheduler }),
        joined,
      )
      expectObservable(result).toBe('-----------x---------y---------(z|)', { x: 'a', y: 'bcde', z: 'fg' })
    }))

  it('fills a batch that waits from a larger one behind it', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const source = cold('   a-b-(cdef)|')
      const result = source.pipe(
        batch({ size: 4, wait: 1, scheduler }),
        deliver(() => new Work(scheduler, 20), { concurrency: 1, scheduler }),
        joined,
      )
      expectObservable(result).toBe('21ms x 19ms y 19ms (z|)', { x: 'a', y: 'bcde', z: 'f' })
    }))

  it('joins no batches of different keys or of different subscriptions', () =>
    inVirtualTime(({ cold, expectObservable }, scheduler) => {
      const each = (letters: string, key?: (letter: string) => string) =>
        cold(letters).pipe(batch({ size: 9, wait: 1, scheduler, ...(key && { key }) }))
      const slow = () =>
        deliver<readonly string[]>(() => new Work(scheduler, 20), { concurrency: 1, scheduler })
      expectObservable(each('a--(bc)|', (letter) => letter).pipe(slow(), joined)).toBe(
        '21ms a 19ms b 19ms (c|)',
      )
      expectObservable(merge(each('a-|'), each('--b|'), each('---c|')).pipe(slow(), joined)).toBe(
        '21ms a 19ms b 19ms (c|)',
      )
    }))

  it('divides no other arrays', () => {
    const calls: unknown[] = []
    const errors: unknown[] = []
    range(1, 2)
      .pipe(
        batch({ size: 2, wait: 1 }),
        map((numbers) => [...numbers]),
        deliver(
          (numbers) => {
            calls.push(numbers)
            throw new Error('refused')
          },
          { retries: 0 },
        ),
      )
      .subscribe({ error: ({ message }) => errors.push(message) })
    expect(calls).toEqual([[1, 2]])
    expect(errors).toEqual(['refused'])
  })

  it('handles what the source has emitted before it errors', () => {
    const { calls, handler } = failingAt('')
    const errors: unknown[] = []
    concat(
      of('a', 'b', 'c'),
      throwError(() => 'lost'),
    )
      .pipe(batch({ size: 2, wait: 1_000 }), deliver(handler))
      .subscribe({ error: (error) => errors.push(error) })
    expect(calls).toEqual(['ab', 'c'])
    expect(errors).toEqual(['lost'])
  })

  it('divides thousands of values without growing the stack', () => {
    const dead: unknown[] = []
    const refuse = () => {
      throw new Refused('never', { retryable: false })
    }
    range(0, 5_000)
      .pipe(
        batch({ size: 5_000, wait: 1 }),
        deliver(refuse, { deadLetters: { next: ({ event }) => dead.push(...event) } }),
      )
      .subscribe()
    expect(dead).toHaveLength(5_000)
  })
})
