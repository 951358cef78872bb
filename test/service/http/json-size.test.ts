import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { limitExceeded } from '../../../src/service/http/json-size.ts'

const limits = { levels: 3, values: 5 }
const exceeded = (json: string) => limitExceeded(Buffer.from(json), limits)

describe('limitExceeded', () => {
  it.each([
    ['[[[1]]]', undefined],
    ['[[[[]]]]', 'levels'],
    ['{"a":{"b":{"c":{}}}}', 'levels'],
    ['[1,2,3,4,5]', undefined],
    ['[1,2,3,4,5,6]', 'values'],
    ['[[],[],[]]', 'values'],
    ['"[[[[,,,,,,"', undefined],
    [String.raw`["\"[[[[",",,,,,,\\",1]`, undefined],
    [String.raw`["\\",[],[],[]]`, 'values'],
    ['["never closed [[[[[', undefined],
    ['', undefined],
  ])('of %s is %s', (json, expected) => expect(exceeded(json)).toBe(expected))

  it('counts outside of strings in any JSON', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        const [depth, values] = sizeOf(JSON.parse(json))
        fc.pre(depth > 0)
        const bytes = Buffer.from(json)
        expect(limitExceeded(bytes, { levels: depth, values })).toBeUndefined()
        expect(limitExceeded(bytes, { levels: depth, values: values - 1 })).toBe('values')
        expect(limitExceeded(bytes, { levels: depth - 1, values })).toBe('levels')
      }),
    )
  })
})

/** Its depth, and the number of its containers and their commas. */
function sizeOf(value: unknown): [depth: number, values: number] {
  if (typeof value !== 'object' || value === null) return [0, 0]
  const sizes = Object.values(value).map(sizeOf)
  return [
    1 + Math.max(0, ...sizes.map(([depth]) => depth)),
    1 + Math.max(0, sizes.length - 1) + sizes.reduce((sum, [, values]) => sum + values, 0),
  ]
}
