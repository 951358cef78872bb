import { mkdtempSync, readdirSync, rmSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import type { LogStore } from 'rivulet/log/store'
import { simulatedStore } from '../../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../../src/log/memory/store.ts'
import { SqliteLogStore } from '../../../src/log/sqlite/store.ts'

/** A log under test, whose open logs crash and die. */
export interface LogWithFaults {
  /** @param isDue Whether the next write crashes. A crash is before or after its effect. */
  connect(isDue: () => boolean): LogStore
  /** Frees the claims of an open log, as when its process was killed. */
  loseClaims(store: LogStore): Promise<void>
  remove(): Promise<void>
}

/** Opens a log with faults, whose time is that of the clock. */
export type OpenWithFaults = (clock: () => number) => LogWithFaults

/** A log in memory. @param isFar Whether its calls take several turns of the event loop. */
export function inMemory(partitions: number, isFar: boolean): OpenWithFaults {
  return (clock) => {
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

/** A log in an SQLite file. */
export function inFile(clock: () => number): LogWithFaults {
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
