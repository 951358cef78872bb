import { ProtocolError } from '../../transport/errors.ts'

/** The ProtocolError in a row that is not retried. Fewer may be the page of a proxy, which is transient. */
const MAX_IN_ROW = 5

/** How many connections in a row may end at a malformed event. At the last one, the event is emitted as it is. */
export const MAX_MALFORMED = 6

/** Limits how many times in a row a request is retried after a ProtocolError. */
export class ProtocolErrorLimit {
  #inRow = 0

  /** Called after each valid response. */
  reset(): void {
    this.#inRow = 0
  }

  /** Counts the error. Returns whether a retry is permitted: false for the fifth ProtocolError in a row. */
  permitsRetry(error: unknown): boolean {
    return !(error instanceof ProtocolError) || ++this.#inRow < MAX_IN_ROW
  }
}
