/**
 * A delivery was aborted or has failed, and not all that was in flight ended in time. What was cut off was not saved as
 * handled, so it comes again where there is a checkpoint; what its handler had done by then is done. `cause` is what had
 * failed before, if something had.
 */
export class DrainTimeoutError extends Error {
  override readonly name = 'DrainTimeoutError'
  /** How many events were cut off. */
  readonly cutOff: number
  /** How long they had, in ms. */
  readonly drainTimeout: number

  constructor(cutOff: number, drainTimeout: number, options?: ErrorOptions) {
    super(
      `${cutOff} ${cutOff === 1 ? 'event was' : 'events were'} still being handled when the drainTimeout of ` +
        `${drainTimeout} ms was over: give handlers a longer one, or have them obey their signal`,
      options,
    )
    this.cutOff = cutOff
    this.drainTimeout = drainTimeout
  }
}
