/** Calls each listener. An error that one of them throws becomes an uncaught error, and the others are called. */
export function callAll<Value>(listeners: Iterable<(value: Value) => void>, value: Value): void {
  for (const listener of Array.from(listeners)) {
    try {
      listener(value)
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
}
