import { TestScheduler } from 'rxjs/testing'
import type { RunHelpers } from 'rxjs/testing'
import { expect } from 'vitest'

/** Runs a marble test: one character is 1 ms of virtual time, and no time passes outside. */
export function inVirtualTime(test: (helpers: RunHelpers, scheduler: TestScheduler) => void): void {
  const scheduler = new TestScheduler((actual, expected) => expect(actual).toEqual(expected))
  scheduler.run((helpers) => test(helpers, scheduler))
}
