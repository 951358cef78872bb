import { describe, it } from 'vitest'
import { storeConformance } from 'rivulet/log/store'
import { describeAppend } from './conformance/append.ts'
import { describeClock, describeOwnClock } from './conformance/clock.ts'
import { opening } from './conformance/fixture.ts'
import { describeInboxModel } from './conformance/inbox-model.ts'
import { describeLogModel } from './conformance/model.ts'
import type { OpenFreshLog } from '../../src/log/store/conformance/area.ts'

/**
 * The suite that each store of a log passes, and what needs wrong clocks of the machine or generated values.
 *
 * @param isLocal Whether the log is on one machine, has no other clock than that of the machine, and counts its entries exactly.
 */
export function describeLogStore(name: string, openFresh: OpenFreshLog, isLocal = true): void {
  storeConformance({ describe, it }, { name, open: openFresh, isExact: isLocal })
  const open = opening(openFresh)
  describeClock(name, open)
  if (isLocal) describeOwnClock(name, open)
  describeAppend(name, open)
  describeInboxModel(name, open)
  describeLogModel(name, openFresh)
}
