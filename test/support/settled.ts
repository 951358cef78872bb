/** Turns of the event loop without a change that pass for "no more comes". Each turn serves every socket. */
const TURNS = 200

/**
 * Resolves when the reading has left zero and then stays as it is. This is counted in turns of the event loop and not in
 * time: both ends of the sockets live in this process, so that what can move moves within a few turns.
 */
export async function settled(reading: () => number): Promise<void> {
  let last = 0
  for (let still = 0; last === 0 || still < TURNS; still++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (reading() !== last) still = 0
    last = reading()
  }
}
