import { ProtocolError } from '../../transport/errors.ts'

/** The ProtocolError in a row that is not retried. Fewer may be the page of a proxy, which is transient. */
const MAX_IN_ROW = 5

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
