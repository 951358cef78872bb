import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'

/** A database of effects in a folder, each an id. Closed after the test. */
export function scratchEffects(folder: string) {
  const database = new DatabaseSync(join(folder, 'effects.db'))
  onTestFinished(() => database.close())
  database.exec('CREATE TABLE effect (id TEXT NOT NULL)')
  return {
    database,
    insert: database.prepare('INSERT INTO effect VALUES (?)'),
    effects: () =>
      database
        .prepare('SELECT id FROM effect ORDER BY rowid')
        .all()
        .map(({ id }) => String(id)),
  }
}
