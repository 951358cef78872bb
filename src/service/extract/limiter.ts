/** Runs tasks, a bounded number at once, in order. */
export type Limiter = <T>(task: () => Promise<T>, signal: AbortSignal) => Promise<T>

/** Creates a limiter. A task that waits rejects with the signal's reason when it aborts. */
export function createLimiter(limit: number): Limiter {
  const waiting = new Set<() => void>()
  let running = 0

  async function enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (running < limit) {
      running += 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const start = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        waiting.delete(start)
        reject(signal.reason)
      }
      waiting.add(start)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  function exit(): void {
    const [next] = waiting
    if (next === undefined) {
      running -= 1
      return
    }
    // The next task takes the slot.
    waiting.delete(next)
    next()
  }

  return async (task, signal) => {
    await enter(signal)
    try {
      return await task()
    } finally {
      exit()
    }
  }
}
