import { concat, defer, filter, map, merge, Observable, of, Subject, take, tap } from 'rxjs'
import type { Subscription } from 'rxjs'
import { dedupe, deliver, Gate, iterate } from 'rivulet/operators'
import { describe, expect, it } from 'vitest'
import { currentGate, withGate } from '../../src/protocol/gate.ts'
import { Work } from './handlers.ts'
import { inVirtualTime } from './virtual-time.ts'

/** A source that the test controls, with the gate that it was subscribed under. */
class Tap<T> extends Subject<T> {
  gate: Gate | undefined
  readonly values = defer(() => {
    this.gate = currentGate()
    return this
  })
}

/** A source that emits while its gate is open, and resumes synchronously when it opens. */
function gatedRange(count: number, onProduced: (n: number) => void = () => {}): Observable<number> {
  return new Observable((subscriber) => {
    const gate = currentGate()
    let produced = 0
    const mayProduce = () => produced < count && gate?.closed === false
    const produce = () => {
      while (mayProduce()) {
        onProduced(produced)
        subscriber.next(produced++)
      }
      if (produced === count) subscriber.complete()
    }
    const unlisten = gate?.onChange(produce)
    produce()
    return unlisten
  })
}

/** Handlers that end when the test says so, in any order. */
class Handlers {
  readonly #ends: (() => void)[] = []
  readonly handler = (): PromiseLike<void> => ({
    // A native promise would call back later.
    // oxlint-disable-next-line unicorn/no-thenable
    then: (fulfilled) => {
      this.#ends.push(() => fulfilled?.())
      return new Promise(() => {})
    },
  })

  /** Ends the oldest handler. */
  end(): void {
    this.#ends.shift()?.()
  }
}

describe('deliver and gates', () => {
  it('closes the gate at the high-water mark and opens it at half of it', () => {
    const source = new Tap<number>()
    const handlers = new Handlers()
    const subscription = source.values
      .pipe(deliver(handlers.handler, { concurrency: 1, highWaterMark: 4 }))
      .subscribe()
    const closed: (boolean | undefined)[] = []
    for (const n of [0, 1, 2, 3, 4]) {
      source.next(n)
      closed.push(source.gate?.closed)
    }
    expect(closed).toEqual([false, false, false, false, true])
    closed.length = 0
    for (let i = 0; i < 3; i++) {
      handlers.end()
      closed.push(source.gate?.closed)
    }
    expect(closed).toEqual([true, false, false])
    subscription.unsubscribe()
  })

  it('has a high-water mark of 64 or twice the concurrency, whichever is greater', () => {
    const waiting = (concurrency?: number) => {
      const source = new Tap<number>()
      const config = concurrency === undefined ? {} : { concurrency }
      const subscription = source.values.pipe(deliver(() => new Promise(() => {}), config)).subscribe()
      let sent = 0
      while (source.gate?.closed === false) source.next(sent++)
      subscription.unsubscribe()
      return sent - (concurrency ?? 8)
    }
    expect(waiting()).toBe(64)
    expect(waiting(32)).toBe(64)
    expect(waiting(100)).toBe(200)
  })

  it('drops no event that arrives while the gate is closed', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const handled: number[] = []
      of(...Array.from({ length: 100 }, (_, n) => n))
        .pipe(deliver(() => new Work(scheduler, 1), { concurrency: 1, highWaterMark: 1 }))
        .subscribe((n) => handled.push(n))
      flush()
      expect(handled).toEqual(Array.from({ length: 100 }, (_, n) => n))
    }))

  it('never buffers more than its high-water mark, through merge and synchronous operators', () =>
    inVirtualTime(({ flush }, scheduler) => {
      let produced = 0
      let handled = 0
      let most = 0
      const source = () =>
        gatedRange(500, () => {
          produced += 1
          most = Math.max(most, produced - handled)
        })
      const events = merge(
        source().pipe(map((n) => ({ id: `a${n}` }))),
        source().pipe(
          filter(() => true),
          map((n) => ({ id: `b${n}` })),
        ),
      ).pipe(dedupe())
      let completed = false
      events.pipe(deliver(() => new Work(scheduler, 1), { concurrency: 4, highWaterMark: 10 })).subscribe({
        next: () => (handled += 1),
        complete: () => (completed = true),
      })
      flush()
      expect([completed, handled]).toEqual([true, 1_000])
      // In flight and buffered.
      expect(most).toBe(14)
    }))

  it('closes another gate with its own, for a source that was subscribed elsewhere', () => {
    const gate = new Gate()
    const source = new Tap<number>()
    const shared = new Subject<number>()
    withGate(gate, () => source.values.subscribe(shared))
    const handlers = new Handlers()
    const subscription = shared
      .pipe(deliver(handlers.handler, { concurrency: 1, highWaterMark: 2, gate }))
      .subscribe()
    for (const n of [0, 1, 2]) source.next(n)
    expect(source.gate).toBe(gate)
    expect(gate.closed).toBe(true)
    handlers.end()
    expect(gate.closed).toBe(false)
    subscription.unsubscribe()
  })

  it.each<[string, (subscription: Subscription, source: Subject<number>, stopping: AbortController) => void]>(
    [
      ['is unsubscribed', (subscription) => subscription.unsubscribe()],
      ['is aborted', (_subscription, _source, stopping) => stopping.abort()],
      ['has a source that completes', (_subscription, source) => source.complete()],
      ['has a source that errors', (_subscription, source) => source.error('down')],
    ],
  )('leaves no gate closed behind when it %s', (_name, end) => {
    const gate = new Gate()
    const source = new Subject<number>()
    const stopping = new AbortController()
    const config = { concurrency: 1, highWaterMark: 1, gate, signal: stopping.signal }
    const subscription = source.pipe(deliver(() => new Promise(() => {}), config)).subscribe({ error() {} })
    source.next(0)
    source.next(1)
    expect(gate.closed).toBe(true)
    end(subscription, source, stopping)
    expect(gate.closed).toBe(false)
    subscription.unsubscribe()
  })

  it('pauses its sources while its own subscriber is paused', () => {
    const outer = new Gate()
    const source = new Tap<number>()
    outer.close()
    const subscription = withGate(outer, () => source.values.pipe(deliver(() => {})).subscribe())
    const closed = [source.gate?.closed]
    for (const change of [() => outer.open(), () => outer.close(), () => outer.open()]) {
      change()
      closed.push(source.gate?.closed)
    }
    expect(closed).toEqual([true, false, true, false])
    expect(source.gate).not.toBe(outer)
    subscription.unsubscribe()
  })

  it('opens only when both its buffer and its subscriber permit it', () => {
    const outer = new Gate()
    const source = new Tap<number>()
    const handlers = new Handlers()
    const config = { concurrency: 1, highWaterMark: 1 }
    const subscription = withGate(outer, () =>
      source.values.pipe(deliver(handlers.handler, config)).subscribe(),
    )
    source.next(0)
    source.next(1)
    outer.close()
    const closed = [source.gate?.closed]
    handlers.end()
    closed.push(source.gate?.closed)
    outer.open()
    closed.push(source.gate?.closed)
    expect(closed).toEqual([true, true, false])
    subscription.unsubscribe()
  })

  it('pauses the sources of a chain of two while the last of them is behind', () => {
    const source = new Tap<number>()
    const slow = new Handlers()
    const subscription = source.values
      .pipe(
        deliver(() => {}),
        map((n) => n + 1),
        deliver(slow.handler, { concurrency: 1, highWaterMark: 1 }),
      )
      .subscribe()
    source.next(0)
    source.next(1)
    expect(source.gate?.closed).toBe(true)
    slow.end()
    expect(source.gate?.closed).toBe(false)
    subscription.unsubscribe()
  })

  it('is paused by a loop that reads it', async () => {
    const source = new Tap<number>()
    const values = iterate(source.values.pipe(deliver(() => {})), { highWaterMark: 1 })
    const first = values.next()
    source.next(0)
    await first
    source.next(1)
    expect(source.gate?.closed).toBe(true)
    await values.next()
    expect(source.gate?.closed).toBe(false)
    await values.return?.()
  })

  it('opens again when its option gate is also the gate of its subscriber', () => {
    const gate = new Gate()
    const source = new Tap<number>()
    const handlers = new Handlers()
    const config = { concurrency: 1, highWaterMark: 1, gate }
    const subscription = withGate(gate, () =>
      source.values.pipe(deliver(handlers.handler, config)).subscribe(),
    )
    source.next(0)
    source.next(1)
    expect([gate.closed, source.gate?.closed]).toEqual([true, true])
    handlers.end()
    expect([gate.closed, source.gate?.closed]).toEqual([false, false])
    subscription.unsubscribe()
  })

  it('hides its gate from what a handler subscribes to', () => {
    const gates: (Gate | undefined)[] = []
    const handler = () => void defer(() => of(gates.push(currentGate()))).subscribe()
    of(0, 1).pipe(deliver(handler)).subscribe()
    withGate(new Gate(), () => of(2).pipe(deliver(handler)).subscribe())
    expect(gates).toEqual([undefined, undefined, undefined])
  })

  it('passes the gate of its subscriber to what is subscribed downstream during its own subscription', () => {
    const outer = new Gate()
    const gates: (Gate | undefined)[] = []
    const next = defer(() => of(gates.push(currentGate())))
    const down = of(0).pipe(
      deliver(() => {}),
      tap(() => gates.push(currentGate())),
    )
    withGate(outer, () => concat(down, next).subscribe())
    expect(gates).toEqual([outer, outer])
  })

  it('may fill its buffer again while its gate opens', () =>
    inVirtualTime(({ flush }, scheduler) => {
      const closed: boolean[] = []
      const gate = new Gate()
      gate.onChange((now) => closed.push(now))
      let handled = 0
      gatedRange(12)
        .pipe(
          deliver(() => new Work(scheduler, 1), { concurrency: 1, highWaterMark: 4, gate }),
          take(12),
        )
        .subscribe(() => (handled += 1))
      flush()
      expect(handled).toBe(12)
      expect(gate.closed).toBe(false)
      expect(closed).toEqual(closed.map((_, index) => index % 2 === 0))
    }))

  it('closes its gate within a handler that causes more events than the high-water mark', () => {
    const source = new Tap<number>()
    const closed: (boolean | undefined)[] = []
    const handler = (n: number) => {
      if (n > 0) return
      for (const more of [1, 2, 3]) {
        source.next(more)
        closed.push(source.gate?.closed)
      }
    }
    const config = { concurrency: 1, highWaterMark: 2 }
    const subscription = source.values.pipe(deliver(handler, config)).subscribe()
    source.next(0)
    expect(closed).toEqual([false, true, true])
    expect(source.gate?.closed).toBe(false)
    subscription.unsubscribe()
  })
})

describe('a gate that is closed again while it opens', () => {
  it('notifies later listeners of its current state', () => {
    const gate = new Gate()
    gate.close()
    gate.onChange(() => gate.close())
    const notified: boolean[] = []
    gate.onChange((closed) => notified.push(closed))
    gate.open()
    expect(notified).toEqual([true, true])
  })
})
