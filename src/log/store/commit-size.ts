import type { NewDeadLetter } from './dead-letter-store.ts'
import type { PreparedEntry } from './new-entry.ts'
import type { Commit } from './contract.ts'
import { OVERHEAD, stateBytes, timerBytes, utf8Length } from '../../streams/sizes.ts'

/** The size of a commit as JSON, in bytes. The texts of an entry, a state or a timer count as they are. */
export function commitBytes({ deadLetters = [], entries = [], process, ...reading }: Commit): number {
  return (
    utf8Length(JSON.stringify(reading)) +
    sum(deadLetters, deadLetterBytes) +
    utf8Length(process?.checkpoint ?? '') +
    sum(process?.state ?? [], stateBytes) +
    sum(process?.timers ?? [], timerBytes) +
    sum(entries, entryBytes)
  )
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
