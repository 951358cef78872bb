import { Observable, Subscriber } from 'rxjs'
import { subscribersFrom } from '../../operators/gate.ts'
import type { Context } from './context.ts'
import { Source } from './source.ts'

/** Events that may wait within one operator before it is reported. */
const BOUND = 10_000

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
      countWaiting(entry, exit, (ahead) => context.report({ kind: 'backpressure', source: name, ahead }))
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
 * Counts what enters an operator and what leaves it. What leaves while nothing enters has waited; an operator of which
 * nothing ever leaves so drops or gathers, as `filter` and `reduce` do.
 */
function countWaiting(
  entry: Subscriber<unknown>,
  exit: Subscriber<unknown>,
  report: (ahead: number) => void,
): void {
  let waiting = 0
  let isEntering = false
  let hasWaited = false
  const enter = entry.next
  const leave = exit.next

  const stop = () => {
    entry.next = enter
    exit.next = leave
  }
  const check = () => {
    if (!hasWaited || waiting <= BOUND) return
    stop()
    report(waiting)
  }
  entry.next = (value) => {
    waiting += 1
    check()
    const outer = isEntering
    isEntering = true
    try {
      enter.call(entry, value)
    } finally {
      isEntering = outer
    }
  }
  exit.next = (value) => {
    // A window passes on what enters it, unseen from here.
    if (value instanceof Observable) stop()
    if (!isEntering) {
      hasWaited = true
      check()
    }
    waiting -= Array.isArray(value) ? value.length : 1
    leave.call(exit, value)
  }
}
