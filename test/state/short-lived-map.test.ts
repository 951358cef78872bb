import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { ShortLivedMap } from '../../src/state/short-lived-map.ts'

it('holds what a Map holds, however many entries came and went', () => {
  const step = fc.record({ key: fc.nat(3_000), kept: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { minLength: 4_000, maxLength: 6_000, size: 'max' }), (steps) => {
      const map = new ShortLivedMap<number, number>()
      const model = new Map<number, number>()
      for (const [value, { key, kept }] of steps.entries()) {
        if (kept) {
          map.set(key, value)
          model.set(key, value)
        }
        const deleted = !kept && model.delete(key)
        expect(!kept && map.delete(key)).toBe(deleted)
        expect(map.get(key)).toBe(model.get(key))
      }
      expect([...map.entries()]).toEqual([...model.entries()])
      map.clear()
      expect([...map.entries()]).toEqual([])
    }),
    { numRuns: 20 },
  )
})
