/**
 * A checkpoint that is not used as it has to be: an event that it knows nothing of, an effect that is not synchronous, a
 * checkpoint that is closed. The message says what to change in the pipeline.
 */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError'
  /** Trying again changes nothing, and `deliver` does not. */
  readonly retryable = false
}

/** Who holds what another process asked for. */
export interface Holder {
  /** The file, or `memory`. */
  readonly file: string
  /** Process and host, or the name that was given to the store. */
  readonly owner: string
  /** When the hold ends unless it is renewed, in Unix ms; undefined where it ends with the process. */
  readonly expiresAt: number | undefined
}

/** Another process holds this state; two at once would each undo the other's. See {@link CheckpointInUseError}. */
export class StateInUseError extends Error {
  override readonly name: string = 'StateInUseError'
  /** An event cannot wait until it is free, and `deliver` does not try. */
  readonly retryable = false
  readonly file: string
  readonly owner: string
  /** When the hold ends unless it is renewed, in Unix ms; undefined where it ends with the process. */
  readonly expiresAt: number | undefined

  constructor(message: string, { file, owner, expiresAt }: Holder) {
    super(message)
    this.file = file
    this.owner = owner
    this.expiresAt = expiresAt
  }
}

/**
 * Another pipeline holds the checkpoint: at its opening, or later, when this process was stopped for so long that its
 * lease ran out and was taken over. Nothing was written.
 */
export class CheckpointInUseError extends StateInUseError {
  override readonly name = 'CheckpointInUseError'
}

/** A file that cannot be used or cannot be written any more. Nothing in it was overwritten. `cause` is SQLite's error. */
export class StateFileError extends Error {
  override readonly name = 'StateFileError'
  readonly file: string

  constructor(file: string, message: string, options?: ErrorOptions) {
    super(`${file} ${message}`, options)
    this.file = file
  }
}
