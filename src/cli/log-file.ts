import { openLog } from 'rivulet'
import type { EventLog, LogStore } from 'rivulet'

/** A log in a file, with its store. Disposing of it closes both. */
export interface LogFile extends AsyncDisposable {
  readonly log: EventLog
  readonly store: LogStore
}

/** Opens the log in a file. With `create`, a missing file is created; otherwise it is an error that names the file. */
export async function openLogFile(file: string, create: boolean): Promise<LogFile> {
  // Loaded where it is needed: without SQLite the command starts sooner.
  const { sqliteLog } = await import('rivulet/log/sqlite')
  const store = sqliteLog(file, { create })
  const log = await openLog(store)
  return { log, store, [Symbol.asyncDispose]: () => log.close() }
}
