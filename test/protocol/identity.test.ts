import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { contentHash } from '../../src/protocol/identity.ts'

it('the hash of a content is the same only for equal JSON', () => {
  const small = fc.letrec((value) => ({
    any: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(null, true, 0, 1, '', '1', 'a', '[', '{1 '),
      fc.array(value('any'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', ''), value('any'), { maxKeys: 3 }),
    ),
  })).any
  fc.assert(
    fc.property(small, small, (one, other) => {
      expect(contentHash(JSON.parse(JSON.stringify(one)))).toBe(contentHash(one))
      expect(contentHash(one) === contentHash(other)).toBe(JSON.stringify(one) === JSON.stringify(other))
    }),
    { numRuns: 2_000 },
  )
})

it('undefined fields do not change the hash of a content', () => {
  expect(contentHash({ a: 1, b: undefined })).toBe(contentHash({ a: 1 }))
})

it('a content may be nested as deeply as JSON.parse allows', () => {
  const nested = (text: string) => JSON.parse('['.repeat(100_000) + text + ']'.repeat(100_000))

  expect(contentHash(nested('1'))).toBe(contentHash(nested('1')))
  expect(contentHash(nested('1'))).not.toBe(contentHash(nested('2')))
})
