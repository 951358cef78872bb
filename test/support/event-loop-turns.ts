import { setImmediate } from 'node:timers/promises'

/** The number of turns of the event loop until the promise settles. */
export async function eventLoopTurns(promise: Promise<unknown>): Promise<number> {
  const settled = new AbortController()
  const settle = () => settled.abort()
  promise.then(settle, settle)
  let turns = 0
  for (; !settled.signal.aborted; turns += 1) await setImmediate()
  return turns
}
