import { mkdtempSync, readdirSync, rmSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LogStore } from 'rivulet/log/store'
import { SqliteLogStore } from '../../src/log/sqlite/store.ts'
import { runScenario, scenario } from './process/scenario.ts'
import type { LogWithFaults } from './process/scenario.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

const runs = (count: number) => ({ numRuns: Number(process.env['RUNS'] ?? count) })

function inMemory(partitions: number, isFar: boolean) {
  return (clock: () => number): LogWithFaults => {
    const root = simulatedStore({ partitions, clock })
    const opened = new Map<LogStore, SimulatedStore>()
    return {
      connect(isDue) {
        const faults = (_write: string, phase: 'before' | 'after') => {
          if (isDue()) throw new Error(`crashed ${phase} the effect`)
        }
        const latency = isFar ? () => turn() : async () => {}
        const log = root.connect({ faults, latency })
        opened.set(log, log)
        return log
      },
      loseClaims: async (store) => opened.get(store)?.loseClaims(),
      remove: async () => {},
    }
  }
}

function inFile(clock: () => number): LogWithFaults {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-process-'))
  const file = join(folder, 'log.db')
  return {
    connect(isDue) {
      class Connection extends DatabaseSync {
        override exec(sql: string): void {
          if (sql !== 'COMMIT' || !this.isWriting) {
            this.isWriting = sql === 'BEGIN IMMEDIATE'
            return super.exec(sql)
          }
          if (isDue()) throw new Error('crashed before the commit')
          super.exec(sql)
          if (isDue()) throw new Error('crashed after the commit')
        }

        private isWriting = false
      }
      const connect = (path: string) => new Connection(path, { timeout: 0 })
      return new SqliteLogStore(file, { owner: 'test', clock, connect })
    },
    async loseClaims() {
      for (const name of readdirSync(folder)) if (name.includes('-lock-')) unlinkSync(join(folder, name))
    },
    remove: async () => rmSync(folder, { recursive: true }),
  }
}

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
