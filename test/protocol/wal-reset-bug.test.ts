import { describe, expect, it } from 'vitest'
import { hasWalResetBug } from '../../src/protocol/wal-reset-bug.ts'

describe('hasWalResetBug', () => {
  it.each([
    ['3.6.23', false],
    ['3.7.0', true],
    ['3.43.2', true],
    ['3.44.5', true],
    ['3.44.6', false],
    ['3.45.0', true],
    ['3.50.4', true],
    ['3.50.6', true],
    ['3.50.7', false],
    ['3.51.0', true],
    ['3.51.2', true],
    ['3.51.3', false],
    ['3.52.0', false],
    ['3.100.0', false],
    ['4.0', false],
    ['3.51', true],
    ['nonsense', true],
  ])('of SQLite %s is %s', (version, expected) => expect(hasWalResetBug(version)).toBe(expected))

  it('is false for the SQLite that runs these tests', () => {
    expect(hasWalResetBug(process.versions.sqlite ?? '')).toBe(false)
  })
})
