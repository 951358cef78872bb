import { describeAppending } from './conformance/appending.ts'
import { describeClaims } from './conformance/claims.ts'
import { describeClock, describeOwnClock } from './conformance/clock.ts'
import { describeClosing } from './conformance/closing.ts'
import { describeDuplicates } from './conformance/duplicates.ts'
import { describeDeadLetters } from './conformance/dead-letters.ts'
import { opening } from './conformance/fixture.ts'
import type { OpenFreshLog } from './conformance/fixture.ts'
import { describeForgetting } from './conformance/forgetting.ts'
import { describeHostileEvents } from './conformance/hostile-events.ts'
import { describeInbox } from './conformance/inbox.ts'
import { describeLogModel } from './conformance/model.ts'
import { describeProcesses } from './conformance/processes.ts'
import { describeReaders } from './conformance/readers.ts'
import { describeReading } from './conformance/reading.ts'
import { describeRetention } from './conformance/retention.ts'
import { describeSharing } from './conformance/sharing.ts'
import { describeStats } from './conformance/stats.ts'
import { describeWaiting } from './conformance/waiting.ts'

/**
 * The suite that each store of a log passes.
 *
 * @param isLocal Whether the log is on one machine, has no other clock than that of the machine, and counts its entries exactly.
 */
export function describeLogStore(name: string, openFresh: OpenFreshLog, isLocal = true): void {
  const open = opening(openFresh)
  describeClaims(name, open)
  describeAppending(name, open)
  describeDuplicates(name, open)
  describeHostileEvents(name, open)
  describeReading(name, open)
  describeWaiting(name, open)
  describeReaders(name, open)
  describeProcesses(name, open)
  describeDeadLetters(name, open)
  describeInbox(name, open)
  describeRetention(name, open)
  describeStats(name, open, isLocal)
  describeSharing(name, open)
  describeForgetting(name, open, isLocal)
  describeClock(name, open)
  if (isLocal) describeOwnClock(name, open)
  describeClosing(name, open)
  describeLogModel(name, openFresh)
}
