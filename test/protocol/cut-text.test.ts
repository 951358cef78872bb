import { expect, it } from 'vitest'
import { cutText } from '../../src/protocol/cut-text.ts'

it.each([
  ['abc', 2, 'ab'],
  ['abc', 3, 'abc'],
  ['abc', 9, 'abc'],
  ['abc', 0, ''],
  ['a😀b', 2, 'a'],
  ['a😀b', 3, 'a😀'],
  ['😀', 1, ''],
  ['a\uD83D', 2, 'a\uD83D'],
])('%j has at most %i characters, and no half of a pair that was cut: %j', (text, length, expected) => {
  expect(cutText(text, length)).toBe(expected)
})
