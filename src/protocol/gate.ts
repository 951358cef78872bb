import { Observable, Subscriber } from 'rxjs'
import type { Observer, Subscription } from 'rxjs'

/**
 * Backpressure: a consumer closes its gate to pause its sources, and opens it to resume them. RxJS pushes, so a source
 * cannot see that its subscriber is slow.
 *
 * A consumer subscribes with `underGate`; a source gets the gate of its consumer from {@link gateOf}. After the gate closes,
 * events that a source has already read may still arrive: at most one chunk or one page.
 */
export class Gate {
  #closed = false
  readonly #listeners = new Set<(closed: boolean) => void>()

  /** Whether sources must pause. */
  get closed(): boolean {
    return this.#closed
  }

  /** Pauses the sources. */
  close(): void {
    this.#set(true)
  }

  /** Resumes the sources. */
  open(): void {
    this.#set(false)
  }

  /** Calls the listener at each change. Returns a function that removes it. */
  onChange(listener: (closed: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #set(closed: boolean): void {
    if (this.#closed === closed) return
    this.#closed = closed
    // Not with `closed`: a resumed source may fill its consumer, which closes the gate again before the other listeners run.
    for (const listener of this.#listeners) listener(this.#closed)
  }
}

// A source finds the gate by following the chain of subscribers to its consumer. This also works for a late subscription, by
// `switchMap` or after the delay of a `retry`.
const gates = new WeakMap<Subscriber<unknown>, Gate>()

// An operator that subscribes with its own observer breaks that chain. Usually it does so while its consumer subscribes, which
// is synchronous from the consumer up to every source. During that time the gate is here.
let ambient: Gate | undefined

/**
 * The gate that a source must obey while this subscriber is subscribed; undefined for a consumer without one. Call it while
 * the source is being subscribed.
 *
 * ```ts
 * import { Observable } from 'rxjs'
 * import { gateOf } from 'rivulet/operators'
 *
 * const numbers = new Observable<number>((subscriber) => {
 *   const gate = gateOf(subscriber)
 *   let n = 0
 *   const timer = setInterval(() => gate?.closed !== true && subscriber.next(n++), 10)
 *   return () => clearInterval(timer)
 * })
 * ```
 *
 * It is found through operators that are unaware of it, whenever they subscribe to the source. Two kinds may hide it:
 * multicasting (`share`, a `Subject`), and a custom operator that subscribes with an observer. There, pass it on:
 * `source.pipe(underGate(gateOf(subscriber))).subscribe({ next, error, complete })`.
 */
export function gateOf(subscriber: Subscriber<unknown>): Gate | undefined {
  let last = subscriber
  for (const next of subscribersFrom(subscriber)) {
    const gate = gates.get(next)
    if (gate !== undefined) return gate
    last = next
  }
  // Stored for a source that subscribes later, when there is no ambient gate.
  if (ambient !== undefined) gates.set(last, ambient)
  return ambient
}

/** The chain of subscribers from this one to the consumer, or to an operator that hides its destination. */
function* subscribersFrom(subscriber: Subscriber<unknown>): Generator<Subscriber<unknown>> {
  // `destination` is private in RxJS, but there is no public way to follow the chain. A test of each kind of operator guards it.
  for (let next: unknown = subscriber; next instanceof Subscriber; next = next['destination']) yield next
}

/** The gate of the consumer that is currently subscribing. */
export function currentGate(): Gate | undefined {
  return ambient
}

/** Calls `subscribe` with this gate as the current one; undefined for a consumer without backpressure. */
export function withGate<T>(gate: Gate | undefined, subscribe: () => T): T {
  const outer = ambient
  ambient = gate
  try {
    return subscribe()
  } finally {
    ambient = outer
  }
}

/** Subscribes under the subscriber's own gate, so that even an operator that hides the subscriber passes it on. */
export function subscribeWithGate<T>(source: Observable<T>, subscriber: Subscriber<T>): Subscription {
  return withGate(gateOf(subscriber), () => source.subscribe(subscriber))
}

/**
 * Subscribes a consumer under this gate. Sources that are subscribed for it, now or later, obey it.
 *
 * @param outer The gate of the consumer's own subscriber; undefined if it has none.
 */
export function subscribeUnderGate<T>(
  gate: Gate,
  outer: Gate | undefined,
  source: Observable<T>,
  consumer: Observer<T>,
): Subscription {
  const gated = new Observable<T>((subscriber) => {
    gates.set(subscriber, gate)
    return withGate(gate, () => source.subscribe(subscriber))
  })
  // A source that emits synchronously does so while this gate is ambient. Subscriptions downstream must not find it.
  return gated.subscribe({
    next: (value) => (ambient === gate ? withGate(outer, () => consumer.next(value)) : consumer.next(value)),
    error: (error: unknown) => withGate(outer, () => consumer.error(error)),
    complete: () => withGate(outer, () => consumer.complete()),
  })
}
