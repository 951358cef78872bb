import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Omission } from '../../../src/gateway/access/omission.ts'

/** Few names, so that paths meet values, and those that objects have themselves. */
const name = fc.constantFrom('a', 'b', 'c', 'a.b', '__proto__', 'constructor', '0')

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(null, 1, 'text', true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 4 }).map((fields) => Object.fromEntries(fields)),
  ),
}))

const paths = fc.array(
  fc.array(fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', '0'), { minLength: 1, maxLength: 3 }),
  { maxLength: 3 },
)

/** The same by recursion: a field goes where the names from any of its ancestors to itself are one of the paths. */
function without(
  given: unknown,
  omitted: readonly (readonly string[])[],
  above: readonly string[] = [],
): unknown {
  if (Array.isArray(given)) return given.map((element) => without(element, omitted, above))
  if (typeof given !== 'object' || given === null) return given
  const fields = Object.entries(given).filter(([field]) => {
    const names = [...above, field]
    const ends = (path: readonly string[]) => path.every((each, at) => each === names.at(at - path.length))
    return !omitted.some((path) => (path.length <= names.length && ends(path)) || path.join('.') === field)
  })
  return Object.fromEntries(fields.map(([field, part]) => [field, without(part, omitted, [...above, field])]))
}

describe('omitted fields of any value', () => {
  it('are those that a plain recursion leaves out', () => {
    fc.assert(
      fc.property(value, paths, (given, omitted) => {
        const omission = new Omission(omitted.map((path) => path.join('.')))
        const before = JSON.stringify(given)

        expect(JSON.stringify(omission.of(given))).toBe(JSON.stringify(without(given, omitted)))
        expect(JSON.stringify(given)).toBe(before)
      }),
      { numRuns: 2_000 },
    )
  })
})
