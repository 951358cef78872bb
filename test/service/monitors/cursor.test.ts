import { describe, expect, it } from 'vitest'
import { decodeCursor, encodeCursor } from '../../../src/service/monitors/cursor.ts'

describe('a cursor', () => {
  it('decodes to its position', () => {
    expect(decodeCursor('monitor_a', encodeCursor('monitor_a', 42))).toBe(42)
  })

  it('is not valid in another list', () => {
    expect(decodeCursor('monitor_b', encodeCursor('monitor_a', 42))).toBeUndefined()
    expect(decodeCursor('monitor', encodeCursor('monitor_a', 42))).toBeUndefined()
  })

  it.each([
    '',
    'x',
    '42',
    encodeCursor('m', 0),
    encodeCursor('m', -1),
    encodeCursor('m', 1.5),
    `${encodeCursor('m', 1)}=`,
  ])('is not any other text: %j', (text) => {
    expect(decodeCursor('m', text)).toBeUndefined()
  })
})
