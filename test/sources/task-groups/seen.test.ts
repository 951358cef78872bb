import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BLOCK, KEPT } from '../../../src/sources/task-groups/seen-entries.ts'
import { SeenEvents } from '../../../src/sources/task-groups/seen.ts'

const COMPLETED = 1
const FAILED = 2

describe('the events that were seen', () => {
  it('are those that a set of their keys would have', () => {
    const kind = fc.constantFrom('run', 'place', 'move', 'skipped')
    fc.assert(
      fc.property(fc.array(fc.tuple(kind, fc.nat(30)), { maxLength: 200 }), (calls) => {
        const seen = new SeenEvents()
        const known = new Set<string>()
        for (const [call, n] of calls) {
          const isNew = call === 'run' ? seen.run(`${n}`, COMPLETED, `${n}`) : seen[call](`${n}`)
          expect(isNew).toBe(!known.has(`${call} ${n}`))
          known.add(`${call} ${n}`)
        }
      }),
    )
  })

  it('stay known however many there are', () => {
    const seen = new SeenEvents()
    for (let n = 0; n < 20_000; n++) expect(seen.run(`run_${n}`, COMPLETED, `at_${n}`)).toBe(true)
    for (let n = 0; n < 20_000; n++) expect(seen.run(`run_${n}`, COMPLETED, `at_${n}`)).toBe(false)
    expect(seen.counts).toEqual([20_000, 0, 0])
    expect(seen.isPartial).toBe(false)
  })

  it('are forgotten, the oldest first, when there are more than two lists of them, and it says so', () => {
    const seen = new SeenEvents(100)
    for (let n = 0; n < 200; n++) seen.run(`${n}`, COMPLETED, `${n}`)
    expect(seen.isPartial).toBe(false)
    expect(seen.run('0', COMPLETED, '0')).toBe(false)
    seen.run('200', COMPLETED, '200')
    expect(seen.isPartial).toBe(true)
    expect(seen.run('150', COMPLETED, '150')).toBe(false)
    expect(seen.run('0', COMPLETED, '0')).toBe(true)
  })

  it('are those of one moment in its text, whatever is seen before that is written', () => {
    const seen = new SeenEvents()
    seen.run('a', FAILED, '1')
    seen.place('2')
    const { moment } = seen
    const text = moment.text()
    for (let n = 0; n < 1_000; n++) seen.run(`${n}`, COMPLETED, `at ${n}`)
    seen.run('a', COMPLETED, '9')
    expect(moment.text()).toBe(text)
    expect(moment.counts).toEqual([0, 1, 0])

    const read = new SeenEvents()
    expect(read.read(text, moment.counts)).toBe(true)
    expect(read.isPartial).toBe(false)
    expect(read.place('2')).toBe(false)
    expect(read.run('a', FAILED, '1')).toBe(false)
    expect(read.run('a', COMPLETED, '9')).toBe(true)
    expect(read.counts).toEqual([1, 0, 0])
  })

  it('are the latest in a text that cannot have all, over two lists too, and it says so', () => {
    const seen = new SeenEvents(KEPT - 1)
    for (let n = 0; n < KEPT + 1; n++) seen.run(`${n}`, COMPLETED, `${n}`)
    const { moment } = seen
    const read = new SeenEvents()
    expect(read.read(moment.text(), moment.counts)).toBe(true)
    expect(read.isPartial).toBe(true)
    for (let n = KEPT; n > BLOCK; n--) expect(read.run(`${n}`, COMPLETED, `${n}`)).toBe(false)
    expect(read.run('0', COMPLETED, '0')).toBe(true)
  })

  it('are as many in a text, however often one was written before', () => {
    const often = new SeenEvents()
    const once = new SeenEvents()
    for (let n = 0; n < 3 * KEPT; n++) {
      for (const seen of [often, once]) seen.run(`${n}`, COMPLETED, `${n}`)
      if (n % 7 === 0) often.moment.text()
    }
    expect(often.moment.text()).toBe(once.moment.text())
    expect(new SeenEvents().read(once.moment.text(), once.counts)).toBe(true)
  })

  it('are a text of at most 8 kB', () => {
    const seen = new SeenEvents()
    for (let n = 0; n < 10_000; n++) seen.run(`run_${n}`, COMPLETED, `at_${n}`)
    expect(seen.moment.text().length).toBeLessThanOrEqual(8_000)
  })
})
