/**
 * Why a job has no result: it exceeded its time or its memory, ended its thread, or threw an error; too many jobs wait; the
 * service is closed.
 */
export type IsolatedErrorKind = 'timeout' | 'memory' | 'crash' | 'failed' | 'busy' | 'closed'

/** A job of the isolated thread that has no result. */
export class IsolatedError extends Error {
  readonly kind: IsolatedErrorKind

  constructor(kind: IsolatedErrorKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'IsolatedError'
    this.kind = kind
  }

  /** Whether the job itself is not the reason, so that a later attempt may succeed. */
  get isTemporary(): boolean {
    return this.kind === 'busy' || this.kind === 'closed' || this.kind === 'crash'
  }
}
