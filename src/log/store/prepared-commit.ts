import { MAX_COMMIT_BYTES } from './contract.ts'
import type { Commit, Position } from './contract.ts'
import type { NewDeadLetter } from './dead-letter-store.ts'
import { LogValueError } from '../errors.ts'
import { checkAppendSize, prepareEntry } from './prepared-entry.ts'
import type { PreparedEntry } from './prepared-entry.ts'
import type { ProcessCommit } from './process-store.ts'
import { OVERHEAD, stateBytes, timerBytes, utf8Length } from '../../streams/sizes.ts'

/** A commit as a store writes it. Later changes of the commit by the caller have no effect. */
export interface PreparedCommit {
  readonly expect: Position | null
  readonly cursor: Position
  readonly acknowledged: readonly Position[]
  readonly isCopy: boolean
  readonly deadLetters: readonly NewDeadLetter[]
  readonly redelivered: readonly Position[]
  readonly process: ProcessCommit | undefined
  readonly entries: readonly PreparedEntry[]
}

/**
 * Prepares a commit with its defaults.
 *
 * @throws {LogValueError} for one of more than {@link MAX_COMMIT_BYTES}, and for an event that is not JSON.
 */
export function preparedCommit(log: string, reader: string, given: Commit): PreparedCommit {
  const { process, entries = [], expect, cursor, acknowledged, isCopy = false } = given
  const { deadLetters = [], redelivered = [] } = given
  const reading = {
    expect,
    cursor,
    acknowledged: [...acknowledged],
    isCopy,
    deadLetters: structuredClone(deadLetters),
    redelivered: [...redelivered],
  }
  const commit = {
    ...reading,
    process: process && { ...process, state: [...process.state], timers: [...process.timers] },
    entries: entries.map((entry) => prepareEntry(log, reader, entry)),
  }
  checkAppendSize(log, commit.entries)
  const bytes =
    utf8Length(JSON.stringify({ ...reading, deadLetters: [] })) +
    sum(reading.deadLetters, deadLetterBytes) +
    utf8Length(process?.checkpoint ?? '') +
    sum(commit.process?.state ?? [], stateBytes) +
    sum(commit.process?.timers ?? [], timerBytes) +
    sum(commit.entries, entryBytes)
  if (bytes <= MAX_COMMIT_BYTES) return commit
  const problem = `its ${bytes} bytes are more than ${MAX_COMMIT_BYTES}`
  throw new LogValueError(log, `a commit of ${JSON.stringify(reader)}`, problem)
}

/** The size of a dead letter in a commit, in bytes. Its texts may have characters that JSON escapes. */
export function deadLetterBytes(deadLetter: NewDeadLetter): number {
  return OVERHEAD + utf8Length(JSON.stringify(deadLetter))
}

/** The size of an entry in a commit, in bytes. */
export function entryBytes({ json }: PreparedEntry): number {
  return OVERHEAD + utf8Length(json)
}

function sum<Part>(parts: readonly Part[], bytesOf: (part: Part) => number): number {
  return parts.reduce((bytes, part) => bytes + bytesOf(part), 0)
}
