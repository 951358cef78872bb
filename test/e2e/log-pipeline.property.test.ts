import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { simulate } from './log-pipeline/simulation.ts'
import { anyScript } from './log-pipeline/script.ts'

/** A few seconds. */
const FEW = 40
/** For rare failures: `RUNS=20000 npx vitest run … --test-timeout=0`. */
const RUNS = Number(process.env['RUNS'] ?? FEW)

/**
 * `record` and consumers over a log against a scripted service, with these rules:
 *
 * - Every event that the service sent and still has is recorded, once in each revision, and the last revision is its most
 *   complete form. A gap reports those that the service dropped.
 * - Every webhook that was answered with 2xx is recorded, with what the service returns for it. None is recorded that is forged.
 * - A monitor's events are recorded oldest first, and those of a stream in order. No event is made up.
 * - Each consumer handles every entry that it wants, in the order of the log, and at most as many at once as its concurrency.
 * - An entry is saved as acknowledged only after it was handled, and within 100 ms. Once that is saved, it never comes again: so
 *   only entries repeat that were in flight, or were not saved yet, when their process was killed or the log refused a save.
 * - An entry that fails for good is a dead letter in the log, with the number of its attempts, until it is handed out again and
 *   handled.
 * - Nothing is deleted that a consumer has not handled, unless it was deleted before that consumer began.
 * - At the end every position is at the end of its stream, every consumer at the end of the log, the inbox empty, and other processes have nothing
 *   to do.
 */
it('records and handles everything under any faults of the service, the network, the log and the processes', async () => {
  await fc.assert(
    fc.asyncProperty(anyScript, async (script) => {
      const { violations, lines } = await simulate(script)

      expect(violations.length === 0 ? [] : lines).toEqual([])
    }),
    // Shrinking is limited: any counterexample is better than a timeout.
    { numRuns: RUNS, ...(process.env['RUNS'] === undefined && { interruptAfterTimeLimit: 6_000 }) },
  )
})
