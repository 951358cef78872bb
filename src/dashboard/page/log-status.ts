import type { DashboardStatus } from '../status.ts'

/** The status of the log as the page has it. Immutable. */
export interface ShownStatus {
  /** The last one that came; undefined before the first. */
  readonly status: DashboardStatus | undefined
  /** Why the last request failed; undefined if it did not. */
  readonly error: Error | undefined
}

/** How often the status is fetched, in ms. */
const PERIOD = 2_000

/** The status of the log, fetched again and again while it has subscribers and the page is visible. */
export class LogStatus {
  readonly #fetch: (signal: AbortSignal) => Promise<DashboardStatus>
  readonly #listeners = new Set<() => void>()
  #shown: ShownStatus = { status: undefined, error: undefined }
  #polling: AbortController | undefined

  constructor(fetch: (signal: AbortSignal) => Promise<DashboardStatus>) {
    this.#fetch = fetch
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (this.#polling === undefined) {
      this.#polling = new AbortController()
      void this.#poll(this.#polling.signal)
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#polling?.abort()
      this.#polling = undefined
    }
  }

  readonly getSnapshot = (): ShownStatus => this.#shown

  async #poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (document.visibilityState === 'visible') await this.#update(signal)
      await pause(PERIOD, signal)
    }
  }

  async #update(signal: AbortSignal): Promise<void> {
    try {
      const status = await this.#fetch(signal)
      if (!signal.aborted) this.#show({ status, error: undefined })
    } catch (error) {
      if (signal.aborted) return
      this.#show({
        status: this.#shown.status,
        error: error instanceof Error ? error : new Error(String(error)),
      })
    }
  }

  #show(shown: ShownStatus): void {
    this.#shown = shown
    for (const listener of this.#listeners) listener()
  }
}

/** Resolves after this number of ms, when the page becomes visible, or when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', end)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    document.addEventListener('visibilitychange', end)
    signal.addEventListener('abort', end)
  })
}
