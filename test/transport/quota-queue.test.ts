import * as fc from 'fast-check'
import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { QuotaLimit } from '../../src/protocol/quotas.ts'
import { QuotaQueue } from '../../src/transport/quota-queue.ts'
import { SlidingWindow } from '../../src/transport/quota-queue.ts'

/** A queue in virtual time. */
function queueOf(limit: QuotaLimit) {
  const scheduler = new VirtualTimeScheduler()
  const waits: number[] = []
  const queue = new QuotaQueue(limit, scheduler, (delay) => waits.push(delay))
  /** `name@time` of each start. */
  const started: string[] = []
  const enter = (name: string, isRetry = false) =>
    queue.enter({ isRetry, start: () => started.push(`${name}@${scheduler.now()}`) })
  const at = (time: number, work: () => void) => scheduler.schedule(work, time)
  return { scheduler, queue, waits, started, enter, at }
}

describe('the queue of a quota', () => {
  it('starts requests at once until the quota is reached, then each when the oldest start leaves the window', () => {
    const { scheduler, started, enter, at, waits } = queueOf({ requests: 2, window: 10 })
    enter('a')
    at(4, () => enter('b'))
    at(5, () => enter('c'))
    at(6, () => enter('d'))
    at(6, () => enter('e'))
    scheduler.flush()

    expect(started).toEqual(['a@0', 'b@4', 'c@10', 'd@14', 'e@20'])
    expect(waits).toEqual([5])
  })

  it('does not allow twice the quota around the boundary of a window', () => {
    const { scheduler, started, enter, at } = queueOf({ requests: 3, window: 10 })
    for (const name of 'abc') at(9, () => enter(name))
    for (const name of 'def') at(11, () => enter(name))
    scheduler.flush()

    expect(started).toEqual(['a@9', 'b@9', 'c@9', 'd@19', 'e@19', 'f@19'])
  })

  it('starts a retry before the requests that have not started', () => {
    const { scheduler, started, enter } = queueOf({ requests: 1, window: 10 })
    for (const name of 'abc') enter(name)
    enter('r', true)
    scheduler.flush()

    expect(started).toEqual(['a@0', 'r@10', 'b@20', 'c@30'])
  })

  it('gives the place of a removed request to the next one', () => {
    const { scheduler, started, enter } = queueOf({ requests: 1, window: 10 })
    enter('a')
    const leave = enter('b')
    enter('c')
    leave()
    scheduler.flush()

    expect(started).toEqual(['a@0', 'c@10'])
  })

  it('has no timer once the last waiting request is removed', () => {
    const { scheduler, enter } = queueOf({ requests: 1, window: 10 })
    enter('a')
    enter('b')()

    scheduler.flush()
    expect(scheduler.now()).toBe(0)
  })

  it('does not lose its place by leaving late, after its start', () => {
    const { scheduler, started, enter } = queueOf({ requests: 1, window: 10 })
    const leave = enter('a')
    enter('b')
    leave()
    scheduler.flush()

    expect(started).toEqual(['a@0', 'b@10'])
  })

  it('reports each time that a queue forms, and not each request', () => {
    const { scheduler, enter, at, waits } = queueOf({ requests: 1, window: 10 })
    for (const name of 'abc') enter(name)
    at(25, () => enter('d'))
    at(45, () => enter('e'))
    scheduler.flush()

    // d waits from 25 to 30; e finds the quota free at 45.
    expect(waits).toEqual([10, 5])
  })

  it('waits for the window of its own time when the clock of the system is set back', () => {
    const { scheduler, started, queue } = queueOf({ requests: 1, window: 10 })
    let behind = 0
    const now = scheduler.now.bind(scheduler)
    scheduler.now = () => now() - behind
    const start = (name: string) => () => started.push(`${name}@${now()}`)
    queue.enter({ isRetry: false, start: start('a') })
    behind = 3_600_000
    queue.enter({ isRetry: false, start: start('b') })
    scheduler.flush()

    expect(started).toEqual(['a@0', 'b@10'])
  })
})

describe('after a 429, the queue of a quota', () => {
  it('starts nothing until the delay is over', () => {
    const { scheduler, queue, started, enter, at } = queueOf({ requests: 9, window: 10 })
    enter('a')
    at(1, () => queue.refused(0, () => 30))
    at(2, () => enter('b'))
    at(2, () => enter('a', true))
    scheduler.flush()

    // The service accepted nothing, so the limit is 1.
    expect(started).toEqual(['a@0', 'a@31', 'b@41'])
  })

  it('keeps the longest of several delays', () => {
    const { scheduler, queue, started, enter } = queueOf({ requests: 9, window: 10 })
    queue.refused(0, () => 30)
    queue.refused(0, () => 5)
    enter('a')
    scheduler.flush()

    expect(started).toEqual(['a@30'])
  })

  it('adopts the number of requests that the service has accepted', () => {
    const { scheduler, queue, started, enter, at } = queueOf({ requests: 40, window: 100 })
    for (let n = 0; n < 7; n++) enter('first')
    // The service accepted 5 of 7.
    at(1, () => queue.refused(0, () => 99))
    at(2, () => queue.refused(0, () => 98))
    at(3, () => {
      for (let n = 0; n < 14; n++) enter('next')
    })
    scheduler.flush()

    // The limit grows by 2, a twentieth of 40, in a window without a 429.
    expect(started.filter((start) => start === 'next@100')).toHaveLength(5)
    expect(started.filter((start) => start === 'next@200')).toHaveLength(7)
    expect(started.filter((start) => start === 'next@300')).toHaveLength(2)
  })

  it('returns to the known limit in time', () => {
    const { scheduler, queue, started, enter, at } = queueOf({ requests: 4, window: 10 })
    enter('a')
    queue.refused(0, () => 10)
    for (const time of [10, 20, 30, 40, 50]) at(time, () => enter('b'))
    for (let n = 0; n < 4; n++) at(70, () => enter('c'))
    scheduler.flush()

    expect(started.slice(-4)).toEqual(['c@70', 'c@70', 'c@70', 'c@70'])
  })

  it('does not lower the limit for a late response to an earlier request', () => {
    const { scheduler, queue, started, enter, at } = queueOf({ requests: 40, window: 100 })
    for (let n = 0; n < 6; n++) enter('first')
    queue.refused(0, () => 100)
    at(101, () => enter('a'))
    at(102, () => queue.refused(0, () => 8))
    at(103, () => {
      for (const name of 'bcde') enter(name)
    })
    scheduler.flush()

    expect(started.slice(6)).toEqual(['a@101', 'b@110', 'c@110', 'd@110', 'e@110'])
  })

  it('never has a timer without a delay', () => {
    const { scheduler, queue, enter } = queueOf({ requests: 1, window: 10 })
    const delays: number[] = []
    const schedule = scheduler.schedule.bind(scheduler)
    scheduler.schedule = (work, delay = 0, state) => {
      delays.push(delay)
      return schedule(work, delay, state)
    }
    enter('a')
    queue.refused(0, () => 0.25)
    enter('b')
    scheduler.flush()

    expect(delays.length).toBeGreaterThan(0)
    expect(delays.every((delay) => delay >= 1)).toBe(true)
  })
})

it('never starts more than the quota in any window, whatever enters, leaves and is refused', () => {
  const action = fc.record({
    after: fc.nat(40),
    kind: fc.constantFrom('enter', 'enter', 'enter', 'retry', 'leave', 'refused'),
    delay: fc.nat(60),
  })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 50 }),
      fc.array(action, { maxLength: 60 }),
      (requests, window, actions) => {
        const scheduler = new VirtualTimeScheduler()
        const starts: number[] = []
        const queue = new QuotaQueue({ requests, window }, scheduler, () => {})
        const leaves: (() => void)[] = []
        let entered = 0
        let left = 0
        let time = 0
        for (const { after, kind, delay } of actions) {
          time += after
          scheduler.schedule(() => {
            if (kind === 'refused') return queue.refused(starts.at(-1) ?? 0, () => delay)
            if (kind === 'leave') return leaves.pop()?.()
            let hasStarted = false
            entered += 1
            const leave = queue.enter({
              isRetry: kind === 'retry',
              start() {
                hasStarted = true
                starts.push(scheduler.now())
              },
            })
            leaves.push(() => {
              if (!hasStarted) left += 1
              leave()
            })
          }, time)
        }
        scheduler.flush()

        expect(starts.length).toBe(entered - left)
        const gaps = starts.slice(requests).map((start, index) => start - (starts[index] ?? 0))
        expect(Math.min(window, ...gaps)).toBe(window)
      },
    ),
  )
})

describe('a sliding window', () => {
  it('never allows more than a limit above 600, and then remembers some times for several starts', () => {
    const limit = { requests: 2_000, window: 60_000 }
    const window = new SlidingWindow(limit)
    const starts: number[] = []
    for (let now = 0; starts.length < 5_000; now = Math.max(now + 7, window.freeAt(now))) {
      if (window.freeAt(now) > now) continue
      window.add(now)
      starts.push(now)
    }

    const gaps = starts.slice(2_000).map((start, index) => start - (starts[index] ?? 0))
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(60_000)
    expect(Math.max(...gaps)).toBeLessThan(60_000 + 5 * 7)
  })
})
