import type { NewDeadLetter } from './dead-letter-store.ts'
import type { PreparedEntry } from './new-entry.ts'
import type { Commit } from './contract.ts'
import type { StateChange, TimerChange } from './process-store.ts'

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

/** Size of the field names and the punctuation of each part of a commit, in bytes, rounded up. */
const OVERHEAD = 64

/** The size of a state in a commit, in bytes. */
export function stateBytes({ key, state }: StateChange): number {
  return OVERHEAD + utf8Length(key) + utf8Length(state ?? '')
}

/** The size of a timer in a commit, in bytes. */
export function timerBytes(timer: TimerChange): number {
  const cause = timer.due === null ? '' : timer.cause
  return OVERHEAD + utf8Length(timer.key) + utf8Length(timer.name) + utf8Length(cause)
}

/** The size of a dead letter in a commit, in bytes. Its texts may have characters that JSON escapes. */
export function deadLetterBytes(deadLetter: NewDeadLetter): number {
  return OVERHEAD + utf8Length(JSON.stringify(deadLetter))
}

/** The size of an entry in a commit, in bytes. */
export function entryBytes({ json }: PreparedEntry): number {
  return OVERHEAD + utf8Length(json)
}

/** The length of the text in UTF-8, without encoding it. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 0x80) continue
    // Each half of a surrogate pair counts two of its four bytes.
    bytes += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2
  }
  return bytes
}

function sum<Part>(parts: readonly Part[], bytesOf: (part: Part) => number): number {
  return parts.reduce((bytes, part) => bytes + bytesOf(part), 0)
}
