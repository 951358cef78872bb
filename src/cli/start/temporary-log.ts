import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'

/** Opens a log in a temporary file. Disposing of it closes the log and removes the file. */
export async function openTemporaryLog(): Promise<{ readonly log: EventLog } & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-'))
  const log = await openLog(sqliteStore(join(folder, 'log.db')))
  return {
    log,
    async [Symbol.asyncDispose]() {
      await log.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
