import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { play } from './pipeline/play.ts'
import { anyScript } from './pipeline/script.ts'

/** A few seconds' worth. */
const FEW = 120
/** To look for something rare: `RUNS=20000 npx vitest run … --test-timeout=0`. */
const RUNS = Number(process.env['RUNS'] ?? FEW)

/**
 * `watch`, `deliver` and a checkpoint against a scripted service, with these rules:
 *
 * - What the service told and has not forgotten is handled, in its fullest copy; what it forgot before is said by a gap.
 * - Nothing is handled twice that was handled and saved, and nothing twice within one subscription, unless a copy says
 *   more than those before it. A transactional effect never takes place twice.
 * - What may come again was in flight when the process was killed, and that is as much as the concurrency allows.
 * - A monitor's events come oldest first, and those of a stream in its order. Nothing comes that did not happen.
 * - In the end every position is at the end of its stream, no webhook waits, and another process finds nothing to do.
 */
it('loses nothing and repeats nothing, whatever the service, the wire and the process do', async () => {
  await fc.assert(
    fc.asyncProperty(anyScript, async (script) => {
      const { violations, story } = await play(script)

      expect(violations.length === 0 ? [] : story).toEqual([])
    }),
    // Any counterexample is worth more than the smallest one that comes too late.
    { numRuns: RUNS, ...(process.env['RUNS'] === undefined && { interruptAfterTimeLimit: 15_000 }) },
  )
})
