import { TestScheduler } from 'rxjs/testing'
import type { RunHelpers } from 'rxjs/testing'
import { expect } from 'vitest'
import { withoutReceived } from './events.ts'

/** Runs a marble test: one character is 1 ms of virtual time, and no time passes outside. */
export function inVirtualTime(test: (helpers: RunHelpers, scheduler: TestScheduler) => void): void {
  const scheduler = new TestScheduler((actual, expected) =>
    expect(withoutReceived(actual)).toEqual(withoutReceived(expected)),
  )
  scheduler.run((helpers) => test(helpers, scheduler))
}
