import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import type { LogClock } from '../../../src/protocol/event.ts'
import {
  ageLimit,
  CONFIRMATION,
  isTimeCertain,
  nextTime,
  TOLERANCE,
} from '../../../src/log/store/log-clock.ts'
import type { LogTime } from '../../../src/log/store/log-clock.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** How long the machine runs before each append, and how long it is off before that. */
const STEPS = fc.array(
  fc.constantFrom<readonly [runs: number, isOff: number]>(
    [MINUTE, 0],
    // Mostly it goes on: jumps are confirmed.
    [4 * MINUTE, 0],
    [4 * MINUTE, 0],
    [5 * MINUTE, 0],
    [5 * MINUTE, 0],
    [4 * MINUTE, HOUR],
    [9 * MINUTE, 3 * DAY],
    [MINUTE, 20 * MINUTE],
    [11 * MINUTE, 9 * HOUR],
  ),
  { minLength: 1, maxLength: 40 },
)

/** The longest time by which two jumps together are too large. */
const MOST = 4 * (3 * DAY + CONFIRMATION)

/** Returns the real ages of the entries that are deleted, and of those that are kept, each time that age deletes some. */
function ages(steps: readonly (readonly [runs: number, isOff: number])[], maxAge: number) {
  let [wall, monotonic] = [1_000 * DAY, 0]
  const clocks = { wall: () => wall, monotonic: () => monotonic }
  let time: LogTime = { time: wall, monotonic, jump: null }
  const changes: LogClock[] = []
  const entries = [{ at: wall, recorded: wall }]
  const [deleted, kept]: [number[], number[]] = [[], []]
  for (const [runs, isOff] of steps) {
    wall += isOff + runs
    monotonic += runs
    const { change, ...next } = nextTime(time, clocks)
    time = next
    if (change !== undefined) changes.push(change)
    entries.push({ at: wall, recorded: time.time })
    if (!isTimeCertain(time)) continue
    const limit = ageLimit(time.time - maxAge, changes)
    for (const { at, recorded } of entries) (recorded < limit ? deleted : kept).push(wall - at)
  }
  return { deleted, kept }
}

it('age deletes no entry early, however often the machine was off, and each at last', () => {
  const isSound = fc.property(STEPS, fc.constantFrom(30 * MINUTE, DAY, 5 * DAY), (steps, maxAge) => {
    const { deleted, kept } = ages(steps, maxAge)
    expect(Math.min(...deleted)).toBeGreaterThan(maxAge - TOLERANCE)
    expect(Math.max(...kept)).toBeLessThan(maxAge + MOST)
  })
  fc.assert(isSound, { numRuns: 1_000 })
})
