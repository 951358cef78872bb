import { randomBytes, randomUUID } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { LogFileError } from '../errors.ts'
import { createPrivateFile } from './file-system.ts'
import { logFileError } from './sqlite-error.ts'
import { whileBusy } from './write-queue.ts'

/** How many pages are copied at once, in another thread. */
const RATE = 1_000

/** How long the copy waits for a program that recovers the log, in ms. */
const PATIENCE = 10_000

/**
 * Copies a log into a new file. The copy is made under another name and gets its name at last, so there is never a part of it.
 *
 * The source is read from one snapshot, under a connection of its own. Without the snapshot, SQLite's backup begins anew with
 * each write of another process, and may never end. Until it is done, the write-ahead log of the source grows.
 */
export async function backUp(path: string, file: string): Promise<void> {
  if (existsSync(file)) throw existing(file)
  const unnamed = `${file}-${randomUUID()}`
  try {
    createPrivateFile(unnamed)
    await copy(path, unnamed, file)
    makeAnother(unnamed)
    sync(unnamed)
    giveName(unnamed, file)
    sync(dirname(file))
  } catch (error) {
    throw logFileError(file, error)
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${unnamed}${suffix}`, { force: true })
  }
}

async function copy(path: string, unnamed: string, file: string): Promise<void> {
  const source = new DatabaseSync(path, { timeout: 0, readOnly: true })
  try {
    await whileBusy(() => {
      if (source.isTransaction) source.exec('ROLLBACK')
      source.exec('BEGIN')
      source.prepare('SELECT epoch FROM rivulet_log').get()
    }, PATIENCE).catch((error: unknown) => {
      throw logFileError(path, error)
    })
    await backup(source, unnamed, { rate: RATE }).catch((cause: unknown) => {
      const problem = cause instanceof Error ? cause.message : String(cause)
      throw new LogFileError(
        file,
        `could not be written (${problem}): free some space, or use another disk`,
        { cause },
      )
    })
  } finally {
    source.close()
  }
}

/**
 * Texts with positions, which get the epoch of the copy: what processes keep of themselves, and the cursors of effects in the
 * log's own file. Those of other logs have another epoch, and stay.
 */
const POSITION_TEXTS = [
  ['rivulet_process', 'checkpoint'],
  ['rivulet_effect_cursor', 'cursor'],
  ['rivulet_effect_cursor', 'acknowledged'],
  ['rivulet_effect_applied', 'position'],
  ['rivulet_effect_dead_letter', 'position'],
  ['rivulet_effect_dead_letter', 'letter'],
  ['rivulet_effect_moved', 'state'],
] as const

/** Positions of the copy are not those of the source once both were written to, so they get another epoch. No name is claimed. */
function makeAnother(unnamed: string): void {
  const database = new DatabaseSync(unnamed)
  try {
    // One file, without a write-ahead log beside it.
    database.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN')
    const before = String(database.prepare('SELECT epoch FROM rivulet_log').get()?.['epoch'])
    const epoch = randomBytes(8).toString('hex')
    database.prepare('UPDATE rivulet_log SET epoch = ?, paused_by = NULL').run(epoch)
    for (const [table, column] of POSITION_TEXTS) {
      const isThere = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(table) !== undefined
      const update = `UPDATE ${table} SET ${column} = replace(${column}, ?, ?)`
      if (isThere) database.prepare(update).run(before, epoch)
    }
    database.exec('UPDATE rivulet_claim SET token = token + 1, slot = NULL, instance = NULL; COMMIT')
  } finally {
    database.close()
  }
}

/** Gives a file its own name, which no other one may have. */
export function giveName(unnamed: string, file: string): void {
  try {
    // Not a renaming, which would overwrite a file that is there by now.
    linkSync(unnamed, file)
  } catch (error) {
    if (existsSync(file)) throw existing(file)
    throw error
  }
}

/** Syncs a file or a folder. No connection has the file: the close of a descriptor gives up POSIX locks. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** The error for a file that is there. */
export function existing(file: string): LogFileError {
  return new LogFileError(file, 'exists already: name a new file for the copy')
}
