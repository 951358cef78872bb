import { describe, expect, it } from 'vitest'
import { groupByDay } from '../../../src/dashboard/page/monitors/monitor-detail.tsx'
import { createFormats, instantOf } from '../../../src/dashboard/page/parts/format.ts'
import { hashOf, parseRoute } from '../../../src/dashboard/page/route.ts'
import { beginningOf, dateText } from '../../../src/dashboard/page/monitors/timeline.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const formats = createFormats('en-GB', 'Europe/Berlin')

describe('a text of a time', () => {
  it.each([
    [0, '0 ms'],
    [-5, '0 ms'],
    [999.6, '1,000 ms'],
    [1_250, '1.3 s'],
    [59_900, '59 s'],
    [MINUTE, '1 min'],
    [125 * SECOND, '2 min 5 s'],
    [26 * HOUR, '1 d 2 h'],
  ])('of a duration of %s ms is %s', (ms, text) => {
    expect(formats.duration(ms)).toBe(text)
  })

  it.each([
    [2 * SECOND, 'just now'],
    [40 * SECOND, '40 sec ago'],
    [5 * MINUTE, '5 min ago'],
    [2 * HOUR, '2 hr ago'],
    [DAY, 'yesterday'],
    [-2 * HOUR, 'in 2 hr'],
    [30 * DAY, '1 Jan 2026'],
  ])('of %s ms ago is %s', (age, text) => {
    const now = Date.parse('2026-01-31T12:00:00Z')
    expect(formats.relative(now - age, now)).toBe(text)
  })

  it('is of the zone of the reader', () => {
    expect(formats.clock(Date.parse('2026-01-31T23:30:00Z'))).toBe('0:30')
    expect(formats.dayKey(Date.parse('2026-01-31T23:30:00Z'))).toBe('2026-02-01')
  })

  it.each([[undefined], [null], [''], ['soon'], [5]])('is not made of %s', (time) => {
    expect(instantOf(time)).toBeUndefined()
  })

  it.each([
    ['2026', '2026'],
    ['2026-03', 'March 2026'],
    ['2026-03-04', '4 Mar 2026'],
    ['2026-03-04T10:00:00Z', '4 Mar 2026'],
    ['spring', 'spring'],
  ])('of the partial date %s is %s', (date, text) => {
    expect(dateText(date, 'en-GB')).toBe(text)
  })

  it('begins a partial date in the zone of the reader', () => {
    expect(beginningOf('2026-03')).toBe(new Date(2026, 2, 1).getTime())
  })
})

it('sizes have the units of bytes', () => {
  expect([0, 999, 1_000, 345_100_000, 5e15].map(formats.bytes)).toEqual([
    '0 bytes',
    '999 bytes',
    '1 kB',
    '345.1 MB',
    '5,000 TB',
  ])
})

it('items of one date form a day, in the order in which they come', () => {
  const days = groupByDay(
    [3 * DAY, 3 * DAY - 1, DAY + 5, DAY],
    (at) => at,
    (at) => String(Math.floor(at / DAY)),
  )
  expect(days).toEqual([
    { key: '3', at: 3 * DAY, items: [3 * DAY] },
    { key: '2', at: 3 * DAY - 1, items: [3 * DAY - 1] },
    { key: '1', at: DAY + 5, items: [DAY + 5, DAY] },
  ])
})

describe('an address of the page', () => {
  it.each([
    ['', { section: 'overview' }],
    ['#/', { section: 'overview' }],
    ['#/log', { section: 'log' }],
    ['#/group/', { section: 'unknown' }],
    ['#/group/a%2Fb', { section: 'groups', group: 'a/b' }],
    ['#/group/g/r', { section: 'groups', group: 'g', run: 'r' }],
    ['#/monitor/%E0%A4%A', { section: 'monitors', monitor: '%E0%A4%A' }],
    ['#/search?q=a+%26+b', { section: 'search', query: 'a & b' }],
    ['#/constructor', { section: 'unknown' }],
  ])('%s is the route %o', (hash, route) => {
    expect(parseRoute(hash)).toEqual(route)
  })

  it.each([
    { section: 'overview' },
    { section: 'monitors', monitor: 'a/b?c#d %' },
    { section: 'groups' },
    { section: 'groups', group: 'ä', run: '…' },
    { section: 'search', query: 'a & b?' },
    { section: 'alerts' },
  ] as const)('is that of its route %o', (route) => {
    expect(parseRoute(hashOf(route))).toEqual(route)
  })
})
