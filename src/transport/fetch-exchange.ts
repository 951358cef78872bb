import type { ConnectionFailure } from './errors.ts'
import type { Exchange, ResponseSink, WireRequest } from './exchange.ts'
import { Incoming } from './incoming.ts'
import type { Wire } from './incoming.ts'

/** A `fetch` function, such as the platform's. It must not follow redirects if `init.redirect` is `manual`. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/**
 * HTTP by `fetch`, for browsers and other runtimes. Unlike on Node, the headers timeout includes connecting. A browser
 * reports neither whether a connection was refused or broke, nor the status of a redirect.
 */
export function createExchange(fetch: Fetch = (url, init) => globalThis.fetch(url, init)): Exchange {
  return (request, sink) => {
    const call = new FetchCall(request, sink, fetch)
    call.start()
    return call.incoming
  }
}

/** One request in flight. */
class FetchCall implements Wire {
  readonly incoming: Incoming
  readonly #request: WireRequest
  readonly #fetch: Fetch
  readonly #controller = new AbortController()
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #reading = false

  constructor(request: WireRequest, sink: ResponseSink, fetch: Fetch) {
    this.#request = request
    this.#fetch = fetch
    this.incoming = new Incoming(request, sink, this)
  }

  start(): void {
    const { origin, path, method, headers, body } = this.#request
    this.incoming.sending()
    const init: RequestInit = {
      method,
      headers,
      ...(body !== undefined && { body }),
      redirect: 'manual',
      cache: 'no-store',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      signal: this.#controller.signal,
    }
    // A custom `fetch` may throw synchronously, or resolve with something other than a Response.
    new Promise<Response>((resolve) => resolve(this.#fetch(origin + path, init)))
      .then(this.#onResponse)
      .catch(this.#onFailure)
  }

  pause(): void {
    // The next chunk is not read; see #read.
  }

  resume(): void {
    this.#read()
  }

  destroy(): void {
    this.#controller.abort()
    void this.#cancelBody()
  }

  /** A custom `fetch` may ignore the signal. */
  async #cancelBody(): Promise<void> {
    try {
      await this.#reader?.cancel()
    } catch {
      // The body has ended, or the signal has aborted it.
    }
  }

  #read(): void {
    if (this.#reader === undefined || this.#reading || this.incoming.paused || this.incoming.over) return
    this.#reading = true
    this.#reader.read().then(this.#onChunk).catch(this.#onBreak)
  }

  readonly #onResponse = (response: Response): void => {
    this.#reader = response.body?.getReader()
    if (this.incoming.over) return void this.#cancelBody()
    // Browsers hide the status of a redirect that is not followed.
    const status = response.type === 'opaqueredirect' ? 302 : response.status
    this.incoming.head(status, (name) => response.headers.get(name) ?? undefined)
    if (this.#reader === undefined) this.incoming.end()
    this.#read()
  }

  readonly #onChunk = ({ done, value }: ReadableStreamReadResult<Uint8Array>): void => {
    this.#reading = false
    if (done) return this.incoming.end()
    this.incoming.chunk(value)
    this.#read()
  }

  readonly #onFailure = (error: unknown): void => {
    this.incoming.broken(failureOf(error), error)
  }

  readonly #onBreak = (error: unknown): void => {
    const code = codeOf(error) ?? (error instanceof Error ? codeOf(error.cause) : undefined)
    if (code !== undefined && /^Z_(?!BUF_ERROR)/.test(code))
      this.incoming.malformed('answered with a body that is not in its content coding', error)
    else this.incoming.broken('broken', error)
  }
}

/** Which failure the error is. If it does not name the system call that failed, the request may have been sent: `broken`. */
function failureOf(error: unknown): ConnectionFailure {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return 'broken'
  const code = codeOf(cause)
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'connect_timeout'
  // If several addresses were tried, the code belongs to the first.
  const attempt: unknown = cause instanceof AggregateError ? cause.errors[0] : cause
  const call = attempt instanceof Error && 'syscall' in attempt ? attempt.syscall : undefined
  if (call !== 'connect' && call !== 'getaddrinfo') return 'broken'
  return code === 'ETIMEDOUT' ? 'connect_timeout' : 'refused'
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
