import { openLog } from 'rivulet/log'
import type { EventLog, LogOptions } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { isServerAddress, serverLog } from './server-log.ts'

/** A log with its store. Disposing of it closes both. */
export interface OpenedLog extends AsyncDisposable {
  readonly log: EventLog
  readonly store: LogStore
}

/** The option of a log: its flags and its description. */
export const LOG_OPTION = ['--log <file|url>', 'log: an SQLite file, or nats://host:4222/NAME'] as const

/** Opens a log, which is created for a recording. Otherwise a missing one is an error that names it. */
export async function openLogAt(place: string, recording?: LogOptions): Promise<OpenedLog> {
  const store = await storeAt(place, recording !== undefined)
  const log = await openLog(store, recording)
  return { log, store, [Symbol.asyncDispose]: () => log.close() }
}

/** Opens a log to append to it. It must exist, and deletes no more than its last recording does. */
export async function openLogToAppend(place: string): Promise<OpenedLog> {
  const store = await storeAt(place, false)
  try {
    const { maxBytes } = await store.retention.room()
    const log = await openLog(store, { retention: maxBytes === null ? {} : { maxBytes } })
    return { log, store, [Symbol.asyncDispose]: () => log.close() }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** The store of a log in a file, or on a server if `place` is an address. Both are loaded only when they are needed. */
export async function storeAt(place: string, create: boolean): Promise<LogStore> {
  if (isServerAddress(place)) return serverLog(place, create)
  const { sqliteStore } = await import('rivulet/log/sqlite')
  return sqliteStore(place, { create })
}
