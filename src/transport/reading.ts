import type { RequestLine } from './errors.ts'
import type { MessageReaders } from './message-reader.ts'
import type { Redact } from './redact.ts'

/** What the reading of every answer needs to know. */
export interface Reading {
  readonly request: RequestLine
  /** Bytes of a whole answer, at the most. */
  readonly maxBodyBytes: number
  /** Characters of one event's data in a stream, at the most. */
  readonly maxEventLength: number
  /** What reads event streams; shared by all of them. */
  readonly readers: MessageReaders
  /** Unix time in ms. */
  now(): number
  /** Takes the request's secrets out of text that the service wrote, before it gets into an error. */
  readonly redact: Redact
}
