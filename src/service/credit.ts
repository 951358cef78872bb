import { problem } from './http/problem.ts'

/** When to ask again, in s. A credit is free again as soon as a run ends, which is not known beforehand. */
const RETRY_AFTER = '1'

/** Limits how many runs are active at once: each task run and each FindAll run reserves a credit until it ends. */
export class Credit {
  readonly #limit: number
  readonly #areas: (() => number)[] = []

  /** @param limit The number of credits. Default: without a limit. */
  constructor(limit = Infinity) {
    this.#limit = limit
  }

  /** Adds an area of the service whose active runs reserve credits. */
  reservedBy(active: () => number): void {
    this.#areas.push(active)
  }

  /** Responds with 402 unless there is a credit for each of `needed` new runs besides the active ones. */
  require(needed: number): void {
    if (this.#limit === Infinity) return
    const credit = this.#limit
    const reserved = this.#areas.reduce((sum, active) => sum + active(), 0)
    if (reserved + needed <= credit) return
    const message = `Not enough credit: ${needed} needed, and ${Math.max(0, credit - reserved)} of ${credit} are free`
    throw problem(402, message, { credit, reserved, needed }, { 'retry-after': RETRY_AFTER })
  }
}
