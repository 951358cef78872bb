import type { DeadLetterError } from '../store/dead-letter-store.ts'
import { cutText } from '../../protocol/cut-text.ts'
import { NO_TEXT } from '../../protocol/error-text.ts'

const MAX_NAME_LENGTH = 100
const MAX_MESSAGE_LENGTH = 1_000

/** The error as a dead letter stores it: its name and message, truncated. */
export function deadLetterError(error: unknown): DeadLetterError {
  try {
    const isError = error instanceof Error
    const name = isError ? error.name : typeof error
    const message = isError ? error.message : error
    return { name: cut(String(name), MAX_NAME_LENGTH), message: cut(String(message), MAX_MESSAGE_LENGTH) }
  } catch {
    // A getter of it throws, or it has no text.
    return { name: typeof error, message: NO_TEXT }
  }
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${cutText(text, length - 1)}…`
}
