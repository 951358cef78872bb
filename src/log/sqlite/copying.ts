import { LogInUseError } from '../errors.ts'
import type { CopySource, CopyStore, CopyTarget } from '../store/copy-store.ts'
import { originalText } from '../../protocol/stored-text.ts'
import { SqliteClaims } from './claims.ts'
import { SqliteCopySource } from './copy-source.ts'
import { SqliteCopyTarget } from './copy-target.ts'
import { connect, LogFile } from './log-file.ts'
import { logFileError } from './sqlite-error.ts'
import { whileBusy } from './write-queue.ts'

/** Maximum time to wait for a write of another program, in ms. */
const PATIENCE = 10_000

/** A log in an SQLite file, to be copied as a whole or made as a copy. */
export class SqliteCopying implements CopyStore {
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  /** Opens the log as a source. Writes of other processes wait until it is closed, as behind any other write. */
  async source(): Promise<CopySource> {
    try {
      const file = await whileBusy(() => new LogFile(this.#name, connect, false), PATIENCE)
      try {
        await whileBusy(() => file.database.exec('BEGIN IMMEDIATE'), PATIENCE)
        checkUnclaimed(file)
        const { database, name, epoch } = file
        return new SqliteCopySource({
          database,
          name,
          epoch,
          check: () => file.checkPresent(),
          close: () => file.close(),
        })
      } catch (error) {
        file.close()
        throw error
      }
    } catch (error) {
      throw logFileError(this.#name, error)
    }
  }

  async target(): Promise<CopyTarget> {
    try {
      return new SqliteCopyTarget(this.#name)
    } catch (error) {
      throw logFileError(this.#name, error)
    }
  }
}

/** Throws a LogInUseError if an open log has claimed anything. */
function checkUnclaimed(file: LogFile): void {
  const ownerOf = new SqliteClaims(file, '').owners()
  const names = file.database.prepare('SELECT name FROM rivulet_claim WHERE slot IS NOT NULL')
  for (const { name: stored } of names.all()) {
    const name = originalText(String(stored))
    const owner = ownerOf(name)
    if (owner !== null) throw new LogInUseError(file.name, name, owner)
  }
}
