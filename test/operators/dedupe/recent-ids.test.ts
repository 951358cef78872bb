import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RecentIds } from '../../../operators/dedupe/recent-ids.ts'
import { bareRun, fullRun } from '../events.ts'

const never = () => {
  throw new Error('read the clock')
}

/** The simplest implementation: a list from the least to the most recently seen. */
class Model {
  readonly #capacity: number
  readonly #timeToLive: number
  #seen: { readonly key: string; readonly at: number }[] = []

  constructor(capacity: number, timeToLive: number) {
    this.#capacity = capacity
    this.#timeToLive = timeToLive
  }

  admit(key: string, now: number): boolean {
    const live = this.#seen.filter(({ at }) => now - at < this.#timeToLive)
    const others = live.filter((entry) => entry.key !== key)
    this.#seen = [...others, { key, at: now }].slice(-this.#capacity)
    return others.length === live.length
  }

  get size(): number {
    return this.#seen.length
  }
}

describe('RecentIds', () => {
  const agreesWithModel = (ids: fc.Arbitrary<string>, length: number, maxCapacity: number) => {
    const step = fc.record({
      id: ids,
      source: fc.constantFrom(undefined, 's', 't', 'u'),
      wait: fc.integer({ min: 0, max: 4 }),
    })
    return fc.property(
      fc.array(step, { maxLength: length, size: 'max' }),
      fc.integer({ min: 1, max: maxCapacity }),
      fc.constantFrom(0, 1, 5, 20, Infinity),
      (steps, capacity, timeToLive) => {
        let now = 0
        const recent = new RecentIds({ capacity, timeToLive }, () => now)
        const model = new Model(capacity, timeToLive)
        for (const { id, source, wait } of steps) {
          now += wait
          const event = source === undefined ? { id } : { id, source }
          expect(recent.admit(event)).toBe(model.admit(`${source}|${id}`, now))
          expect(recent.size).toBe(model.size)
        }
      },
    )
  }

  it('agrees with a plain list over any sequence of ids, sources and times', () => {
    const property = agreesWithModel(fc.constantFrom('a', 'b', 'c', 'd', 'e'), 200, 12)
    expect(() => fc.assert(property)).not.toThrow()
  })

  it('agrees with a plain list while it grows and when it is full', () => {
    const property = agreesWithModel(fc.nat(200).map(String), 1_000, 400)
    expect(() => fc.assert(property, { numRuns: 20 })).not.toThrow()
  })

  it('admits a duplicate only if it is more complete', () => {
    const recent = new RecentIds({}, never)
    const duplicates = [bareRun('r'), bareRun('r'), fullRun('r'), bareRun('r'), fullRun('r')]
    expect(duplicates.map((event) => recent.admit(event))).toEqual([true, false, true, false, false])
  })

  it('does not count has() as seeing', () => {
    const recent = new RecentIds({ capacity: 2 }, never)
    recent.admit({ id: 'a' })
    recent.admit({ id: 'b' })
    expect(recent.has({ id: 'a' })).toBe(true)
    recent.admit({ id: 'c' })
    expect(recent.has({ id: 'a' })).toBe(false)
    expect(recent.has({ id: 'b' })).toBe(true)
  })

  it('forgets expired identities before has()', () => {
    let now = 0
    const recent = new RecentIds({ timeToLive: 10 }, () => now)
    recent.admit({ id: 'a' })
    now = 9
    expect(recent.has({ id: 'a' })).toBe(true)
    now = 10
    expect(recent.has({ id: 'a' })).toBe(false)
    expect(recent.size).toBe(0)
  })

  it('does not read the clock without a timeToLive', () => {
    const recent = new RecentIds({}, never)
    expect(recent.admit({ id: 'a' })).toBe(true)
  })
})
