import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SeenTrace } from '../../../src/sources/tasks/seen-trace.ts'

/** What is new on each connection. */
function read(connections: readonly (readonly string[])[], capacity?: number): string[] {
  const trace = new SeenTrace(capacity)
  return connections.flatMap((contents) => {
    trace.connect()
    return contents.flatMap((content) => {
      const occurrence = trace.add(content)
      return occurrence === undefined ? [] : [`${content}${occurrence}`]
    })
  })
}

describe('what was seen of a trace', () => {
  it('is each entry once, for any trace and any cuts of it', () => {
    const traces = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 30 })
    fc.assert(
      fc.property(traces, fc.array(fc.nat(30), { maxLength: 5 }), (trace, cuts) => {
        const whole = read([trace])
        expect(read([...cuts.map((cut) => trace.slice(0, cut)), trace])).toEqual(whole)
        expect(new Set(whole).size).toBe(trace.length)
      }),
    )
  })

  it('does not depend on the order of a repeated trace', () => {
    expect(
      read([
        ['a', 'b', 'a'],
        ['a', 'a', 'b', 'b'],
      ]),
    ).toEqual(['a1', 'b1', 'a2', 'b2'])
  })

  it('remembers no more contents than its capacity, and still has each entry of a repeated trace once', () => {
    const long = Array.from({ length: 50 }, (_, n) => `m${n % 40}:`)
    const whole = read([long], 10)

    expect(read([long.slice(0, 20), long.slice(0, 35), long], 10)).toEqual(whole)
    expect(new Set(whole).size).toBe(50)
    // Another subscription gives the same ids.
    expect(read([long.slice(0, 45), long], 10)).toEqual(whole)
  })
})
