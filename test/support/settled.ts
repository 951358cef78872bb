/** Number of unchanged turns of the event loop after which a value counts as settled. Each turn serves every socket. */
const TURNS = 200

/**
 * Resolves when the value is not zero and no longer changes. Counts turns of the event loop instead of time: both ends of
 * the sockets are in this process, so pending data arrives within a few turns.
 */
export async function settled(reading: () => number): Promise<void> {
  let last = 0
  for (let unchanged = 0; last === 0 || unchanged < TURNS; unchanged++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (reading() !== last) unchanged = 0
    last = reading()
  }
}
