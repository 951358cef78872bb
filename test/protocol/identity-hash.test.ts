import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hash, hashIdentity, hashOfRunId } from '../../src/protocol/identity-hash.ts'
import type { Identified } from '../../src/protocol/identified.ts'
import { runEvent } from '../../src/protocol/event.ts'
import type { RunStatus } from '../../src/protocol/task.ts'
import { taskRun } from '../operators/events.ts'

const hashOf = (identity: Identified) => {
  hashIdentity(identity)
  return [...hash]
}

/** Identities as services make them: increasing numbers, in various formats. */
function* identities(): Generator<Identified> {
  for (let n = 0; n < 10_000; n++) {
    yield { id: String(n) }
    yield { id: `event_${String(n).padStart(16, '0')}` }
    yield { id: 'x'.repeat(n % 100) + n, source: '/v1/monitors/monitor_1' }
    yield { id: 'completed', source: `/v1/tasks/runs/trun_${n.toString(16)}` }
    yield { id: `trun_${n}:completed`, source: `/v1/tasks/runs/trun_${n}` }
    yield { id: `Ereignis №${n}`, source: '/v1/monitors/monitor_1' }
  }
}

describe('the hash of an identity', () => {
  it('does not depend on what was hashed in between', () => {
    const text = fc.string({ unit: 'binary', maxLength: 40 })
    const identity = fc.record({ id: text, source: text }, { requiredKeys: ['id'] })
    fc.assert(
      fc.property(identity, identity, (one, other) => {
        const first = hashOf(one)
        hashOf(other)
        expect(hashOf(one)).toEqual(first)
      }),
    )
  })

  it('of a run is the same whether or not the event was created here', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })
    const plain = fc.string({ unit: fc.constantFrom(...'aZ09_-'), minLength: 1, maxLength: 40 })
    fc.assert(
      fc.property(fc.oneof(text, plain), text, (run_id, status) => {
        const event = runEvent({ run: taskRun(run_id, status as RunStatus) }, 'stream')
        expect(hashOf({ ...event })).toEqual(hashOf(event))
        expect(hashOf({ ...event, id: `${event.id}x` })).not.toEqual(hashOf(event))
      }),
    )
  })

  it('of a run separates its id and status, and differs from that of either alone', () => {
    const ofRun = (run_id: string, status: string) =>
      hashOf(runEvent({ run: taskRun(run_id, status as RunStatus) }, 'stream'))
    const alone = [...hashOfRunId('ab')]
    const all = [ofRun('ab', 'c'), ofRun('a', 'bc'), ofRun('c', 'ab'), ofRun('ab', 'ab'), alone]
    expect(new Set(all.map(String)).size).toBe(all.length)
  })

  it('separates source and id', () => {
    const text = fc.string({ unit: 'binary', maxLength: 12 })
    fc.assert(
      fc.property(text, fc.nat(12), fc.nat(12), (joined, at, otherAt) => {
        fc.pre(Math.min(at, joined.length) !== Math.min(otherAt, joined.length))
        const split = (where: number) => ({ source: joined.slice(0, where), id: joined.slice(where) })
        expect(hashOf(split(at))).not.toEqual(hashOf(split(otherAt)))
      }),
    )
    expect(hashOf({ id: 'a', source: '' })).not.toEqual(hashOf({ id: 'a' }))
  })

  it('distinguishes characters that differ above their first byte', () => {
    // U+0141 is U+0041 plus a bit that would fall into the next character's byte.
    expect(hashOf({ id: '\u{141}\0' })).not.toEqual(hashOf({ id: 'A\u{1}' }))
    expect(hashOf({ id: '\u{141}' })).not.toEqual(hashOf({ id: 'A' }))
    expect(hashOf({ id: 'a' })).not.toEqual(hashOf({ id: 'a\0' }))
  })

  it('has no collision even in each half of it', () => {
    const all = [...identities()].map(hashOf)
    for (const [one, other] of [
      [0, 1],
      [2, 3],
      [0, 3],
    ] as const) {
      expect(new Set(all.map((lanes) => `${lanes[one]} ${lanes[other]}`)).size).toBe(all.length)
    }
  })

  it('fills buckets evenly by its low bits', () => {
    const buckets = new Map<number, number>()
    let count = 0
    for (const identity of identities()) {
      const bucket = (hashOf(identity)[0] ?? 0) & 0xff
      buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1)
      count += 1
    }
    // Six standard deviations from the mean.
    const mean = count / 256
    for (const size of buckets.values()) expect(Math.abs(size - mean)).toBeLessThan(6 * Math.sqrt(mean))
    expect(buckets.size).toBe(256)
  })
})
