import { bodyText } from '../../protocol/body-text.ts'
import { oneLine } from '../../protocol/one-line.ts'
import { parseRetryAfter } from '../../protocol/retry-after-header.ts'
import type { Endpoint } from './endpoint.ts'
import { NotifyError } from './notify-error.ts'

/** A `fetch` function, such as the platform's. It must not follow redirects if `init.redirect` is `manual`. */
export type NotifyFetch = (url: string, init: RequestInit) => Promise<Response>

/** How requests are sent. */
export interface PostSettings {
  readonly fetch: NotifyFetch
  /** Timeout of one attempt, in ms. */
  readonly timeout: number
}

/** Maximum length of an answer that is read, in characters. */
const MAX_ANSWER = 16_384

/** Maximum length of an answer in an error, in characters. */
const MAX_SHOWN = 300

/** Statuses below 500 after which the same request may succeed. */
const RETRYABLE = new Set([408, 425, 429])

/**
 * Posts a body. Resolves after a status of 2xx, and rejects with a {@link NotifyError} otherwise. It does not follow redirects,
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
  const ended = new AbortController()
  const failed = Promise.withResolvers<never>()
  // Nothing waits for it once the answer is there.
  failed.promise.catch(() => undefined)
  const end = (problem: string) => {
    failed.reject(new NotifyError(origin, problem, { retryable: true }))
    ended.abort()
  }
  const timer = setTimeout(() => end(`did not answer within ${timeout} ms`), timeout)
  const onStop = () => end('was not waited for, since the notifier was stopped')
  stop.addEventListener('abort', onStop)
  if (stop.aborted) onStop()
  let read: Promise<unknown> = Promise.resolve()
  try {
    const init: RequestInit = {
      method: 'POST',
      headers: { ...own, ...headers },
      body,
      redirect: 'manual',
      signal: ended.signal,
    }
    // A custom `fetch` may throw, or ignore the signal.
    const response = await Promise.race([
      new Promise<Response>((resolve) => resolve(fetch(url, init))),
      failed.promise,
    ])
    const { status } = response
    const isAccepted = status >= 200 && status <= 299
    // The connection is used again if the body ends soon.
    const text = beginningOf(response, ended)
    read = text
    if (isAccepted) return
    // A receiver may send back the request.
    const signatures = own['webhook-signature']?.match(/[\w+/=-]{8,}/g) ?? []
    const shown = withoutSecrets(await Promise.race([text, failed.promise]), [...secrets, ...signatures])
    throw new NotifyError(origin, problemOf(status, shown), {
      status,
      retryable: status >= 500 || RETRYABLE.has(status),
      retryAfter: parseRetryAfter(
        response.headers.get('retry-after'),
        response.headers.get('date'),
        Date.now(),
      ),
    })
  } catch (error) {
    if (error instanceof NotifyError) throw error
    // The message of an error of `fetch` may have the URL.
    throw new NotifyError(origin, `could not be reached${codeOf(error)}`, { retryable: true })
  } finally {
    clearTimeout(timer)
    void read.then(() => stop.removeEventListener('abort', onStop))
  }
}

function problemOf(status: number, text: string): string {
  const isRedirect = status === 0 || (status >= 300 && status <= 399)
  if (isRedirect) return `answered with a redirect (${status}), which is not followed`
  return `answered with ${status}${text === '' ? '' : `: ${text}`}`
}

/** The beginning of the body as text. Never rejects. @param ended Ends the request. */
async function beginningOf({ body }: Response, ended: AbortController): Promise<string> {
  // A body that never ends must not keep the connection.
  const timer = setTimeout(() => ended.abort(), 5_000)
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

/** The text on one line, cut, without control characters and without credentials that a receiver may send back. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  let safe = text.slice(0, MAX_ANSWER)
  // The longest first, since one may be a part of another.
  const sorted = secrets.toSorted((a, b) => b.length - a.length)
  for (const secret of sorted) safe = safe.replaceAll(secret, '(not shown)')
  return oneLine(safe, MAX_SHOWN)
}

/** A code of the operating system or of undici, such as `ECONNREFUSED`. */
function codeOf(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  const code: unknown =
    typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? ` (${code})` : ''
}
