import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import type { AlertEvent } from '../../../src/rules/evaluate/in-memory.ts'
import { caseOf, expectedOf, KINDS, RestartedRules, run, transitionsOf } from './equivalence.ts'

/** `npm test` takes a share of them; all of them are run with `RULE_STREAMS=1000`. */
const numRuns = Number(process.env['RULE_STREAMS'] ?? 100)

test.for(KINDS)('a rule of the kind %s gives the alerts of the definitions', (kind) => {
  fc.assert(
    fc.property(caseOf(kind), (given) => {
      const found = transitionsOf(run(InMemoryRules, given))
      expect(found).toEqual(expectedOf(given, found))
    }),
    { numRuns },
  )
})

test.for(KINDS)('a rule of the kind %s goes on from its JSON wherever it was cut', (kind) => {
  fc.assert(
    fc.property(caseOf(kind), (given) => {
      expect(run(RestartedRules, given)).toEqual(run(InMemoryRules, given))
    }),
    { numRuns: Math.ceil(numRuns / 3) },
  )
})

test.for(KINDS)(
  'a rule of the kind %s says once what becomes of an alert that is pending or unknown',
  (kind) => {
    fc.assert(
      fc.property(caseOf(kind), (given) => {
        const output = run(InMemoryRules, given)
        expect(unsound(output, given.rule.for)).toEqual([])
        // A source may stay lost. After a gap, and without another one, all is known.
        expect(kind === 'absence' ? [] : unknownAtEnd(output)).toEqual([])
      }),
      { numRuns },
    )
  },
)

/** The keys that are unknown at last. */
function unknownAtEnd(output: readonly AlertEvent[]): readonly string[] {
  const unknown = new Set<string>()
  for (const { type, data } of output) {
    if (type === 'alert.unknown') unknown.add(JSON.stringify(data.key))
    if (type === 'alert.known') unknown.delete(JSON.stringify(data.key))
  }
  return [...unknown]
}

/** Events that do not follow from those before them. @param wait The `for` of the rule, in ms. */
function unsound(output: readonly AlertEvent[], wait: number): readonly AlertEvent[] {
  const pending = new Map<string, string>()
  const unknown = new Set<string>()
  return output.filter(({ type, data }) => {
    const key = JSON.stringify(data.key)
    const before = pending.get(key)
    switch (type) {
      case 'alert.pending':
        pending.set(key, data.episode)
        return wait === 0 || before !== undefined
      case 'alert.firing':
        pending.delete(key)
        // One that fires in the call in which it begins was not pending, as one that was unknown while its `for` has passed.
        if (before !== undefined) return before !== data.episode
        return wait > 1 && !unknown.has(key)
      case 'alert.inactive':
        pending.delete(key)
        return before !== data.episode
      case 'alert.unknown':
        unknown.add(key)
        return false
      case 'alert.known':
        return !unknown.delete(key)
      default:
        return false
    }
  })
}
