/** A job that runs until it is stopped or fails. */
export interface LogJob {
  /** Resolves when the job was stopped, and rejects when it failed. A failure is unhandled unless this or `stop` was used. */
  readonly done: Promise<void>
  /** Ends the job: running handlers end, and what was handled is saved. Resolves or rejects as `done`. */
  stop(): Promise<void>
}

/** A {@link LogJob} whose failure does not go unnoticed. */
export class Job implements LogJob {
  readonly #done: Promise<void>
  readonly #stop: () => void
  #isObserved = false

  constructor(done: Promise<void>, stop: () => void) {
    this.#done = done
    this.#stop = stop
    done.catch((error: unknown) => {
      // Unhandled, as an error of an Observable without an error handler.
      if (!this.#isObserved) void Promise.reject(error)
    })
  }

  get done(): Promise<void> {
    this.#isObserved = true
    return this.#done
  }

  stop(): Promise<void> {
    this.#stop()
    return this.done
  }
}
