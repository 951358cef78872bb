import { describe, expect, it } from 'vitest'
import { retryDelay } from '../../src/protocol/backoff.ts'

const backoff = { initialDelay: 1_000, maxDelay: 8_000 }
const attempts = [0, 1, 2, 3, 4, 1_000]

describe('the wait before another attempt', () => {
  it.each([
    ['the jitter', undefined, 0.5, [500, 1_000, 2_000, 4_000, 4_000, 4_000]],
    ['a Retry-After of 0', 0, 0.5, [500, 1_000, 2_000, 4_000, 4_000, 4_000]],
    ['a Retry-After of 1.5 s', 1_500, 0.5, [1_500, 1_500, 2_000, 4_000, 4_000, 4_000]],
    ['a Retry-After that is no number', '7', 0.5, [500, 1_000, 2_000, 4_000, 4_000, 4_000]],
    ['a random of 0', 0, 0, [10, 20, 40, 80, 80, 80]],
  ])('grows with each failure, whatever is %s', (_, retryAfter, random, delays) => {
    const error = Object.assign(new Error('refused'), { retryAfter })

    expect(attempts.map((attempt) => retryDelay(error, attempt, backoff, () => random))).toEqual(delays)
  })
})
