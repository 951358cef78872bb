import { RequestError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'

/** Why a stream is incomplete. */
export interface Incompleteness {
  /** Number of ended runs, or of candidates, that are missing. */
  readonly missing: number
  /** Number of them that the stream must send. */
  readonly expected: number
  /** A description of what is missing, and what to do about it. */
  readonly what: string
  readonly advice: string
  /** How long no new event came, in ms. */
  readonly patience: number
}

/**
 * A task group, a run or a FindAll run is done, but its stream did not send all events, although it was resumed for as long as the client's
 * option `patience` allows. The emitted events are valid. Retryable: subscribe again.
 */
export class IncompleteStreamError extends RequestError {
  override readonly name = 'IncompleteStreamError'
  override readonly code = 'incomplete_stream'
  override readonly retryable = true
  /** Number of ended runs, or of candidates of a FindAll run, that are missing; 0 if only the last status is missing. */
  readonly missing: number
  /** Number of them that the stream must send: 1 for a single run. */
  readonly expected: number

  constructor(request: RequestLine, { missing, expected, what, advice, patience }: Incompleteness) {
    super(`${what}, and no new event came for ${patience} ms; ${advice}`, request)
    this.missing = missing
    this.expected = expected
  }
}
