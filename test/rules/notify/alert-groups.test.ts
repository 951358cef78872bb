import { describe, expect, it } from 'vitest'
import { AlertGroups } from '../../../src/rules/notify/alert-groups.ts'

const bounds = { wait: 5, interval: 60, maxEvents: 3, maxTogether: 10, limit: undefined }

describe('the groups of alerts', () => {
  it('waits for others after the first event of a group', () => {
    const groups = new AlertGroups<string>(bounds)
    groups.add('g', 'a', 0)
    groups.add('g', 'b', 4)

    expect(groups.next(4)).toBe(5)
    expect(groups.take(4)).toBeUndefined()
    expect(groups.take(5)).toEqual({ keys: ['g'], events: ['a', 'b'] })
    expect(groups.take(5)).toBeUndefined()
  })

  it('notifies a group again only after the interval, and another one at once', () => {
    const groups = new AlertGroups<string>(bounds)
    groups.add('g', 'a', 0)
    groups.take(5)
    groups.sent(['g'], 6)
    groups.add('g', 'b', 7)
    groups.add('h', 'c', 7)

    expect(groups.take(12)).toEqual({ keys: ['h'], events: ['c'] })
    expect(groups.next(12)).toBe(66)
    expect(groups.take(65)).toBeUndefined()
    expect(groups.take(66)).toEqual({ keys: ['g'], events: ['b'] })
  })

  it('begins a group anew that was quiet for the interval', () => {
    const groups = new AlertGroups<string>(bounds)
    groups.add('g', 'a', 0)
    groups.take(5)
    groups.sent(['g'], 5)
    expect(groups.next(65)).toBe(Infinity)
    groups.add('g', 'b', 100)

    expect(groups.take(104)).toBeUndefined()
    expect(groups.take(105)).toEqual({ keys: ['g'], events: ['b'] })
  })

  it('takes nothing more of a group while its notification is sent', () => {
    const groups = new AlertGroups<string>({ ...bounds, wait: 0, interval: 0 })
    groups.add('g', 'a', 0)
    groups.take(0)
    groups.add('g', 'b', 1)

    expect(groups.take(1)).toBeUndefined()
    expect(groups.next(1)).toBe(Infinity)
    groups.sent(['g'], 2)
    expect(groups.take(2)).toEqual({ keys: ['g'], events: ['b'] })
  })

  it('keeps what a notification has no room for', () => {
    const groups = new AlertGroups<string>(bounds)
    for (const event of 'abcde') groups.add('g', event, 0)

    expect(groups.take(5)?.events.join('')).toBe('abc')
    groups.sent(['g'], 5)
    expect(groups.take(65)?.events.join('')).toBe('de')
  })

  it('puts all groups together in the last notification that the limit permits', () => {
    const groups = new AlertGroups<string>({ ...bounds, wait: 0, limit: { max: 2, per: 100 } })
    for (const key of 'abcd') groups.add(key, key.toUpperCase(), 0)

    expect(groups.take(0)).toEqual({ keys: ['a'], events: ['A'] })
    expect(groups.take(0)).toEqual({ keys: ['b', 'c', 'd'], events: ['B', 'C', 'D'] })
    groups.add('e', 'E', 1)
    expect(groups.take(1)).toBeUndefined()
    expect(groups.next(1)).toBe(100)
    expect(groups.take(100)).toEqual({ keys: ['e'], events: ['E'] })
  })
})
