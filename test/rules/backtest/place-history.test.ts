import { monitorEvent } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { placeHistory } from 'rivulet/rules'
import { describe, expect, it } from 'vitest'

const HOUR = 3_600_000
const at = (hours: number) => Date.UTC(2026, 0, 10) + hours * HOUR
const NOW = at(100)

function found(
  id: string,
  group = id,
  event_date: string | null = null,
  name = 'event_group_id',
): ResearchEvent {
  const wire = { event_type: 'event_stream', event_id: id, [name]: group, event_date, output: {} }
  return monitorEvent('m', wire, 'poll', NOW)
}
const completed = (hours: number): ResearchEvent =>
  monitorEvent('m', { event_type: 'completion', timestamp: new Date(at(hours)).toISOString() }, 'poll', NOW)

/** The ids of detections with the hours at which they were placed, and the counts. `oldestFirst` is easier to read. */
function place(oldestFirst: readonly ResearchEvent[], options = {}) {
  const { events, placed } = placeHistory(oldestFirst.toReversed(), { now: NOW, ...options })
  const detections = events.filter(({ type }) => type === 'monitor.event_stream')
  return {
    hours: Object.fromEntries(
      detections.map(({ id, received }) => [id, (Date.parse(received) - at(0)) / HOUR]),
    ),
    placed,
  }
}

describe('the history of a monitor', () => {
  it.each(['event_group_id', 'monitor_group_id'])(
    'has its detections between the completions beside them, those of one execution together: %s',
    (name) => {
      const detected = [
        found('a', 'g1', null, name),
        found('b', 'g1', null, name),
        found('c', 'g2', null, name),
      ]
      const history = [completed(0), ...detected, completed(3)]
      expect(place(history)).toEqual({
        hours: { a: 1, b: 1, c: 2 },
        placed: { time: 2, completion: 3, date: 0, unplaced: 0 },
      })
    },
  )

  it('has them at the frequency of the monitor before the first and after the last completion', () => {
    const history = [found('a'), found('b'), completed(10), found('c'), found('d')]
    expect(place(history, { frequency: '2h' })).toEqual({
      hours: { a: 6, b: 8, c: 12, d: 14 },
      placed: { time: 1, completion: 4, date: 0, unplaced: 0 },
    })
  })

  it('has the median time between completions as its frequency where none is given', () => {
    const history = [completed(0), completed(1), completed(2), completed(12), found('a')]
    expect(place(history).hours).toEqual({ a: 13 })
  })

  it('has them nowhere later than now', () => {
    expect(place([completed(99), found('a'), found('b')], { frequency: '1h' }).hours).toEqual({
      a: 100,
      b: 100,
    })
  })

  it('has them at their event_date where there is no completion, and leaves out those without', () => {
    const history = [
      found('a', 'a', '2026-01-11'),
      found('b', 'b', '2026-01'),
      found('c'),
      found('d', 'd', 'soon'),
    ]
    expect(place(history)).toEqual({
      hours: { b: -216, a: 24 },
      placed: { time: 0, completion: 0, date: 2, unplaced: 2 },
    })
  })

  it('is in the order of time, without what is before `since`', () => {
    const history = [completed(0), found('a'), completed(2), found('b'), completed(4)]
    const { events, placed } = placeHistory(history.toReversed(), { now: NOW, since: at(2) })
    expect(events.map(({ received }) => (Date.parse(received) - at(0)) / HOUR)).toEqual([2, 3, 4])
    expect(placed).toEqual({ time: 2, completion: 1, date: 0, unplaced: 0 })
  })

  it('goes up to its newest event where the clock of the service is ahead', () => {
    const ahead = new Date(Date.now() + 48 * HOUR).toISOString()
    const newest = monitorEvent('m', { event_type: 'completion', timestamp: ahead }, 'poll')
    const { events, now } = placeHistory([newest, completed(0)])
    expect(events.map(({ received }) => received)).toEqual([new Date(at(0)).toISOString(), ahead])
    expect(now).toBe(Date.parse(ahead))
  })

  it('is refused with an unknown setting, and a frequency that is none', () => {
    expect(() => place([], { frequency: 'daily' })).toThrow(
      'options.frequency must be a time span such as 1h',
    )
    expect(() => place([], { frequncy: '1h' })).toThrow('did you mean frequency')
  })

  it('may have times in no order', () => {
    const { hours } = place([completed(5), found('a'), completed(1), found('b'), completed(3)])
    expect(hours).toEqual({ a: 3, b: 2 })
  })
})
