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

test.for(KINDS)('a rule of the kind %s says what becomes of an alert that is pending or unknown', (kind) => {
  fc.assert(
    fc.property(caseOf(kind), (given) => {
      // A shorter one ends within the call in which it begins.
      const isAnnounced = given.rule.for > 1
      const pending = new Map<string, string>()
      const unknown = new Set<string>()
      for (const { type, data } of run(InMemoryRules, given)) {
        const key = JSON.stringify(data.key)
        if (type === 'alert.unknown') unknown.add(key)
        if (type === 'alert.known') expect(unknown.delete(key)).toBe(true)
        if (type === 'alert.pending') {
          expect([given.rule.for > 0, pending.has(key)]).toEqual([true, false])
          pending.set(key, data.episode)
        }
        if (type !== 'alert.inactive' && type !== 'alert.firing') continue
        if (isAnnounced || type === 'alert.inactive' || pending.has(key))
          expect(pending.get(key)).toBe(data.episode)
        pending.delete(key)
      }
    }),
    { numRuns },
  )
})
