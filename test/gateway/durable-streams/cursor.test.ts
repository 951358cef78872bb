import { describe, expect, it } from 'vitest'
import { nextCursor } from '../../../src/gateway/durable-streams/cursor.ts'

const START = Date.UTC(2024, 9, 9)

describe('the cursor of a response', () => {
  it('is the number of intervals of 20 s since October 9, 2024', () => {
    expect(nextCursor(null, START + 39_999)).toBe('1')
    expect(nextCursor(null, START + 40_000)).toBe('2')
  })

  it.each(['0', '1', '', 'x', '-5', '1e3', '9'.repeat(16), 'NaN'])(
    'is the current one after %j, which is behind or none',
    (given) => {
      expect(nextCursor(given, START + 40_000)).toBe('2')
    },
  )

  it("is more than the client's by up to an hour where that is not behind", () => {
    expect(nextCursor('2', START + 40_000, () => 0)).toBe('3')
    expect(nextCursor('2', START + 40_000, () => 1 - Number.EPSILON)).toBe('182')
    expect(nextCursor('7', START + 40_000, () => 0)).toBe('8')
  })
})
