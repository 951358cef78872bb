/** How long the error asks to wait before it is tried again, in ms; undefined where it does not say, or makes no sense. */
export function retryAfterOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('retryAfter' in error)) return undefined
  return usableDelay(error.retryAfter)
}

/** The value, where it can be a time to wait. */
export function usableDelay(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
