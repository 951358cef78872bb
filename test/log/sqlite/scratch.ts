import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { sqliteStore } from '../../../src/log/sqlite/index.ts'
import type { SqliteStoreOptions } from '../../../src/log/sqlite/index.ts'
import { SqliteLogStore } from '../../../src/log/sqlite/store.ts'
import type { SqliteStoreSettings } from '../../../src/log/sqlite/store.ts'

/** A folder for one test, removed after it. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-log-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** A path where no file is. */
export function scratchFile(): string {
  return join(scratchFolder(), 'log.db')
}

/** A log that is closed after the test. */
export function openLog(file: string, options?: SqliteStoreOptions) {
  const log = sqliteStore(file, options)
  onTestFinished(() => log.close())
  return log
}

/** A log with settings that users do not have, closed after the test. */
export function openStore(file: string, settings: Partial<SqliteStoreSettings>) {
  const log = new SqliteLogStore(file, { owner: 'this test', clock: Date.now, ...settings })
  onTestFinished(() => log.close())
  return log
}
