import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * A database of effects. No constraint keeps a second effect of the same entry out: it is to be seen. A call is noted before
 * its effect.
 */
export function openEffects(folder: string, name: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, `${name}.db`), { timeout: 5_000 })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  for (const table of ['calls', 'effects']) {
    database.exec(
      `CREATE TABLE IF NOT EXISTS ${table}
        (number INTEGER PRIMARY KEY, source TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL) STRICT`,
    )
  }
  return database
}
