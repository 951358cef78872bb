import { Observable, Subscriber } from 'rxjs'
import type { Observer, Subscription } from 'rxjs'

/**
 * A consumer's way to hold back its sources. RxJS pushes: a source that reads a socket cannot know that its subscriber
 * is behind. So the consumer closes the gate that it subscribed through, and sources stop reading while it is closed.
 *
 * A consumer subscribes with `underGate`, and a source asks {@link gateOf} for the gate that it is held by.
 *
 * Events that a source had already read when the gate closed may still arrive: at the most one chunk or one page.
 */
export class Gate {
  #closed = false
  readonly #listeners = new Set<(closed: boolean) => void>()

  /** Whether sources shall stop reading. */
  get closed(): boolean {
    return this.#closed
  }

  /** Asks sources to stop reading. */
  close(): void {
    this.#set(true)
  }

  /** Lets sources read again. */
  open(): void {
    this.#set(false)
  }

  /** Calls the listener at each change until the function that it returns is called. */
  onChange(listener: (closed: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #set(closed: boolean): void {
    if (this.#closed === closed) return
    this.#closed = closed
    // Not with `closed`: a source that is let go on may fill its consumer at once, who closes again before the others hear.
    for (const listener of this.#listeners) listener(this.#closed)
  }
}

// A source finds the gate of its consumer along the subscribers between them: each knows the one that it feeds. So it is
// found whenever the source is subscribed, by `switchMap` or after the delay of a `retry` as well.
const gates = new WeakMap<Subscriber<unknown>, Gate>()

// An operator that subscribes with an observer of its own hides the subscriber that it feeds. Mostly it does so while its
// consumer subscribes, and that is synchronous from the consumer up to every source: meanwhile the gate stands here.
let ambient: Gate | undefined

/**
 * The gate that holds what this subscriber is sent, for a source to obey as long as it is subscribed; undefined where
 * nobody does. To be asked while the source is being subscribed.
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
 * It is found through operators that know nothing of it, whenever they subscribe to the source. Two kinds may hide it: what
 * shares one subscription among several (`share`, a `Subject`), and an operator of your own that subscribes with an
 * observer. There, hand it on: `source.pipe(underGate(gateOf(subscriber))).subscribe({ next, error, complete })`.
 */
export function gateOf(subscriber: Subscriber<unknown>): Gate | undefined {
  let last = subscriber
  for (const next of subscribersFrom(subscriber)) {
    const gate = gates.get(next)
    if (gate !== undefined) return gate
    last = next
  }
  // What feeds the last one later shall find it too, when nobody is subscribing any more.
  if (ambient !== undefined) gates.set(last, ambient)
  return ambient
}

/** The subscriber, the one that it feeds, and so on to the consumer, or to an operator that hides the one that it feeds. */
export function* subscribersFrom(subscriber: Subscriber<unknown>): Generator<Subscriber<unknown>> {
  // RxJS keeps `destination` to itself, but has no other way to tell where values go.
  for (let next: unknown = subscriber; next instanceof Subscriber; next = next['destination']) yield next
}

/** The gate of the consumer that is subscribing right now. */
export function currentGate(): Gate | undefined {
  return ambient
}

/** Calls `subscribe` on behalf of a consumer with this gate; undefined for one that holds nobody back. */
export function throughGate<T>(gate: Gate | undefined, subscribe: () => T): T {
  const outer = ambient
  ambient = gate
  try {
    return subscribe()
  } finally {
    ambient = outer
  }
}

/** Subscribes under the gate that holds the subscriber, so that it is found even by an operator that hides the subscriber. */
export function subscribeHeld<T>(source: Observable<T>, subscriber: Subscriber<T>): Subscription {
  return throughGate(gateOf(subscriber), () => source.subscribe(subscriber))
}

/**
 * Subscribes on behalf of a consumer with this gate: what is subscribed for it obeys, now and later.
 *
 * @param outer The gate that holds what the consumer feeds; undefined where it feeds nobody who has one.
 */
export function subscribeThrough<T>(
  gate: Gate,
  outer: Gate | undefined,
  source: Observable<T>,
  consumer: Observer<T>,
): Subscription {
  const held = new Observable<T>((subscriber) => {
    gates.set(subscriber, gate)
    return throughGate(gate, () => source.subscribe(subscriber))
  })
  // A source that emits within its subscription does so while this gate is the ambient one. What is subscribed behind the
  // consumer is not to take it for its own.
  return held.subscribe({
    next: (value) =>
      ambient === gate ? throughGate(outer, () => consumer.next(value)) : consumer.next(value),
    error: (error: unknown) => throughGate(outer, () => consumer.error(error)),
    complete: () => throughGate(outer, () => consumer.complete()),
  })
}
