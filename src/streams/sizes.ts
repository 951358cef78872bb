import type { TimerChange } from './timers.ts'

/** Maximum number of events that one call of a function appends: as many as fit into an append of a log. */
export const MAX_OUTPUTS = 256

/** Maximum size of what one call of a function changes, in bytes: it fits into a commit of a log with the checkpoint of the process. */
export const MAX_EFFECT_BYTES = 448 * 1024

/** Size of the field names and the punctuation of each part of a commit, in bytes, rounded up. */
export const OVERHEAD = 64

/** The size of a state in a commit, in bytes. */
export function stateBytes({ key, state }: { readonly key: string; readonly state: string | null }): number {
  return OVERHEAD + utf8Length(key) + utf8Length(state ?? '')
}

/** The size of a timer in a commit, in bytes. */
export function timerBytes(timer: TimerChange): number {
  const bytes = OVERHEAD + utf8Length(timer.key) + utf8Length(timer.name)
  return timer.due === null ? bytes : bytes + utf8Length(timer.cause) + utf8Length(timer.data ?? '')
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
