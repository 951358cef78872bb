import type { Identified } from '../src/protocol/identified.ts'

/**
 * Whoever keeps the place of a pipeline, as `deliver` sees it: it is told of each event twice. A checkpoint of
 * `openCheckpoint` is one.
 */
export interface Progress<T = Identified> {
  /** Somebody who will receive events begins to listen. Returns what takes that back. */
  attach?(): () => void
  /**
   * The event came to the handler. Called synchronously within its emission, in the order of coming.
   *
   * @throws Error for an event whose place is not known, or that comes when its emission is over: by then it may count as
   * filtered out, as whatever is not received does.
   */
  received(event: T): void
  /** The event was handled, or given up for a dead letter. Settles when that is saved. */
  handled(event: T): void | PromiseLike<void>
}
