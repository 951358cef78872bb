import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from 'rivulet/log/sqlite'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { simulatedStore } from '../../../src/log/memory/store.ts'

/** The storage of a log, which survives its processes. */
export interface Disk {
  /** The log as the audit opens it, without faults. */
  readonly root: LogStore
  /** Opens the log for one process. */
  open(): OpenDisk
  /** Whether the claims of all dead processes are free. */
  readonly isSettled: boolean
  /** Resolves when they are. */
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
  const root = simulatedStore({ partitions, clock })
  return {
    root,
    open() {
      const store = root.connect()
      return { store, loseClaims: () => store.loseClaims() }
    },
    isSettled: true,
    settled: async () => {},
    dispose: () => root.close(),
  }
}

function sqliteDisk(clock: () => number): Disk {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-pipeline-'))
  const file = join(folder, 'log.db')
  const root = sqliteStore(file, { clock })
  const opened: LogStore[] = [root]
  const closings = new Set<Promise<void>>()
  return {
    root,
    open() {
      const store = sqliteStore(file, { clock })
      opened.push(store)
      // A killed process closes its file too, and its locks with it.
      const loseClaims = () => {
        const closing = store.close().finally(() => closings.delete(closing))
        closings.add(closing)
      }
      return { store, loseClaims }
    },
    get isSettled() {
      return closings.size === 0
    },
    async settled() {
      await Promise.all(closings)
    },
    async dispose() {
      await Promise.all(opened.map((store) => store.close()))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
