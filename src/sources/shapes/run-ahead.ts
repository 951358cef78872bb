import { Observable, Subscriber } from 'rxjs'
import { subscribersFrom } from '../../protocol/gate.ts'
import type { Context } from '../context.ts'
import { Source } from './source.ts'

/** The most events that an operator may buffer without a report. */
const MAX_BUFFERED = 10_000
/** An operator that passes on this many events synchronously is taken for one without a buffer. */
const TRIAL = 1_000

/**
 * Reports operators that buffer events between the source and its consumer, at most once per operator and subscription.
 * `mergeMap` and `concatMap` with something slow, `zip` and `bufferTime` accept every event, so the consumer's gate never
 * closes.
 *
 * Searches the subscribers from the source to the consumer. An operator with a buffer has to handle the completion itself,
 * which most others leave to `Subscriber`. Without such an operator, nothing is counted.
 */
export function reportRunAhead<T>(
  context: Pick<Context, 'report'>,
  source: Observable<T>,
  name: string,
): Source<T> {
  const report = (ahead: number) => context.report({ kind: 'backpressure', source: name, ahead })
  return new Source((subscriber) => {
    if ([...subscribersFrom(subscriber)].some(overridesComplete)) countAfterFirst(subscriber, report)
    return source.subscribe(subscriber)
  })
}

/** The first values of a source are not counted, so that thousands of quiet sources have no counters. */
const UNCOUNTED = 10

function countAfterFirst<T>(subscriber: Subscriber<T>, report: (ahead: number) => void): void {
  const { next } = subscriber
  let values = 0
  subscriber.next = (value) => {
    if (++values <= UNCOUNTED) return next.call(subscriber, value)
    subscriber.next = next
    countBuffered(subscriber, report)
    subscriber.next(value)
  }
}

function countBuffered(subscriber: Subscriber<unknown>, report: (ahead: number) => void): void {
  const chain = [...subscribersFrom(subscriber)]
  for (const [index, input] of chain.entries()) {
    const output = chain[index + 1]
    if (output !== undefined && overridesComplete(input)) Probe.on(input).countInto(Probe.on(output), report)
  }
}

/** Each subscriber of an RxJS operator has a property `_complete`: its own, or the one of `Subscriber`. */
function overridesComplete(subscriber: Subscriber<unknown>): boolean {
  const own: unknown = Object.getOwnPropertyDescriptor(subscriber, '_complete')?.value
  return own !== undefined && own !== Reflect.get(Subscriber.prototype, '_complete')
}

/**
 * One operator, with its output and its inputs; `merge` has an input per source. A value that it emits while it receives none
 * was buffered. An operator that never does so drops values, as `filter` does, or emits at completion, as `reduce` does.
 */
class Operator {
  /** Counting has stopped: the operator was reported, or its output cannot be counted. */
  isStopped = false
  /** Number of inputs that are counted. */
  inputs = 0
  /** The input that is receiving a value or a completion. */
  #active: Input | undefined
  /** Inputs with buffered values. */
  readonly #buffering = new Set<Input>()

  /** Sets the input that receives a value or a completion. Returns what {@link restore} needs afterwards. */
  activate(input: Input): Input | undefined {
    const previous = this.#active
    this.#active = input
    return previous
  }

  restore(previous: Input | undefined): void {
    this.#active = previous
  }

  /** Called after the input has received a value. */
  received(input: Input): void {
    if (input.buffered > 0) {
      if (!input.isBuffering) {
        input.isBuffering = true
        this.#buffering.add(input)
      }
      if (input.buffered > MAX_BUFFERED && input.hasBuffer) this.#report(input)
    } else if (input.received >= TRIAL && !input.hasBuffer) {
      input.isCounted = false
      this.inputs -= 1
    }
  }

  /** Called before the operator emits a value. */
  emits(value: unknown): void {
    const active = this.#active
    active?.subtract(value)
    if (this.#buffering.size === 0) return
    for (const input of this.#buffering) {
      if (input !== active) {
        input.hasBuffer = true
        if (input.buffered > MAX_BUFFERED) return this.#report(input)
        input.subtract(value)
      }
      if (input.buffered === 0) {
        input.isBuffering = false
        this.#buffering.delete(input)
      }
    }
  }

  stop(): void {
    this.isStopped = true
    this.#buffering.clear()
  }

  #report(input: Input): void {
    if (this.isStopped) return
    this.stop()
    input.report(input.buffered)
  }
}

/** The values that an operator received from one source and has not emitted. */
class Input {
  buffered = 0
  received = 0
  /** Whether a value was emitted later than it was received. */
  hasBuffer = false
  isBuffering = false
  /** False once the first values were passed on synchronously. */
  isCounted = true
  readonly operator: Operator
  readonly report: (ahead: number) => void
  #last: unknown

  constructor(operator: Operator, report: (ahead: number) => void) {
    this.operator = operator
    this.report = report
    operator.inputs += 1
  }

  add(value: unknown): void {
    this.buffered += 1
    this.received += 1
    this.#last = value
  }

  subtract(value: unknown): void {
    // An array that ends with the last value is a buffer of received values. Any other array is one value.
    const isBuffer = Array.isArray(value) && value.length > 0 && value.at(-1) === this.#last
    this.buffered = Math.max(0, this.buffered - (isBuffer ? value.length : 1))
  }
}

/** Wraps `next` of a subscriber, which is the output of one operator and the input of the next. */
class Probe {
  static readonly #all = new WeakMap<Subscriber<unknown>, Probe>()
  readonly #subscriber: Subscriber<unknown>
  /** The subscriber's own `next`, while it is wrapped. */
  #next: ((value: unknown) => void) | undefined
  #outputOf: Operator | undefined
  #input: Input | undefined

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

  /** Counts this subscriber's values as input of the operator with this output. */
  countInto(output: Probe, report: (ahead: number) => void): void {
    const operator = (output.#outputOf ??= new Operator())
    // Several sources share the operators behind `merge`. Only the first source counts them.
    if (operator.isStopped || this.#input !== undefined) return
    const input = new Input(operator, report)
    this.#input = input
    const subscriber = this.#subscriber
    const { complete } = subscriber
    subscriber.complete = () => {
      const previous = operator.activate(input)
      try {
        complete.call(subscriber)
      } finally {
        operator.restore(previous)
      }
    }
    this.#install()
    output.#install()
  }

  #install(): void {
    if (this.#next !== undefined) return
    const { next } = this.#subscriber
    this.#next = next
    this.#subscriber.next = (value) => this.#pass(value, next)
  }

  #pass(value: unknown, next: (value: unknown) => void): void {
    const input = this.#input
    const isOutput = this.#outputOf !== undefined && this.#outputOf.inputs > 0 && !this.#outputOf.isStopped
    const isInput = input !== undefined && input.isCounted && !input.operator.isStopped
    if (isOutput) {
      // The values of a window are emitted by the window itself and cannot be counted here.
      if (value instanceof Observable) this.#outputOf?.stop()
      else this.#outputOf?.emits(value)
    }
    if (!isInput) {
      if (!isOutput) this.#remove()
      return next.call(this.#subscriber, value)
    }
    const { operator } = input
    input.add(value)
    const previous = operator.activate(input)
    try {
      next.call(this.#subscriber, value)
    } finally {
      operator.restore(previous)
    }
    operator.received(input)
  }

  #remove(): void {
    if (this.#next !== undefined) this.#subscriber.next = this.#next
    this.#next = undefined
  }
}
