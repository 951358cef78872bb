import type { HttpAnswer } from '../http/handler.ts'

/** Why a webhook was not accepted: `code` for machines, `message` for people. Neither repeats anything of the request. */
export interface WebhookRefusal {
  readonly code: WebhookRefusalCode
  /** The status of the answer. */
  readonly status: number
  readonly message: string
  /** When it is worth trying again at the earliest, in s, for `overloaded`: the answer's `Retry-After`. */
  readonly retryAfter?: number
  /** What failed, for `unavailable`. Not part of the answer. */
  readonly cause?: unknown
}

/**
 * Every way to be refused. The sender retries whatever is not 2xx (§6.1), so a 4xx says that the next attempt will
 * look no better, and a 5xx that it may.
 */
const REFUSALS = {
  method_not_allowed: [405, 'a webhook is a POST'],
  unsupported_media_type: [415, 'the content-type must be application/json'],
  missing_header: [400, 'webhook-id, webhook-timestamp and webhook-signature must be there'],
  malformed_header: [400, 'webhook-id must be visible ASCII, webhook-timestamp Unix time in seconds'],
  incomplete_body: [400, 'the body broke off'],
  body_timeout: [408, 'the body took too long to come'],
  body_too_large: [413, 'the body is larger than this receiver accepts'],
  bad_signature: [401, 'no v1 entry of webhook-signature fits the request'],
  timestamp_out_of_tolerance: [403, 'webhook-timestamp is too far from the present'],
  malformed_json: [422, 'the body must be a JSON object'],
  overloaded: [503, 'too many bytes of webhooks are on their way'],
  inbox_full: [503, 'too many deliveries are waiting'],
  unavailable: [503, 'the delivery could not be checked or stored'],
  closed: [503, 'the receiver is closed'],
} as const satisfies Record<string, readonly [status: number, message: string]>

/** Names a reason, in the answer's body and in {@link WebhookRefusal}. */
export type WebhookRefusalCode = keyof typeof REFUSALS

/** The refusal that a code stands for. */
export function refusalOf(
  code: WebhookRefusalCode,
  details: Pick<WebhookRefusal, 'retryAfter' | 'cause'> = {},
): WebhookRefusal {
  const [status, message] = REFUSALS[code]
  return { code, status, message, ...details }
}

/** What the sender gets to see of a refusal. */
export function refusalAnswer({ code, status, message, retryAfter }: WebhookRefusal): HttpAnswer {
  const headers = new Headers({ 'content-type': 'application/json' })
  if (status === 405) headers.set('allow', 'POST')
  if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter))
  return { status, headers, body: JSON.stringify({ code, message }) }
}
