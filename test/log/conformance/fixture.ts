import { onTestFinished } from 'vitest'
import { opening as openingUntil } from '../../../src/log/store/conformance/suite.ts'
import type { Open, OpenFreshLog } from '../../../src/log/store/conformance/area.ts'

export { append, entriesOf, idsOf, readAll } from '../../../src/log/store/conformance/fixture.ts'
export type { LogUnderTest, Open, OpenFreshLog } from '../../../src/log/store/conformance/area.ts'

/** Opens fresh logs for tests, and removes each at the end of its test. */
export function opening(openFresh: OpenFreshLog): Open {
  return openingUntil(openFresh, (finish) => onTestFinished(finish))
}
