import { bodyText } from '../../protocol/body-text.ts'
import { oneLine } from '../../protocol/one-line.ts'
import { createRedactor } from '../../protocol/redactor.ts'
import { parseRetryAfter } from '../../protocol/retry-after-header.ts'
import type { Endpoint } from './endpoint.ts'
import { SinkError } from './sink-error.ts'

/** A `fetch` function, such as the platform's. It must not follow redirects if `init.redirect` is `manual`. */
export type SinkFetch = (url: string, init: RequestInit) => Promise<Response>

/** How requests are sent. */
export interface PostSettings {
  readonly fetch: SinkFetch
  /** Timeout of one attempt with the answer's body, in ms. */
  readonly timeout: number
}

/** Maximum length of an answer that is read, in characters. */
const MAX_ANSWER = 16_384

/** Maximum time for the body of an answer, in ms. A body that never ends must not keep the connection. */
const MAX_BODY_TIME = 5_000

/** Maximum length of the part of an answer in which secrets are looked for, in characters. More than what is shown of it. */
const MAX_REDACTED = 4_096

/** Maximum length of an answer in an error, in characters. */
const MAX_SHOWN = 300

/** Statuses below 500 after which the same request may succeed. */
const RETRYABLE = new Set([408, 425, 429])

/**
 * Posts a body. Resolves after a status of 2xx, and rejects with a {@link SinkError} otherwise. It does not follow redirects,
 * so that credentials are not sent elsewhere.
 *
 * @param stop Ends the request.
 */
export async function post(
  { url, origin, headers, secrets }: Endpoint,
  { body, headers: own }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
  { fetch, timeout }: PostSettings,
  stop: AbortSignal,
): Promise<void> {
  const stopped = () =>
    new SinkError(origin, 'was not waited for, since the sender was stopped', { retryable: true })
  if (stop.aborted) throw stopped()
  const ended = new AbortController()
  const failed = Promise.withResolvers<never>()
  // Nothing waits for it once the answer is there.
  failed.promise.catch(() => undefined)
  const end = (error: SinkError) => {
    failed.reject(error)
    ended.abort()
  }
  const onStop = () => end(stopped())
  stop.addEventListener('abort', onStop)
  let isAnswered = false
  const onTimeout = () => {
    // The status decides, however slow the body is.
    if (isAnswered) ended.abort()
    else end(new SinkError(origin, `did not answer within ${timeout} ms`, { retryable: true }))
  }
  const timer = setTimeout(onTimeout, timeout)
  let read: Promise<unknown> = Promise.resolve()
  try {
    const init: RequestInit = {
      method: 'POST',
      headers: { ...own, ...headers },
      body,
      redirect: 'manual',
      signal: ended.signal,
    }
    // A custom `fetch` may throw, ignore the signal, or resolve with anything.
    const answer = new Promise<Response>((resolve) => resolve(fetch(url, init)))
    answer
      // An answer that came too late would keep its connection.
      .then((late) => (ended.signal.aborted ? late.body?.cancel() : undefined))
      .catch(() => undefined)
    const response = await Promise.race([answer, failed.promise])
    isAnswered = true
    const { status } = response
    // Read to its end, so that the connection can be used again.
    const text = beginningOf(response, ended)
    read = text
    if (status >= 200 && status <= 299) return
    // A receiver may send back the request.
    const signatures = own['webhook-signature']?.match(/[\w+/=-]{8,}/g) ?? []
    const redact = createRedactor([...secrets, ...signatures])
    const excerpt = redact((await Promise.race([text, failed.promise])).slice(0, MAX_REDACTED))
    throw new SinkError(origin, problemOf(status, oneLine(excerpt, MAX_SHOWN)), {
      status,
      retryable: status >= 500 || RETRYABLE.has(status),
      retryAfter: parseRetryAfter(
        response.headers.get('retry-after'),
        response.headers.get('date'),
        Date.now(),
      ),
    })
  } catch (error) {
    if (error instanceof SinkError) throw error
    // The message of an error of `fetch` may have the URL.
    throw new SinkError(origin, `could not be reached${codeOf(error)}`, { retryable: true })
  } finally {
    void read.then(() => {
      clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
    })
  }
}

function problemOf(status: number, text: string): string {
  // A runtime may hide the status of a redirect: it is 0.
  const isRedirect = status === 0 || (status >= 300 && status <= 399)
  if (isRedirect) return `answered with a redirect (${status}), which is not followed`
  return `answered with ${status}${text === '' ? '' : `: ${text}`}`
}

/** The beginning of the body as text. Never rejects. @param ended Ends the request. */
async function beginningOf({ body }: Response, ended: AbortController): Promise<string> {
  const timer = setTimeout(() => ended.abort(), MAX_BODY_TIME)
  let text = ''
  try {
    for await (const part of bodyText(body, ended.signal)) {
      text += part
      if (text.length >= MAX_ANSWER) break
    }
  } catch {
    // Cut, or timed out: the part that has come is shown.
  } finally {
    clearTimeout(timer)
  }
  return text
}

/** A code of the operating system or of undici, such as `ECONNREFUSED`. */
function codeOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  const code: unknown =
    typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''
}
