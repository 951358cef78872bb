import { ArgumentError, hidden, shownUrl } from '../protocol/argument-error.ts'
import {
  checkBoolean,
  checkFunction,
  checkInteger,
  checkOptions,
  checkSignal,
  checkWait,
} from '../protocol/check.ts'
import { cloudEvent } from '../protocol/cloud-event.ts'
import type { CloudEventInput } from '../protocol/cloud-event.ts'
import { completenessOf } from '../protocol/identified.ts'
import { isObject, isText } from '../protocol/json.ts'
import { isLoopback } from '../protocol/loopback.ts'
import { secretsIn } from '../protocol/redactor.ts'
import { readHeaders, reservedHeaders } from '../protocol/request-headers.ts'
import { secretList, signWebhook } from './signature.ts'
import type { WebhookSecrets } from './signature.ts'
import { base64, endpointOf } from './sink/endpoint.ts'
import type { Credentials, Endpoint } from './sink/endpoint.ts'
import { post } from './sink/post.ts'
import type { SinkFetch } from './sink/post.ts'

/** Settings of {@link httpSink}. */
export interface HttpSinkOptions {
  /** URL to post to, https unless it is of this machine. Only its origin is shown in errors. */
  readonly url: string
  /** Signs each request as the service signs its webhooks (§6.1), with several secrets during a rotation. Default: no signature. */
  readonly secrets?: WebhookSecrets
  /** Credentials for the receiver. Default: the user and the password of the URL, if any. */
  readonly auth?: Credentials
  /** Additional headers. `content-type`, those of the signature and those of HTTP itself are refused. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** Allows plain http to other machines. Loopback addresses are always allowed. Default false. */
  readonly allowInsecure?: boolean
  /** Timeout of one attempt, in ms. Default 10,000. */
  readonly timeout?: number
  /** Sends requests. Default `globalThis.fetch`. */
  readonly fetch?: SinkFetch
}

/** The names of {@link HttpSinkOptions}. */
const OPTIONS = Object.keys({
  url: true,
  secrets: true,
  auth: true,
  headers: true,
  allowInsecure: true,
  timeout: true,
  fetch: true,
} satisfies Record<keyof HttpSinkOptions, true>)

/** Headers that the sink or HTTP sets. */
const RESERVED = reservedHeaders('content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature')

/**
 * Returns a handler that posts an event to an HTTP service, for `log.consume` and `deliver`.
 *
 * An event is a request in the JSON format of CloudEvents 1.0, `application/cloudevents+json`. An array of events is one request as well,
 * `application/cloudevents-batch+json`, also if it has one event; an empty one sends nothing.
 *
 * The header `webhook-id` is the idempotency key: it is made from the source, the id and the revision of each event, so it is the same in
 * each attempt, and after a restart; that of a batch only while it has the same entries. Each attempt is signed anew.
 *
 * ```ts
 * import { openLog } from 'rivulet/log'
 * import { sqliteStore } from 'rivulet/log/sqlite'
 * import { httpSink } from 'rivulet/webhooks'
 *
 * await using log = await openLog(sqliteStore('rivulet.db'))
 * const sink = httpSink({ url: 'https://billing.example/events', secrets: process.env.SINK_SECRET ?? '' })
 * await log.consume('billing', { types: ['task_run.state'], retries: Infinity, deadLetters: 'log' }, sink).done
 * ```
 *
 * - **Accepted**: a status of 2xx. The body of the answer is not used.
 * - **Retryable**: no answer within `timeout`, a connection that fails, and 408, 425, 429 and 5xx. `Retry-After` is a lower bound of the
 *   delay, at most an hour.
 * - **Permanent**: any other status, also a redirect, which is not followed. `deliver` makes a dead letter at once.
 * - **Stopped**: the request ends when the signal is aborted.
 *
 * The URL is the operator's, so its address may be a private one. For a URL of somebody else, give a `fetch` that refuses those.
 *
 * Rejects with a {@link SinkError}, which has no secret, and with an {@link ArgumentError} for what is not an event.
 *
 * @throws ArgumentError at the call, for an unknown option or an invalid one.
 */
export function httpSink(
  options: HttpSinkOptions,
): <Events extends CloudEventInput | readonly CloudEventInput[]>(
  events: Events,
  signal?: AbortSignal,
) => Promise<void> {
  checkOptions('options', options ?? null, OPTIONS)
  const { secrets, timeout = 10_000 } = options
  // A test may replace it later.
  const { fetch = (url: string, init: RequestInit) => globalThis.fetch(url, init) } = options
  const endpoint = sinkEndpoint(options)
  checkInteger('timeout', timeout, 1)
  checkWait('timeout', timeout)
  checkFunction('fetch', fetch)

  return async (events, signal = new AbortController().signal) => {
    checkSignal('signal', signal)
    const list: readonly CloudEventInput[] = isList(events) ? events : [events]
    if (list.length === 0) return
    for (const event of list) checkEvent(event)
    const bodies = list.map(jsonOf)
    const body = isList(events) ? `[${bodies.join(',')}]` : bodies.join()
    const id = await idOf(list)
    const signed = secrets === undefined ? { 'webhook-id': id } : await signWebhook({ body, secrets, id })
    const type = isList(events) ? 'application/cloudevents-batch+json' : 'application/cloudevents+json'
    await post(endpoint, { body, headers: { ...signed, 'content-type': type } }, { fetch, timeout }, signal)
  }
}

/** `Array.isArray` does not narrow a readonly array. */
function isList(events: CloudEventInput | readonly CloudEventInput[]): events is readonly CloudEventInput[] {
  return Array.isArray(events)
}

/** The receiver, with all that an error must not show. */
function sinkEndpoint({ url, auth, secrets, headers, allowInsecure = false }: HttpSinkOptions): Endpoint {
  const endpoint = endpointOf('url', url, auth)
  checkBoolean('allowInsecure', allowInsecure)
  const { protocol, hostname } = new URL(endpoint.url)
  if (protocol === 'http:' && !allowInsecure && !isLoopback(hostname)) {
    throw new ArgumentError(
      'url',
      'an https URL, since plain http would expose the events (allowInsecure allows it)',
      shownUrl(endpoint.origin),
    )
  }
  const own = readHeaders(headers, RESERVED)
  if ('authorization' in own && 'authorization' in endpoint.headers) {
    const expected = 'without authorization if there is auth or a user of the URL'
    throw new ArgumentError('headers', expected, hidden(headers))
  }
  const signing = secrets === undefined ? [] : secretList(secrets)
  return {
    ...endpoint,
    headers: { ...own, ...endpoint.headers },
    secrets: [
      ...endpoint.secrets,
      ...secretsIn(own, () => false),
      ...signing.map((secret) => (typeof secret === 'string' ? secret : base64(secret))),
    ],
  }
}

/** An event may come from outside of TypeScript. */
function checkEvent(event: unknown): void {
  if (isObject(event) && isText(event['source']) && isText(event['id']) && isText(event['type'])) return
  throw new ArgumentError('event', 'an event, with source, id and type', hidden(event))
}

/** An event of a log is JSON. Others may have a circle, a bigint, or be nested too deeply. */
function jsonOf(event: CloudEventInput): string {
  try {
    return JSON.stringify(cloudEvent(event))
  } catch {
    throw new ArgumentError('event', 'JSON', hidden(event))
  }
}

/** The same for the same events, also after a restart. */
async function idOf(events: readonly CloudEventInput[]): Promise<string> {
  const ids = events.map((event) => {
    // A more complete duplicate is another revision in a log.
    const { source, id, revision = `c${completenessOf(event)}` } = event
    return [source, id, revision]
  })
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(ids)))
  return `msg_${Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
