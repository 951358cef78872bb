import { describe, expect, it } from 'vitest'
import { MAX_RETRY_AFTER, parseRetryAfter } from '../../src/protocol/retry-after-header.ts'

describe('parseRetryAfter', () => {
  const now = Date.UTC(1994, 10, 6, 8, 49, 30)

  it.each([
    ['0', 0],
    ['5', 5_000],
    [' 1.5 ', 1_500],
    ['999999', MAX_RETRY_AFTER],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 7_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 7_000],
    ['Sun Nov  6 08:49:37 1994', 7_000],
    ['Sun, 06 Nov 1994 08:49:29 GMT', 0],
    ['Sun, 06 Nov 2094 08:49:37 GMT', MAX_RETRY_AFTER],
    ['', undefined],
    ['-5', undefined],
    ['soon', undefined],
    ['Sun, 99 Nov 1994', undefined],
    [undefined, undefined],
  ])('reads %o as %o ms', (value, delay) => {
    expect(parseRetryAfter(value, undefined, now)).toBe(delay)
  })

  it("compares a date with the response's own clock", () => {
    const date = 'Sun, 06 Nov 1994 08:49:00 GMT'

    expect(parseRetryAfter('Sun, 06 Nov 1994 08:49:37 GMT', date, now + 999_999)).toBe(37_000)
  })
})
