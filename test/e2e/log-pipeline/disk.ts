import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryLog } from 'rivulet'
import { sqliteLog } from 'rivulet/log/sqlite'
import type { LogStore } from '../../../src/log/store/contract.ts'

/** The storage of a log, which survives its processes. */
export interface Disk {
  /** The log as the audit opens it, without faults. */
  readonly root: LogStore
  /** Opens the log for one process. */
  open(): OpenDisk
  /** Resolves when the claims of dead processes are free. */
  settled(): Promise<void>
  dispose(): Promise<void>
}

/** The log of one process. */
export interface OpenDisk {
  readonly store: LogStore
  /** Frees the claims of a process that does not notice. */
  loseClaims(): void
}

/** Where a log is stored. */
export type StorageScript =
  | { readonly kind: 'memory'; readonly partitions: number }
  | { readonly kind: 'sqlite' }

/** @param clock Unix time in ms. */
export function openDisk(script: StorageScript, clock: () => number): Disk {
  return script.kind === 'sqlite' ? sqliteDisk(clock) : memoryDisk(script.partitions, clock)
}

function memoryDisk(partitions: number, clock: () => number): Disk {
  const root = memoryLog({ partitions, clock })
  return {
    root,
    open() {
      const store = root.connect()
      return { store, loseClaims: () => store.loseClaims() }
    },
    settled: async () => {},
    dispose: () => root.close(),
  }
}

function sqliteDisk(clock: () => number): Disk {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-pipeline-'))
  const file = join(folder, 'log.db')
  const root = sqliteLog(file, { clock })
  const opened: LogStore[] = [root]
  let closings: Promise<void>[] = []
  return {
    root,
    open() {
      const store = sqliteLog(file, { clock })
      opened.push(store)
      // A killed process closes its file too, and its locks with it.
      return { store, loseClaims: () => void closings.push(store.close()) }
    },
    async settled() {
      const settling = closings
      closings = []
      await Promise.all(settling)
    },
    async dispose() {
      await Promise.all(opened.map((store) => store.close()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
