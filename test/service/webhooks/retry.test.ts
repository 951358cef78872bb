import { describe, expect, it } from 'vitest'
import { nextAttempt } from '../../../src/service/webhooks/retry.ts'

const HOUR = 3_600_000

describe('nextAttempt', () => {
  it('waits 5 s after the first failure, and twice as long after each later one', () => {
    const delays = [1, 2, 3, 4, 5].map((failures) => nextAttempt(0, failures, 0))

    expect(delays).toEqual([5_000, 10_000, 20_000, 40_000, 80_000])
  })

  it('counts from the failure, not from the attempt before it', () => {
    expect(nextAttempt(0, 2, 7_000)).toBe(17_000)
  })

  it('returns no attempt later than 48 hours after the creation', () => {
    expect(nextAttempt(0, 1, 48 * HOUR - 5_000)).toBe(48 * HOUR)
    expect(nextAttempt(0, 1, 48 * HOUR - 4_999)).toBeUndefined()
  })
})
