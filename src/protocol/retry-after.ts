/** The `retryAfter` of the error, in ms; undefined where it is absent or not a valid delay. */
export function retryAfterOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('retryAfter' in error)) return undefined
  return usableDelay(error.retryAfter)
}

/** The value if it is a valid delay, else undefined. */
export function usableDelay(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
