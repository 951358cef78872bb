import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { simulate } from './pipeline/simulation.ts'
import { anyScript } from './pipeline/script.ts'

/** A few seconds. */
const FEW = 120
/** For rare failures: `RUNS=20000 npx vitest run … --test-timeout=0`. */
const RUNS = Number(process.env['RUNS'] ?? FEW)

/**
 * `watch`, `deliver` and a checkpoint against a scripted service, with these rules:
 *
 * - Every event that the service sent and still has is handled, in its most complete form; a gap reports those it dropped.
 * - No event is handled twice after it was handled and saved, or within one subscription, except for a duplicate that is
 *   more complete. A transactional effect never happens twice.
 * - Only events that were in flight when the process was killed may repeat, at most as many as the concurrency.
 * - A monitor's events arrive oldest first, and those of a stream in order. No event is made up.
 * - At the end every position is at the end of its stream, no webhook waits, and another process has nothing to do.
 */
it('loses nothing and repeats nothing under any faults of the service, the network and the process', async () => {
  await fc.assert(
    fc.asyncProperty(anyScript, async (script) => {
      const { violations, trace } = await simulate(script)

      expect(violations.length === 0 ? [] : trace).toEqual([])
    }),
    // Shrinking is limited: any counterexample is better than a timeout.
    { numRuns: RUNS, ...(process.env['RUNS'] === undefined && { interruptAfterTimeLimit: 15_000 }) },
  )
})
