import type { HttpResponse } from '../http/handler.ts'

/** Why a webhook was refused: `code` for machines, `message` for people. Neither contains anything of the request. */
export interface WebhookRefusal {
  readonly code: WebhookRefusalCode
  /** The status of the response. */
  readonly status: number
  readonly message: string
  /** The response's `Retry-After` in s, for `overloaded` and `inbox_full`. */
  readonly retryAfter?: number
  /** The error that caused `unavailable`. Not part of the response. */
  readonly cause?: unknown
}

/** Every refusal. The sender retries after any of them (§6.1); a 4xx is permanent, and a 5xx transient. */
const REFUSALS = {
  method_not_allowed: [405, 'a webhook is a POST'],
  unsupported_media_type: [415, 'the content-type must be application/json'],
  missing_header: [400, 'webhook-id, webhook-timestamp and webhook-signature are required'],
  malformed_header: [400, 'webhook-id must be visible ASCII, webhook-timestamp Unix time in seconds'],
  incomplete_body: [400, 'the body is incomplete'],
  body_timeout: [408, 'the body took too long to arrive'],
  body_too_large: [413, 'the body is larger than this receiver accepts'],
  bad_signature: [401, 'no v1 entry of webhook-signature matches the request'],
  timestamp_out_of_tolerance: [403, 'webhook-timestamp is too far from the present'],
  malformed_json: [422, 'the body must be a JSON object'],
  overloaded: [503, 'too many bytes of webhooks are in flight'],
  inbox_full: [503, 'too many deliveries are waiting'],
  unavailable: [503, 'the delivery could not be checked or stored'],
  closed: [503, 'the receiver is closed'],
} as const satisfies Record<string, readonly [status: number, message: string]>

/** The code of a refusal, in the response's body and in {@link WebhookRefusal}. */
export type WebhookRefusalCode = keyof typeof REFUSALS

/** The refusal with this code. */
export function refusalOf(
  code: WebhookRefusalCode,
  details: Pick<WebhookRefusal, 'retryAfter' | 'cause'> = {},
): WebhookRefusal {
  const [status, message] = REFUSALS[code]
  return { code, status, message, ...details }
}

/** The response of a refusal. */
export function refusalResponse({ code, status, message, retryAfter }: WebhookRefusal): HttpResponse {
  const headers = new Headers({ 'content-type': 'application/json' })
  if (status === 405) headers.set('allow', 'POST')
  if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter))
  return { status, headers, body: JSON.stringify({ code, message }) }
}
