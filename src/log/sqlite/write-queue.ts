import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { isBusy } from './sqlite-error.ts'

/** The longest time between two attempts, in ms. A write transaction takes up to 10 ms. */
const MAX_RETRY_DELAY = 20

/**
 * Runs the work again while another connection holds a lock that it needs, for at most `patience` ms. Between two attempts the
 * event loop is free; SQLite's own busy timeout would block it.
 *
 * @param limit The latest end of it, by `performance.now`. It may change meanwhile.
 */
export async function whileBusy<Result>(
  work: () => Result,
  patience: number,
  limit = () => Infinity,
): Promise<Result> {
  const deadline = performance.now() + patience
  for (let pause = 2; ; pause = Math.min(pause * 2, MAX_RETRY_DELAY)) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || performance.now() >= Math.min(deadline, limit())) throw error
    }
    // Random, so that two writers do not meet again and again.
    await delay(Math.random() * pause)
  }
}

/**
 * Runs the write transactions of one connection one after the other, so that retried ones do not overtake each other. Each has a
 * turn of the event loop of its own: many at once would block it, and keep other processes from writing.
 */
export class WriteQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs the work after all earlier work, and again while it is busy: see {@link whileBusy}. */
  run<Result>(work: () => Result, patience: number, limit?: () => number): Promise<Result> {
    const result = this.#last.then(() => whileBusy(work, patience, limit))
    this.#last = result.then(
      () => nextTurn(),
      () => nextTurn(),
    )
    return result
  }
}
