/** The model server failed, or its answer cannot be used. The message has no secrets. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
  /** Whether the same request may succeed in some seconds. */
  readonly isTransient: boolean
  /** The wait that the server asks for before that, in ms; 0 if it asks for none. */
  readonly retryAfter: number

  constructor(message: string, { isTransient = false, retryAfter = 0, cause }: ModelErrorDetails = {}) {
    super(message, { cause })
    this.isTransient = isTransient
    this.retryAfter = retryAfter
  }
}

interface ModelErrorDetails {
  readonly isTransient?: boolean
  readonly retryAfter?: number
  readonly cause?: unknown
}
