import { setTimeout as delayed } from 'node:timers/promises'

/** Waits that can be ended early. */
export class Wake {
  #end: (() => void) | undefined
  #isSet = false

  /** Ends the current wait, or the next one if none is running. */
  set(): void {
    this.#isSet = true
    this.#end?.()
  }

  /** Resolves after so many ms, or when it is woken. */
  async wait(delay: number): Promise<void> {
    if (!this.#isSet) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer =
        delay === Infinity ? undefined : setTimeout(resolve, Math.min(Math.max(0, delay), MAX_DELAY))
      this.#end = resolve
      await promise
      clearTimeout(timer)
      this.#end = undefined
    }
    this.#isSet = false
  }
}

/** The longest wait, in ms: a clock may be set meanwhile. */
const MAX_DELAY = 3_600_000

/** Resolves after so many ms, or when the signal is aborted. */
export async function pause(delay: number, signal: AbortSignal): Promise<void> {
  await delayed(delay, undefined, { signal }).catch(() => {})
}
