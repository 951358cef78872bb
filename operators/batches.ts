/*
 * What `deliver` knows of the arrays that `batch` has made: it joins those that wait, and divides those that fail. Other arrays stay as they
 * are, since a handler may need all of their values at once.
 */

/** A subscription of `batch`. */
export interface BatchOrigin {
  /** Maximum number of values of a batch. */
  readonly size: number
}

interface BatchInfo {
  readonly origin: BatchOrigin
  readonly key: string | undefined
  /** Number of calls of the handler in which it was a part of a larger batch. */
  readonly attempts: number
}

const batches = new WeakMap<object, BatchInfo>()

/** Notes that these values are a batch. */
export function noteBatch(values: readonly unknown[], origin: BatchOrigin, key: string | undefined): void {
  batches.set(values, { origin, key, attempts: 0 })
}

/** Number of calls of the handler that this value has taken part in, within larger batches. */
export function attemptsInBatches(event: unknown): number {
  return infoOf(event)?.attempts ?? 0
}

/** Whether it is a part of a divided batch that can be divided further. */
export function isDivisiblePart(event: unknown): boolean {
  return attemptsInBatches(event) > 0 && Array.isArray(event) && event.length > 1
}

/**
 * The values of two batches in as few batches as they need, in order: the first one is full if there is a second one. Undefined if nothing
 * changes: the first one is full, they have different keys, or one of them was tried before.
 */
export function joinedBatches<T>(first: T, second: T): readonly [T, T?] | undefined {
  const [before, after] = [infoOf(first), infoOf(second)]
  if (before === undefined || after === undefined || !Array.isArray(first) || !Array.isArray(second))
    return undefined
  const { origin, key } = before
  const isAlike = origin === after.origin && key === after.key && before.attempts + after.attempts === 0
  if (!isAlike || first.length >= origin.size) return undefined
  const values = [...first, ...second]
  const joined = noted<T>(values.slice(0, origin.size), before)
  return values.length <= origin.size ? [joined] : [joined, noted<T>(values.slice(origin.size), before)]
}

/** The halves of a batch; undefined for anything else, and for a single value. */
export function halvesOf<T>(event: T, attempts: number): readonly [T, T] | undefined {
  const info = infoOf(event)
  if (info === undefined || !Array.isArray(event) || event.length < 2) return undefined
  const middle = Math.ceil(event.length / 2)
  const part = { ...info, attempts }
  return [noted(event.slice(0, middle), part), noted(event.slice(middle), part)]
}

/** The array as another batch of the same type. */
function noted<T>(values: readonly unknown[], info: BatchInfo): T {
  batches.set(values, info)
  // A batch of other values of the same batches has their type.
  return values as T
}

function infoOf(event: unknown): BatchInfo | undefined {
  return Array.isArray(event) ? batches.get(event) : undefined
}
