import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BLOCK, SAVED } from '../../../src/sources/shapes/seen-entries.ts'
import { SeenEvents } from '../../../src/sources/task-groups/seen.ts'

const COMPLETED = 1
const FAILED = 2

describe('SeenEvents', () => {
  it('knows the same keys as a set', () => {
    const kind = fc.constantFrom('addRun', 'addEvent', 'addMove', 'addSkipped')
    fc.assert(
      fc.property(fc.array(fc.tuple(kind, fc.nat(30)), { maxLength: 200 }), (calls) => {
        const seen = new SeenEvents()
        const known = new Set<string>()
        for (const [call, n] of calls) {
          const isNew = call === 'addRun' ? seen.addRun(`${n}`, COMPLETED, `${n}`) : seen[call](`${n}`)
          expect(isNew).toBe(!known.has(`${call} ${n}`))
          known.add(`${call} ${n}`)
        }
      }),
    )
  })

  it('remembers 20,000 runs', () => {
    const seen = new SeenEvents()
    for (let n = 0; n < 20_000; n++) expect(seen.addRun(`run_${n}`, COMPLETED, `at_${n}`)).toBe(true)
    for (let n = 0; n < 20_000; n++) expect(seen.addRun(`run_${n}`, COMPLETED, `at_${n}`)).toBe(false)
    expect(seen.counts).toEqual([20_000, 0, 0])
    expect(seen.isPartial).toBe(false)
  })

  it('forgets the oldest ones after two full lists, and reports that some are forgotten', () => {
    const seen = new SeenEvents(100)
    for (let n = 0; n < 200; n++) seen.addRun(`${n}`, COMPLETED, `${n}`)
    expect(seen.isPartial).toBe(false)
    expect(seen.addRun('0', COMPLETED, '0')).toBe(false)
    seen.addRun('200', COMPLETED, '200')
    expect(seen.isPartial).toBe(true)
    expect(seen.addRun('150', COMPLETED, '150')).toBe(false)
    expect(seen.addRun('0', COMPLETED, '0')).toBe(true)
  })

  it('does not change a snapshot when more are added', () => {
    const seen = new SeenEvents()
    seen.addRun('a', FAILED, '1')
    seen.addEvent('2')
    const { snapshot, counts } = seen
    const text = snapshot()
    for (let n = 0; n < 1_000; n++) seen.addRun(`${n}`, COMPLETED, `at ${n}`)
    seen.addRun('a', COMPLETED, '9')
    expect(snapshot()).toBe(text)
    expect(counts).toEqual([0, 1, 0])

    const restored = new SeenEvents()
    expect(restored.restore(text, counts)).toBe(true)
    expect(restored.isPartial).toBe(false)
    expect(restored.addEvent('2')).toBe(false)
    expect(restored.addRun('a', FAILED, '1')).toBe(false)
    expect(restored.addRun('a', COMPLETED, '9')).toBe(true)
    expect(restored.counts).toEqual([1, 0, 0])
  })

  it('saves the latest ones of both lists when the text cannot hold all, and reports that some are forgotten', () => {
    const seen = new SeenEvents(SAVED - 1)
    for (let n = 0; n < SAVED + 1; n++) seen.addRun(`${n}`, COMPLETED, `${n}`)
    const { snapshot, counts } = seen
    const restored = new SeenEvents()
    expect(restored.restore(snapshot(), counts)).toBe(true)
    expect(restored.isPartial).toBe(true)
    for (let n = SAVED; n > BLOCK; n--) expect(restored.addRun(`${n}`, COMPLETED, `${n}`)).toBe(false)
    expect(restored.addRun('0', COMPLETED, '0')).toBe(true)
  })

  it('has a text that does not depend on earlier snapshots', () => {
    const often = new SeenEvents()
    const once = new SeenEvents()
    for (let n = 0; n < 3 * SAVED; n++) {
      for (const seen of [often, once]) seen.addRun(`${n}`, COMPLETED, `${n}`)
      if (n % 7 === 0) often.snapshot()
    }
    expect(often.snapshot()).toBe(once.snapshot())
    expect(new SeenEvents().restore(once.snapshot(), once.counts)).toBe(true)
  })

  it('has a text of at most 8 kB', () => {
    const seen = new SeenEvents()
    for (let n = 0; n < 10_000; n++) seen.addRun(`run_${n}`, COMPLETED, `at_${n}`)
    expect(seen.snapshot().length).toBeLessThanOrEqual(8_000)
  })
})
