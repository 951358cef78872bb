import { ProtocolError } from '../../transport/errors.ts'

/** Wrong answers in a row that end a source. Fewer may be the page of a proxy that passes. */
const MAX_IN_ROW = 5

/** Counts the answers in a row that are not what was asked for. */
export class WrongAnswers {
  #inRow = 0

  /** A right answer came. */
  right(): void {
    this.#inRow = 0
  }

  /** Whether it may be asked again after this error: false for the fifth ProtocolError in a row. */
  mayAskAgain(error: unknown): boolean {
    return !(error instanceof ProtocolError) || ++this.#inRow < MAX_IN_ROW
  }
}
