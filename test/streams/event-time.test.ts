import { eventTime } from 'rivulet/log'
import { describe, expect, it } from 'vitest'

const at = (minute: number) => Date.UTC(2026, 0, 31, 12, minute)
const text = (minute: number) => new Date(at(minute)).toISOString()

describe('the event time of an entry', () => {
  it.each([
    ['is its time', { time: text(1), received: text(2), recorded: at(3) }, at(1)],
    ['is when it was received if it has none', { time: null, received: text(2), recorded: at(3) }, at(2)],
    [
      'is when it was received if it is not a time',
      { time: 'soon', received: text(2), recorded: at(3) },
      at(2),
    ],
    ['is when it was recorded if it has no other', { time: null, received: 'now', recorded: at(3) }, at(3)],
    ['is not later than its recording', { time: text(9), received: text(2), recorded: at(3) }, at(3)],
    [
      'is not later than when it was received if it comes from no log',
      { time: text(9), received: text(2) },
      at(2),
    ],
    ['is its time if it has nothing else', { time: text(1), received: 'now' }, at(1)],
  ])('%s', (_, entry, expected) => {
    expect(eventTime(entry)).toBe(expected)
  })
})
