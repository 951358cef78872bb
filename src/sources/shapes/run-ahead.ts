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
  const report = (ahead: number) => context.report({ kind: 'backpressure', source: name, ahead })
  return new Source((subscriber) => {
    if ([...subscribersFrom(subscriber)].some(answersCompletion)) countLater(subscriber, report)
    return source.subscribe(subscriber)
  })
}

/** Values of a source that go uncounted, so that thousands of silent sources hold no counters. */
const UNCOUNTED = 10

function countLater<T>(subscriber: Subscriber<T>, report: (ahead: number) => void): void {
  const { next } = subscriber
  let values = 0
  subscriber.next = (value) => {
    if (++values <= UNCOUNTED) return next.call(subscriber, value)
    subscriber.next = next
    countWaiting(subscriber, report)
    subscriber.next(value)
  }
}

function countWaiting(subscriber: Subscriber<unknown>, report: (ahead: number) => void): void {
  const chain = [...subscribersFrom(subscriber)]
  for (const [index, entry] of chain.entries()) {
    const exit = chain[index + 1]
    if (exit !== undefined && answersCompletion(entry)) Probe.on(entry).enters(Probe.on(exit), report)
  }
}

/** An operator of RxJS has `_complete` as a property of each of its subscribers: its own, or the one of `Subscriber`. */
function answersCompletion(subscriber: Subscriber<unknown>): boolean {
  const own: unknown = Object.getOwnPropertyDescriptor(subscriber, '_complete')?.value
  return own !== undefined && own !== Reflect.get(Subscriber.prototype, '_complete')
}

/**
 * One operator, with its exit and its entries: `merge` has an entry for each source. What leaves while nothing enters has
 * waited. An operator of which nothing leaves so drops, as `filter` does, or gathers until the source completes, as `reduce`
 * does.
 */
class Operator {
  /** Nothing is counted any more: it was reported, or cannot be seen from here. */
  isOver = false
  /** Entries that are counted. */
  entries = 0
  /** The entry by which something enters, or whose source completes. */
  #active: Entry | undefined
  /** Entries of which something waits. */
  readonly #behind = new Set<Entry>()

  /** Something enters by this entry, or its source completes. Returns what {@link end} needs. */
  begin(entry: Entry): Entry | undefined {
    const outer = this.#active
    this.#active = entry
    return outer
  }

  end(outer: Entry | undefined): void {
    this.#active = outer
  }

  entered(entry: Entry): void {
    if (entry.waiting > 0) {
      if (!entry.isBehind) {
        entry.isBehind = true
        this.#behind.add(entry)
      }
      if (entry.waiting > BOUND && entry.hasWaited) this.#report(entry)
    } else if (entry.entered >= TRIAL && !entry.hasWaited) {
      entry.isCounted = false
      this.entries -= 1
    }
  }

  left(value: unknown): void {
    const active = this.#active
    active?.left(value)
    if (this.#behind.size === 0) return
    for (const entry of this.#behind) {
      if (entry !== active) {
        entry.hasWaited = true
        if (entry.waiting > BOUND) return this.#report(entry)
        entry.left(value)
      }
      if (entry.waiting === 0) {
        entry.isBehind = false
        this.#behind.delete(entry)
      }
    }
  }

  /** Counts no more. */
  stop(): void {
    this.isOver = true
    this.#behind.clear()
  }

  #report(entry: Entry): void {
    if (this.isOver) return
    this.stop()
    entry.report(entry.waiting)
  }
}

/** What enters an operator from one side, and has not left it. */
class Entry {
  waiting = 0
  entered = 0
  hasWaited = false
  isBehind = false
  /** One that passed its first events on at once is not counted further. */
  isCounted = true
  readonly operator: Operator
  readonly report: (ahead: number) => void
  #last: unknown

  constructor(operator: Operator, report: (ahead: number) => void) {
    this.operator = operator
    this.report = report
    operator.entries += 1
  }

  enter(value: unknown): void {
    this.waiting += 1
    this.entered += 1
    this.#last = value
  }

  left(value: unknown): void {
    // A buffer hands out what has entered. Any other array is one value.
    const isBuffer = Array.isArray(value) && value.length > 0 && value.at(-1) === this.#last
    this.waiting = Math.max(0, this.waiting - (isBuffer ? value.length : 1))
  }
}

/** Sees what a subscriber gets: it leaves one operator and enters the next. */
class Probe {
  static readonly #all = new WeakMap<Subscriber<unknown>, Probe>()
  readonly #subscriber: Subscriber<unknown>
  /** The subscriber's own, while this one is in its place. */
  #next: ((value: unknown) => void) | undefined
  #exitOf: Operator | undefined
  #entry: Entry | undefined

  static on(subscriber: Subscriber<unknown>): Probe {
    const known = Probe.#all.get(subscriber)
    if (known !== undefined) return known
    const probe = new Probe(subscriber)
    Probe.#all.set(subscriber, probe)
    return probe
  }

  private constructor(subscriber: Subscriber<unknown>) {
    this.#subscriber = subscriber
  }

  /** What the subscriber gets enters the operator with this exit. */
  enters(exit: Probe, report: (ahead: number) => void): void {
    const operator = (exit.#exitOf ??= new Operator())
    // Several sources share the operators behind `merge`: the first that comes has them counted.
    if (operator.isOver || this.#entry !== undefined) return
    const entry = new Entry(operator, report)
    this.#entry = entry
    const subscriber = this.#subscriber
    const { complete } = subscriber
    subscriber.complete = () => {
      const outer = operator.begin(entry)
      try {
        complete.call(subscriber)
      } finally {
        operator.end(outer)
      }
    }
    this.#install()
    exit.#install()
  }

  #install(): void {
    if (this.#next !== undefined) return
    const { next } = this.#subscriber
    this.#next = next
    this.#subscriber.next = (value) => this.#pass(value, next)
  }

  #pass(value: unknown, next: (value: unknown) => void): void {
    const entry = this.#entry
    const isLeaving = this.#exitOf !== undefined && this.#exitOf.entries > 0 && !this.#exitOf.isOver
    const isEntering = entry !== undefined && entry.isCounted && !entry.operator.isOver
    if (isLeaving) {
      // A window passes on what enters it, unseen from here.
      if (value instanceof Observable) this.#exitOf?.stop()
      else this.#exitOf?.left(value)
    }
    if (!isEntering) {
      if (!isLeaving) this.#remove()
      return next.call(this.#subscriber, value)
    }
    const { operator } = entry
    entry.enter(value)
    const outer = operator.begin(entry)
    try {
      next.call(this.#subscriber, value)
    } finally {
      operator.end(outer)
    }
    operator.entered(entry)
  }

  #remove(): void {
    if (this.#next !== undefined) this.#subscriber.next = this.#next
    this.#next = undefined
  }
}
