import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { InMemoryRules } from '../../../src/rules/evaluate/in-memory.ts'
import { caseOf, expectedOf, KINDS, run, transitionsOf } from './equivalence.ts'

/** `npm test` takes a share of them; all of them are run with `RULE_STREAMS=1000`. */
const numRuns = Number(process.env['RULE_STREAMS'] ?? 100)

test.for(KINDS)('a rule of the kind %s gives the alerts of the definitions', (kind) => {
  fc.assert(
    fc.property(caseOf(kind), (given) => {
      expect(transitionsOf(run(InMemoryRules, given))).toEqual(expectedOf(given))
    }),
    { numRuns },
  )
})

test.for(KINDS)('a rule of the kind %s goes on from its JSON wherever it was cut', (kind) => {
  fc.assert(
    fc.property(caseOf(kind), (given) => {
      expect(run(InMemoryRules, given, true)).toEqual(run(InMemoryRules, given))
    }),
    { numRuns: Math.ceil(numRuns / 3) },
  )
})
