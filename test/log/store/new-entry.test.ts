import type { ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { LogValueError } from '../../../src/log/errors.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'
import { change } from '../../operators/events.ts'

const event = change('1')
const circle: Record<string, unknown> = {}
circle['self'] = circle
const throwing = {
  toJSON() {
    throw new Error('no')
  },
}

/** Values that are no events, as a caller without types may have them. */
const REFUSED: readonly (readonly [string, unknown])[] = [
  ['a circle', { ...event, data: circle }],
  ['a bigint', { ...event, data: 1n }],
  ['a JSON that throws', { ...event, data: throwing }],
  ['nothing', undefined],
  ['null', null],
  ['a text', 'event'],
  ['a list', [event]],
  ['another identity as JSON', { ...event, toJSON: () => change('3') }],
  ['no JSON', { ...event, toJSON: () => undefined }],
  ['no id', { ...event, id: undefined }],
  ['a number as its id', { ...event, id: 1 }],
  ['no source', { ...event, source: null }],
  ['an object as its type', { ...event, type: {} }],
]

describe('a new entry', () => {
  it.each(REFUSED)('is refused with %s', (_, value) => {
    expect(() => newEntry(value as never)).toThrow(LogValueError)
  })

  it('names the log and the stream in its error', () => {
    const subject = { log: 'the log "watch"', stream: 'stream:m' }
    expect(() => newEntry({ ...event, id: 5 } as never, false, subject)).toThrow(
      'an entry of "stream:m" cannot be stored in the log "watch": its event has no id',
    )
  })

  it('is not changed with its event', () => {
    const changed = { ...event }
    const entry = newEntry(changed, true)
    Object.assign(changed, { id: '2' })
    expect(entry).toMatchObject({ id: '1', backfill: true, json: JSON.stringify(event) })
  })

  it('is an unknown event if its own is nested too deeply', () => {
    const depth = 200_000
    const data: unknown = JSON.parse('['.repeat(depth) + ']'.repeat(depth))
    const nested = { ...event, type: 'unknown', data } as ResearchEvent
    expect(newEntry(nested)).toMatchObject({ id: '1', type: 'unknown' })
    expect(JSON.parse(newEntry(nested).json)).toMatchObject({
      data: { type: 'unknown', problem: 'nested too deeply to be stored' },
    })
  })
})
