/** The number of limits after which a read that has not ended is given up, the first time. */
const GIVEN_UP = 10

/**
 * Returns a function that reads, and resolves with undefined when that takes longer than the limit. Calls share the read that is under way.
 * A read that does not end is given up, and the next call begins another one: later each time, so that reads that never end stay few.
 *
 * @param limit In ms.
 */
export function limitedRead<Result>(
  read: () => Promise<Result>,
  limit: number,
): () => Promise<Result | undefined> {
  let reading: { readonly result: Promise<Result>; readonly until: number } | undefined
  let patience = GIVEN_UP * limit

  function begin() {
    if (reading !== undefined) patience *= 2
    const own = { result: read().finally(() => end(own)), until: performance.now() + patience }
    return own
  }
  function end(ended: typeof reading): void {
    if (reading !== ended) return
    reading = undefined
    patience = GIVEN_UP * limit
  }

  return async () => {
    if (reading === undefined || performance.now() >= reading.until) reading = begin()
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => resolve(undefined), limit)
    try {
      return await Promise.race([reading.result, late])
    } finally {
      clearTimeout(timer)
    }
  }
}
