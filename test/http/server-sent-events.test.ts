import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createParser } from 'eventsource-parser'
import type { EventSourceMessage } from 'eventsource-parser'
import { batchOf, firstOf, framesOf, NO_EVENTS, sseFrame } from '../../src/http/server-sent-events.ts'

const frames = fc.array(
  fc.json().map((data) => sseFrame({ id: 'grp:runs:1', event: 'task_run.state', data })),
  { maxLength: 5 },
)

describe('an event', () => {
  it.each([{}, { id: 'a:1' }, { event: 'task_run.state' }, { id: 'a:1', event: 'error' }])(
    'with %j is read as it was written, whatever its JSON',
    (fields) => {
      fc.assert(
        fc.property(fc.json(), (data) => {
          const read: EventSourceMessage[] = []
          createParser({ onEvent: (message) => read.push(message) }).feed(sseFrame({ ...fields, data }))
          expect(read).toEqual([{ id: undefined, event: undefined, ...fields, data }])
        }),
      )
    },
  )
})

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
    const events = ['"one"', '"zwölf"', '{}'].map((data, index) => sseFrame({ id: String(index), data }))
    const first = [0, 1, 2, 3, 4].map((count) => firstOf(batchOf(events), count))
    expect(first.map(framesOf)).toEqual([0, 1, 2, 3, 3].map((count) => events.slice(0, count)))
    expect(first[0]).toEqual(NO_EVENTS)
  })
})
