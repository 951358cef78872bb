import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { busyError, isBusy } from './sqlite-error.ts'

/** The longest time between two attempts, in ms. A write transaction takes up to 10 ms. */
const MAX_RETRY_DELAY = 20

/**
 * Runs the work again while another connection holds a lock that it needs, for at most `patience` ms. Between two attempts the
 * event loop is free; SQLite's own busy timeout would block it.
 *
 * @param limit Returns the deadline, by `performance.now`. It may change meanwhile.
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

  /**
   * Runs the work after all earlier work, and again while it is busy: see {@link whileBusy}. The time behind earlier work is part
   * of its patience: work that has not begun by then is given up.
   */
  run<Result>(work: () => Result, patience: number, limit?: () => number): Promise<Result> {
    const deadline = performance.now() + patience
    return new Promise((resolve, reject) => {
      let isGivenUp = false
      const timer = setTimeout(() => {
        isGivenUp = true
        reject(busyError())
      }, patience)
      const result = this.#last.then(() => {
        clearTimeout(timer)
        if (isGivenUp) throw busyError()
        return whileBusy(work, deadline - performance.now(), limit)
      })
      this.#last = result.then(
        () => nextTurn(),
        () => nextTurn(),
      )
      result.then(resolve, reject)
    })
  }
}
