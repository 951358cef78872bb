import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { batchOf, firstOf, frame, framesOf, NO_EVENTS } from '../../src/http/event-batch.ts'

const frames = fc.array(
  fc.json().map((data) => frame('grp:runs:1', 'task_run.state', data)),
  { maxLength: 5 },
)

describe('a batch of events', () => {
  it('can be split again, for any events', () => {
    fc.assert(
      fc.property(frames, (events) => {
        const batch = batchOf(events)
        expect(batch.count).toBe(events.length)
        expect(new TextDecoder().decode(batch.bytes)).toBe(events.join(''))
        expect(framesOf(batch)).toEqual(events)
      }),
    )
  })

  it('can be truncated after any of its events', () => {
    const events = ['"one"', '"zwölf"', '{}'].map((data, index) => frame(String(index), 'test', data))
    const first = [0, 1, 2, 3, 4].map((count) => firstOf(batchOf(events), count))
    expect(first.map(framesOf)).toEqual([0, 1, 2, 3, 3].map((count) => events.slice(0, count)))
    expect(first[0]).toEqual(NO_EVENTS)
  })
})
