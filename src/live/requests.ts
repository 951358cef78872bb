import { isObject } from '../protocol/json.ts'
import type { Environment } from './environment.ts'
import { LiveError } from './live-error.ts'
import { jsonOf, refusalOf } from './refusal.ts'
import type { Tokens } from './tokens.ts'

/** A token that ends sooner is not used again, in ms. */
const MARGIN = 10_000

/** The longest answer, in characters. */
const MAX_ANSWER = 16 * 1024 * 1024

/** The longest wait for an answer, in ms. */
const TIMEOUT = 120_000

/**
 * A request to the gateway itself. It is sent again only if the token was refused, once and with a new token: the gateway has not accepted
 * it then. Rejects with a {@link LiveError}, or with the reason of the signal.
 */
export async function askGateway(
  { tokens, environment }: { readonly tokens: Tokens; readonly environment: Environment },
  url: string,
  body: object,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const ended = new AbortController()
  const cancelTimeout = environment.later(TIMEOUT, () =>
    ended.abort(new LiveError('timeout', 'No answer came in time')),
  )
  const both = signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal])
  const send = async (token: string) =>
    environment.fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      cache: 'no-store',
      signal: both,
    })
  try {
    both.throwIfAborted()
    const isGood = tokens.lastExpires - MARGIN > environment.now()
    let response = await send(isGood ? tokens.last : await tokens.take(both))
    if (response.status === 401) {
      await response.body?.cancel()
      response = await send(await tokens.take(both))
    }
    if (!response.ok) {
      throw await refusalOf(response, environment, both, url.endsWith('/runs') ? 'uncertain' : undefined)
    }
    const answer = await jsonOf(response, MAX_ANSWER, both)
    if (!isObject(answer)) throw new LiveError('protocol', 'The answer is no object')
    return answer
  } catch (cause) {
    both.throwIfAborted()
    if (cause instanceof LiveError) throw cause
    if (cause instanceof SyntaxError) throw new LiveError('protocol', 'The answer is no JSON', { cause })
    throw new LiveError('network', 'The connection was lost: the request may have been taken', { cause })
  } finally {
    cancelTimeout()
  }
}
