/** Calls a function in a later turn of the event loop. Only Node and compatible runtimes have `setImmediate`. */
export const later: (work: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : setTimeout
