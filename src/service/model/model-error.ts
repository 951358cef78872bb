/** The model server failed, or its answer cannot be used. The message has no secrets. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
  /** Whether the same request may succeed in some seconds. */
  readonly isTransient: boolean

  constructor(
    message: string,
    { isTransient = false, cause }: { isTransient?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.isTransient = isTransient
  }
}
