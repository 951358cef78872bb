import { RivuletError } from '../../src/protocol/rivulet-error.ts'

/**
 * Handlers did not end within `drainTimeout` after an abort or a failure. The events they were handling are not
 * acknowledged: they come again at the next start, although their handlers may have had effects. `cause` is the failure, if
 * there was one.
 */
export class DrainTimeoutError extends RivuletError {
  override readonly name = 'DrainTimeoutError'
  override readonly code = 'drain_timeout'
  /** Number of events that were in flight. */
  readonly cutOff: number
  /** The timeout that elapsed, in ms. */
  readonly drainTimeout: number

  constructor(cutOff: number, drainTimeout: number, options?: ErrorOptions) {
    super(
      `${cutOff} ${cutOff === 1 ? 'event was' : 'events were'} still being handled when the drainTimeout of ` +
        `${drainTimeout} ms was over: use a longer drainTimeout, or make the handlers stop when their signal aborts`,
      options,
    )
    this.cutOff = cutOff
    this.drainTimeout = drainTimeout
  }
}
