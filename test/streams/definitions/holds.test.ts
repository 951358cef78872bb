import { aggregate, count, define, keyBy, testStream, tumbling } from 'rivulet/streams'
import { expect, it } from 'vitest'
import { at, fromReadings, reading } from './readings.ts'

const time = (seconds: number) => new Date(at(seconds)).toISOString()

const counts = () =>
  testStream(
    define(
      'counts',
      { version: 1 },
      fromReadings().pipe(
        keyBy(() => 'all'),
        aggregate('seconds', tumbling('10s'), { events: count() }),
      ),
    ),
  )

const behind = (source: string, through: number, until: number) =>
  ({
    type: 'source.behind',
    source,
    time: time(until - 900),
    data: { through: time(through), until: time(until) },
  }) as const

it('does not give a second result for a window that has ended, for events of a source that is behind', () => {
  const test = counts()
  test.tick(at(0))
  test.send({ ...reading(1), source: '/live' }, behind('/away', 0, 1_000))
  expect(test.tick(at(10))).toMatchObject([{ data: { values: { events: 1 } } }])
  expect(test.send({ ...reading(5), source: '/away', recorded: at(11) })).toEqual([])
  test.send({ type: 'source.caught_up', source: '/away', time: time(12), data: { through: time(12) } })
  expect(test.tick(at(1_500)).map(({ type }) => type)).toEqual(['stage.dropped'])
})

it('keeps no row of windows that have ended once the source is waited for no longer', () => {
  const test = counts()
  test.tick(at(0))
  test.send(behind('/away', 0, 1_000))
  for (let n = 0; n < 50; n++) {
    test.send({ ...reading(n * 10), source: '/live' })
    test.tick(at(n * 10 + 10))
  }
  expect(test.state.size).toBe(50)
  test.tick(at(2_000))
  expect(test.state.size).toBe(0)
  for (let n = 201; n < 300; n++) {
    test.send({ ...reading(n * 10), source: '/live' })
    test.tick(at(n * 10 + 10))
  }
  expect(test.state.size).toBe(0)
})
