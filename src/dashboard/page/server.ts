import type { DashboardStatus } from '../status.ts'
import type { QuotedDocument } from './evidence/document-dialog.tsx'

/** The requests of the page, besides the requests of its live connection. */
export class Server {
  readonly #listeners = new Set<() => void>()
  #isRefused = false

  /** A token for the gateway. */
  readonly fetchToken = async (): Promise<string> => {
    const { token } = await this.#json<{ readonly token: string }>('/token', { method: 'POST' })
    return token
  }

  /** The status of the log. */
  readonly fetchStatus = (signal: AbortSignal): Promise<DashboardStatus> => this.#json('/status', { signal })

  /** A document that is cited; undefined if the server does not have it. */
  readonly fetchDocument = async (url: string, signal: AbortSignal): Promise<QuotedDocument | undefined> => {
    const response = await this.#fetch(`/document?${new URLSearchParams({ url }).toString()}`, { signal })
    if (response.status === 404) return undefined
    return read(response)
  }

  /** Calls the listener when {@link isRefused} changes. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Whether the server refuses this browser, which then has no key or an old one. */
  readonly isRefused = (): boolean => this.#isRefused

  async #json<T>(path: string, init: RequestInit): Promise<T> {
    return read(await this.#fetch(path, init))
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const response = await fetch(path, init)
    const isRefused = response.status === 401 || response.status === 403
    if (isRefused !== this.#isRefused) {
      this.#isRefused = isRefused
      for (const listener of this.#listeners) listener()
    }
    return response
  }
}

/** The body of a response, which is this dashboard's own. */
async function read<T>(response: Response): Promise<T> {
  if (!response.ok) throw new Error(`The dashboard’s server answered ${response.status}.`)
  return response.json()
}
