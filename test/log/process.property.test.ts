import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { inFile, inMemory } from './process/faulty-logs.ts'
import { runScenario, scenario } from './process/scenario.ts'

const runs = (count: number) => ({ numRuns: Number(process.env['RUNS'] ?? count) })

describe('a process that is killed, stopped, and whose store crashes', () => {
  it('has the state and the output of one plain run, in memory', { timeout: 60_000 }, async () => {
    const logs = fc.tuple(scenario, fc.integer({ min: 1, max: 3 }), fc.boolean())
    await fc.assert(
      fc.asyncProperty(logs, async ([steps, partitions, isFar]) => {
        const { left, expected } = await runScenario(steps, 1, inMemory(partitions, isFar))
        expect(left).toEqual(expected)
      }),
      runs(150),
    )
  })

  it('has them where it is shared, and where it was not at first', { timeout: 60_000 }, async () => {
    const logs = fc.tuple(scenario, fc.integer({ min: 2, max: 4 }), fc.boolean(), fc.nat({ max: 3 }))
    await fc.assert(
      fc.asyncProperty(logs, async ([steps, partitions, isFar, sharedFrom]) => {
        const { left, expected } = await runScenario(steps, 1, inMemory(partitions, isFar), sharedFrom)
        expect(left).toEqual(expected)
      }),
      runs(60),
    )
  })

  it('has the state and the output of one plain run, in an SQLite file', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (steps) => {
        const { left, expected } = await runScenario(steps, 4, inFile)
        expect(left).toEqual(expected)
      }),
      runs(25),
    )
  })
})
