import { openLog } from 'rivulet'
import type { EventLog, LogOptions, LogStore } from 'rivulet'

/** A log in a file, with its store. Disposing of it closes both. */
export interface LogFile extends AsyncDisposable {
  readonly log: EventLog
  readonly store: LogStore
}

/** Opens the log in a file, which is created for a recording. Otherwise a missing file is an error that names it. */
export async function openLogFile(file: string, recording?: LogOptions): Promise<LogFile> {
  // Loaded where it is needed: without SQLite the command starts sooner.
  const { sqliteLog } = await import('rivulet/log/sqlite')
  const store = sqliteLog(file, { create: recording !== undefined })
  const log = await openLog(store, recording)
  return { log, store, [Symbol.asyncDispose]: () => log.close() }
}
