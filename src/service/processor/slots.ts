/**
 * Limits how many executions of the processor are in flight: of runs, chats and responses together. Requests, whose clients
 * wait, take free slots before queued runs.
 */
export class ProcessorSlots {
  readonly #size: number
  readonly #waiting = new Set<() => void>()
  readonly #listeners = new Set<() => void>()
  #used = 0

  constructor(size: number) {
    this.#size = size
  }

  /** Number of requests that wait for a slot. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Whether {@link take} would succeed. */
  get isFree(): boolean {
    return this.#used < this.#size
  }

  /** Takes a free slot. */
  take(): void {
    if (!this.isFree) throw new Error('there is no free slot')
    this.#used += 1
  }

  /**
   * Resolves when a slot is taken, in the order of the calls.
   *
   * @throws The signal's reason if it is aborted first.
   */
  async wait(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.isFree) return this.take()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const abort = () => {
      this.#waiting.delete(resolve)
      reject(signal.reason)
    }
    this.#waiting.add(resolve)
    signal.addEventListener('abort', abort)
    // A slot that was passed on belongs to the request, even if it is aborted before this continues.
    await promise.finally(() => signal.removeEventListener('abort', abort))
  }

  /** Releases a slot that was taken. It is passed on to the first request that waits. */
  release(): void {
    const [next] = this.#waiting
    if (next !== undefined) {
      this.#waiting.delete(next)
      next()
      return
    }
    this.#used -= 1
    for (const listener of this.#listeners) listener()
  }

  /** Calls the listener when a slot is free. Returns a function that removes it. */
  onFree(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
