/** Ends a live response: when its grant ends, when the gateway closes, or when its client goes. */
export class Ending {
  readonly #stop = new AbortController()
  readonly #release: (() => void)[]

  /**
   * @param signals The signals of the gateway and the request.
   * @param release Called at the end, to release resources.
   */
  constructor(
    onGrantEnd: (listener: () => void) => () => void,
    signals: readonly AbortSignal[],
    release: () => void,
  ) {
    const abort = () => this.#stop.abort()
    this.#release = [release, onGrantEnd(abort)]
    for (const signal of signals) {
      if (signal.aborted) abort()
      signal.addEventListener('abort', abort)
      this.#release.push(() => signal.removeEventListener('abort', abort))
    }
  }

  /** Aborted when the response has to end. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Ends what still waits, and undoes everything once. */
  finish(): void {
    this.#stop.abort()
    for (const undo of this.#release.splice(0)) undo()
  }
}
