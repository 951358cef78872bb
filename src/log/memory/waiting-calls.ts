interface WaitingCall<Caller, Result> {
  readonly caller: Caller
  resolve(result: Result): void
  reject(reason: unknown): void
}

/** Calls that wait, each until its signal is aborted. */
export class WaitingCalls<Caller, Result> {
  readonly #calls = new Set<WaitingCall<Caller, Result>>()

  /** Resolves once {@link settle} has a result for it. Rejects with the signal's reason. */
  add(caller: Caller, signal: AbortSignal): Promise<Result> {
    return new Promise((resolve, reject) => {
      const abort = () => call.reject(signal.reason)
      const remove = () => {
        this.#calls.delete(call)
        signal.removeEventListener('abort', abort)
      }
      const call: WaitingCall<Caller, Result> = {
        caller,
        resolve(result) {
          remove()
          resolve(result)
        },
        reject(reason) {
          remove()
          reject(reason)
        },
      }
      if (signal.aborted) {
        call.reject(signal.reason)
        return
      }
      this.#calls.add(call)
      signal.addEventListener('abort', abort)
    })
  }

  /** Asks for the result of each call, in the order in which they came. The others wait on. */
  settle(resultFor: (caller: Caller) => Result | undefined): void {
    for (const call of this.#calls) {
      const result = resultFor(call.caller)
      if (result !== undefined) call.resolve(result)
    }
  }

  /** Rejects the calls of one caller. */
  reject(caller: Caller, error: Error): void {
    for (const call of this.#calls) if (call.caller === caller) call.reject(error)
  }
}
