/** The model server failed, or its answer cannot be used. The message has no secrets. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
  /** Whether the same request may succeed in some seconds. */
  readonly isTransient: boolean
  /** What the server asks to wait before that, in ms; 0 if it asks for nothing. */
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
