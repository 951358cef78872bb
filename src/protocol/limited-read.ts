/**
 * Returns a function that reads, and resolves with undefined when that takes longer than the limit. Calls share the read that is under way, so
 * one that never ends is not followed by others.
 *
 * @param limit In ms.
 */
export function limitedRead<Result>(
  read: () => Promise<Result>,
  limit: number,
): () => Promise<Result | undefined> {
  let reading: Promise<Result> | undefined
  return async () => {
    reading ??= read().finally(() => (reading = undefined))
    const { promise: late, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => resolve(undefined), limit)
    try {
      return await Promise.race([reading, late])
    } finally {
      clearTimeout(timer)
    }
  }
}
