import { Observable, Subscriber } from 'rxjs'
import { subscribersFrom } from '../../protocol/gate.ts'
import type { Context } from '../context.ts'
import { Source } from './source.ts'

/** Events that may wait within one operator before it is reported. */
const BOUND = 10_000
/** Events that an operator has to pass on at once to be taken for one that keeps none. */
const TRIAL = 1_000

/**
 * Reports when events pile up within an operator between the source and its consumer, at most once for each operator of a
 * subscription. `mergeMap` and `concatMap` with something slow, `zip` and `bufferTime` take in whatever comes, so that no
 * gate of the consumer is ever closed.
 *
 * Such an operator is looked for among the subscribers from the source to the consumer: one that keeps values has to answer
 * the completion itself, which most others leave to the next subscriber. Where there is none, nothing is counted.
 */
export function reportRunAhead<T>(
  context: Pick<Context, 'report'>,
  source: Observable<T>,
  name: string,
): Source<T> {
  return new Source((subscriber) => {
    const chain = [...subscribersFrom(subscriber)]
    for (const [index, entry] of chain.entries()) {
      const exit = chain[index + 1]
      if (exit === undefined || !answersCompletion(entry)) continue
      const passage = Passage.to(exit, (ahead) => {
        context.report({ kind: 'backpressure', source: name, ahead })
      })
      Probe.on(entry).entryOf = passage
    }
    return source.subscribe(subscriber)
  })
}

/** An operator of RxJS has `_complete` as a property of each of its subscribers: its own, or the one of `Subscriber`. */
function answersCompletion(subscriber: Subscriber<unknown>): boolean {
  const own: unknown = Object.getOwnPropertyDescriptor(subscriber, '_complete')?.value
  return own !== undefined && own !== Reflect.get(Subscriber.prototype, '_complete')
}

/**
 * The way through one operator, from its entries to its exit: `merge` has an entry for each source. Counts what enters and
 * what leaves. What leaves while nothing enters has waited; an operator of which nothing ever leaves so drops or gathers, as
 * `filter` and `reduce` do. One that passes on its first events at once keeps none, and is not counted further.
 */
class Passage {
  readonly #report: (ahead: number) => void
  #waiting = 0
  #entered = 0
  #isEntering = false
  #hasWaited = false
  /** Nothing is counted any more. */
  isOver = false
  readonly #exit: Probe

  /** The passage with this exit. The first source that asks for it is the one that is reported. */
  static to(exit: Subscriber<unknown>, report: (ahead: number) => void): Passage {
    const probe = Probe.on(exit)
    return (probe.exitOf ??= new Passage(probe, report))
  }

  private constructor(exit: Probe, report: (ahead: number) => void) {
    this.#exit = exit
    this.#report = report
  }

  /** A value enters. Returns whether another one was entering, for {@link entered}. */
  enter(): boolean {
    this.#waiting += 1
    this.#entered += 1
    const outer = this.#isEntering
    this.#isEntering = true
    return outer
  }

  /** The operator has taken the value in. */
  entered(outer: boolean): void {
    this.#isEntering = outer
    if (this.#waiting > BOUND) this.#check()
    else if (this.#entered === TRIAL && this.#waiting === 0 && !this.#hasWaited) this.#stop()
  }

  leave(value: unknown): void {
    // A window passes on what enters it, unseen from here.
    if (value instanceof Observable) return this.#stop()
    if (!this.#isEntering && !this.#hasWaited) {
      this.#hasWaited = true
      this.#check()
    }
    this.#waiting -= Array.isArray(value) ? value.length : 1
  }

  #check(): void {
    if (!this.#hasWaited || this.#waiting <= BOUND || this.isOver) return
    this.#stop()
    this.#report(this.#waiting)
  }

  #stop(): void {
    this.isOver = true
    this.#exit.exitOf = undefined
  }
}

/** Sees what a subscriber gets, which leaves one operator and enters the next. */
class Probe {
  static readonly #all = new WeakMap<Subscriber<unknown>, Probe>()
  entryOf: Passage | undefined
  exitOf: Passage | undefined
  readonly #subscriber: Subscriber<unknown>
  readonly #next: (value: unknown) => void

  static on(subscriber: Subscriber<unknown>): Probe {
    const known = Probe.#all.get(subscriber)
    if (known !== undefined) return known
    const probe = new Probe(subscriber)
    Probe.#all.set(subscriber, probe)
    return probe
  }

  private constructor(subscriber: Subscriber<unknown>) {
    this.#subscriber = subscriber
    this.#next = subscriber.next
    subscriber.next = (value) => this.#pass(value)
  }

  #pass(value: unknown): void {
    this.exitOf?.leave(value)
    if (this.entryOf?.isOver === true) this.entryOf = undefined
    const passage = this.entryOf
    if (passage === undefined) {
      if (this.exitOf === undefined) this.#remove()
      return this.#next.call(this.#subscriber, value)
    }
    const outer = passage.enter()
    this.#next.call(this.#subscriber, value)
    passage.entered(outer)
  }

  #remove(): void {
    this.#subscriber.next = this.#next
    Probe.#all.delete(this.#subscriber)
  }
}
