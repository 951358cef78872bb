import type { RequestLine } from './errors.ts'
import type { MessageReaders } from './message-reader.ts'
import type { Redact } from '../protocol/redactor.ts'

/** The values that the readers of a response share. */
export interface ResponseContext {
  readonly request: RequestLine
  /** The largest response body, in bytes. */
  readonly maxBodyBytes: number
  /** The longest data of one event in a stream, in characters. */
  readonly maxEventLength: number
  /** The pool that all event streams share. */
  readonly readers: MessageReaders
  /** The current time, Unix ms. */
  now(): number
  /** Removes the request's secrets from the service's text before it goes into an error. */
  readonly redact: Redact
}
