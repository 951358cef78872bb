import { LogFileError } from '../errors.ts'
import { isOnReadOnlyFileSystem } from './file-system.ts'

/** Primary result codes of SQLite. */
const BUSY = 5
const READ_ONLY = 8
const CORRUPT = 11
const FULL = 13
const CANNOT_OPEN = 14
const PROTOCOL = 15
const CONSTRAINT = 19
const NOT_A_DATABASE = 26

/** SQLITE_BUSY, NOMEM, INTERRUPT, IOERR and FULL: SQLite may roll back the whole transaction by itself. */
const ROLLING_BACK = new Set([BUSY, 7, 9, 10, FULL])

interface Problem {
  /** Message: what happened, and what to do. */
  readonly text: string
  /** Whether the same call may succeed later. */
  readonly retryable: boolean
}

const PROBLEMS: Readonly<Record<number, Problem>> = {
  [BUSY]: {
    text: 'is locked by another program: find out which one, and let it end its transaction',
    retryable: true,
  },
  [READ_ONLY]: {
    text: 'cannot be written: give this process write permission to the file and its folder',
    retryable: false,
  },
  10: { text: 'could not be read or written, since its disk failed: check the disk', retryable: false },
  [FULL]: { text: 'could not be written, since the disk is full: free some space', retryable: true },
  [CANNOT_OPEN]: {
    text: 'cannot be opened: create its folder, and give this process permission to it',
    retryable: false,
  },
}

/** Whether another connection holds a lock that this one needs, so that the same call succeeds later. */
export function isBusy(error: unknown): boolean {
  const code = resultCode(error)
  // A connection gets SQLITE_PROTOCOL after losing a race for the WAL several times in a row.
  return code === BUSY || code === PROTOCOL
}

/** Whether a constraint is violated. The commit checks the deferred ones. */
export function isConstraint(error: unknown): boolean {
  return resultCode(error) === CONSTRAINT
}

/** Whether a commit or checkpoint with this error has left everything as it was: another program has a lock, the disk is full, a constraint is violated. */
export function isUndone(error: unknown): boolean {
  return isBusy(error) || isConstraint(error) || resultCode(error) === FULL
}

/** Whether SQLite may have rolled the transaction back because of it. */
export function mayRollBack(error: unknown): boolean {
  const code = resultCode(error)
  return code !== undefined && ROLLING_BACK.has(code)
}

/** Whether a BEGIN was refused since a transaction is open. SQLite has no code of its own for it. */
export function isNestedBegin(error: unknown): boolean {
  return (
    resultCode(error) === 1 &&
    error instanceof Error &&
    error.message.includes('start a transaction within a transaction')
  )
}

/** An error like SQLite's own for which {@link isBusy} is true, for work that could not begin. */
export function busyError(): Error {
  return Object.assign(new Error('database is locked'), { errcode: BUSY })
}

/** SQLite's error as a `LogFileError` that names the file. Other errors are returned as they are. */
export function logFileError(file: string, error: unknown): unknown {
  const code = resultCode(error)
  if (code === undefined || !(error instanceof Error)) return error
  if (code === CORRUPT || code === NOT_A_DATABASE) return damaged(file, error.message, error)
  if ((code === CANNOT_OPEN || code === READ_ONLY) && isOnReadOnlyFileSystem(file)) {
    const problem =
      'is on a file system that is mounted read-only: mount its folder for writing, which readers need too'
    return new LogFileError(file, problem, { cause: error })
  }
  const { text, retryable } = PROBLEMS[code === PROTOCOL ? BUSY : code] ?? {
    text: `cannot be used: ${error.message}`,
    retryable: false,
  }
  return new LogFileError(file, text, { cause: error, retryable })
}

/** The error for a file whose contents are not those of a log. */
export function damaged(file: string, problem: string, cause?: unknown): LogFileError {
  return new LogFileError(
    file,
    `is damaged or not an SQLite database (${problem.replaceAll(/\s+/g, ' ')}): restore it from a backup, move it away ` +
      'together with its -wal and -shm files to start a new log, or name another file. It was left as it is',
    { cause },
  )
}

/** SQLite's primary result code; undefined for another error. */
function resultCode(error: unknown): number | undefined {
  const isSqlite = error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
  return isSqlite ? Number(error.errcode) & 0xff : undefined
}
