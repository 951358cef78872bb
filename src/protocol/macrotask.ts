// A browser has no `setImmediate`.
const schedule: (work: () => void) => void = typeof setImmediate === 'function' ? setImmediate : setTimeout

/** Resolves in a later turn of the event loop, so that timers and sockets have theirs. */
export function macrotask(): Promise<void> {
  return new Promise((resolve) => schedule(resolve))
}
