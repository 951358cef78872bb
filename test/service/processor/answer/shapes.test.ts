import { describe, expect, it } from 'vitest'
import { withoutExample } from '../../../../src/service/processor/answer/shapes.ts'

describe('a description without its example', () => {
  it.each([
    ['Licence, such as MIT', 'Licence'],
    ['Licence (e.g. MIT)', 'Licence'],
    ['Colour; null if unknown', 'Colour'],
    ['Port like\n8080, for example', 'Port'],
    ['Colour of the likeness', 'Colour of the likeness'],
  ])('of %j is %j', (description, expected) => {
    expect(withoutExample(description)).toBe(expected)
  })

  it('keeps the spaces of a long description without one', () => {
    const description = `Port${' '.repeat(1_000_000)}of the server`
    expect(withoutExample(description)).toBe(description)
  })
})
