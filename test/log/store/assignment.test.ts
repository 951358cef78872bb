import { array, assert, boolean, integer, nat, property, record, string, uniqueArray } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rebalanced } from '../../../src/log/store/assignment.ts'
import type { Assignment } from '../../../src/log/store/assignment.ts'

const none = (parts: number): Assignment => Array.from({ length: parts }, () => null)

const movedBetween = (before: Assignment, after: Assignment) =>
  after.filter((owner, part) => owner !== before[part]).length

/** Members that join and leave, one after the other. */
const histories = record({
  parts: integer({ min: 1, max: 100 }),
  steps: array(record({ joins: boolean(), at: nat() }), { maxLength: 30 }),
})

describe('rebalanced', () => {
  it('gives each member its share, and moves no more than one share for each that joins or leaves', () => {
    assert(
      property(histories, ({ parts, steps }) => {
        let members = ['member 0']
        let assignment = rebalanced(none(parts), members)
        for (const [n, { joins, at }] of steps.entries()) {
          const isJoining = joins || members.length === 1
          const before = members
          members = isJoining
            ? [...members, `member ${n + 1}`]
            : members.filter((_, index) => index !== at % members.length)
          const next = rebalanced(assignment, members)
          expect(movedBetween(assignment, next)).toBeLessThanOrEqual(
            Math.ceil(parts / (isJoining ? members.length : before.length)),
          )
          const loads = members.map((member) => next.filter((owner) => owner === member).length)
          expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1)
          expect(next).toHaveLength(parts)
          expect(next.every((owner) => owner !== null && members.includes(owner))).toBe(true)
          assignment = next
        }
      }),
    )
  })

  it('is the same in whatever order the members are listed', () => {
    assert(
      property(uniqueArray(string(), { minLength: 1, maxLength: 8 }), (members) => {
        const reversed = members.toReversed()
        expect(rebalanced(none(64), reversed)).toEqual(rebalanced(none(64), members))
      }),
    )
  })

  it('changes nothing while the members stay', () => {
    const members = ['a', 'b', 'c']
    const assignment = rebalanced(none(64), members)
    expect(rebalanced(assignment, members)).toEqual(assignment)
  })

  it('gives nothing to anyone without members', () => {
    expect(rebalanced(rebalanced(none(3), ['a']), [])).toEqual(none(3))
  })
})
