import type { Environment } from './environment.ts'
import { isRecord } from './is-record.ts'
import { LiveError } from './live-error.ts'
import { refusalOf } from './refusal.ts'
import type { Tokens } from './tokens.ts'

/** The longest wait for an answer, in ms. */
const TIMEOUT = 120_000

/**
 * A request to the gateway itself. It is sent again only where the token was refused, once and with a new one: the gateway has not taken it then.
 * Rejects with a {@link LiveError}, or with the reason of the signal.
 */
export async function askGateway(
  url: string,
  body: object,
  signal: AbortSignal | undefined,
  tokens: Tokens,
  environment: Environment,
): Promise<unknown> {
  const ended = new AbortController()
  const cancelTimeout = environment.later(TIMEOUT, () =>
    ended.abort(new LiveError('timeout', `The gateway has not answered for ${TIMEOUT / 1_000} s`)),
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
    let response = await send(await tokens.current(both))
    if (response.status === 401) {
      await response.body?.cancel()
      response = await send(await tokens.take(both))
    }
    if (!response.ok) throw await refusalOf(response, environment)
    const answer: unknown = await response.json()
    if (!isRecord(answer)) throw new LiveError('protocol', 'The gateway answered no JSON object')
    return answer
  } catch (cause) {
    both.throwIfAborted()
    if (cause instanceof LiveError) throw cause
    if (cause instanceof SyntaxError)
      throw new LiveError('protocol', 'The gateway answered no JSON', { cause })
    throw new LiveError(
      'network',
      'The connection to the gateway was lost: the request may have been taken',
      { cause },
    )
  } finally {
    cancelTimeout()
  }
}
