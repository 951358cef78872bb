// A browser has no `setImmediate`.
const later: (work: () => void) => void = typeof setImmediate === 'function' ? setImmediate : setTimeout

/** Resolves once the event loop has done what is due in its present turn. */
export function afterThisTurn(): Promise<void> {
  return new Promise((resolve) => later(resolve))
}
