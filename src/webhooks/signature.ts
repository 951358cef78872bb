import { hmac } from '#hmac'
import { ArgumentError, hidden } from '../protocol/argument-error.ts'
import { checkInteger, checkObject, checkOptions } from '../protocol/check.ts'

/**
 * The key of signatures (§6.1): a text is the key itself, in UTF-8, and is not decoded. Senders by Standard Webhooks have a text that
 * stands for bytes, in Base64 after `whsec_`: give the bytes, `Buffer.from(text.replace('whsec_', ''), 'base64')`.
 */
export type WebhookSecret = string | Uint8Array

/** One secret, or several during a rotation. */
export type WebhookSecrets = WebhookSecret | readonly WebhookSecret[]

/** The signed content of a webhook (§6.1). */
export interface SignedContent {
  /** The `webhook-id` header. */
  readonly id: string
  /** The `webhook-timestamp` header, as it was sent. */
  readonly timestamp: string
  /** The exact bytes of the body; text is encoded as UTF-8. */
  readonly body: string | Uint8Array
}

/** The input of {@link signWebhook}. */
export interface WebhookToSign {
  /** The exact body to send. */
  readonly body: string | Uint8Array
  /** The header has a signature by each, in this order. */
  readonly secrets: WebhookSecrets
  /** Visible ASCII, at most 512 characters. Default: a new random id. */
  readonly id?: string
  /** Time of the signature, Unix s. Default: now. */
  readonly timestamp?: number
}

/** The headers of a webhook (§6.1). */
export type WebhookHeaders = Readonly<
  Record<'content-type' | 'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>
>

/** The most entries of a signature header. A rotation needs far fewer. */
const MAX_SIGNATURES = 32

/** Whether the text is a valid `webhook-id`: 1 to 512 characters of visible ASCII. */
export function isWebhookId(text: string): boolean {
  return /^[\u0021-\u007E]{1,512}$/.test(text)
}

/** Whether the text is a valid `webhook-timestamp`: digits, within the range of a Date. */
export function isWebhookTimestamp(text: string): boolean {
  return /^\d{1,12}$/.test(text)
}

/** The well-formed entries of a signature header (§6.1): `v1,` and the Base64 of 32 bytes. Empty if there are too many. */
export function signatureEntries(signatureHeader: string): readonly string[] {
  const entries = signatureHeader.split(' ', MAX_SIGNATURES + 1)
  if (entries.length > MAX_SIGNATURES) return []
  return entries.filter((entry) => /^v1,[A-Za-z0-9+/]{43}=$/.test(entry))
}

/**
 * The secrets as an array. An error never contains them.
 *
 * @throws {ArgumentError} for an empty list, or a secret that is neither a non-empty string nor bytes.
 */
export function secretList(secrets: WebhookSecrets): readonly WebhookSecret[] {
  const list = typeof secrets === 'string' || secrets instanceof Uint8Array ? [secrets] : secrets
  const expected = 'a non-empty string, bytes, or a list of them'
  if (!Array.isArray(list) || list.length === 0) throw new ArgumentError('secrets', expected, hidden(secrets))
  for (const secret of list) {
    if ((typeof secret !== 'string' && !(secret instanceof Uint8Array)) || secret.length === 0)
      throw new ArgumentError('secrets', expected, hidden(secret))
  }
  return list
}

function checkString(argument: string, value: unknown): void {
  if (typeof value !== 'string') throw new ArgumentError(argument, 'a string', hidden(value))
}

function checkBody(body: unknown): void {
  if (typeof body === 'string' || body instanceof Uint8Array) return
  throw new ArgumentError('body', 'text or bytes', hidden(body))
}

/**
 * Signs a webhook as the service does (§6.1), to test your own endpoint.
 *
 * Rejects with an {@link ArgumentError} for an id or a timestamp that is not valid in a header, for missing secrets or a missing body,
 * and for an unknown option.
 *
 * @example
 * const body = JSON.stringify({ type: 'task_run.status', timestamp: new Date().toISOString(), data: run })
 * const headers = await signWebhook({ body, secrets })
 * await fetch('http://127.0.0.1:3000/webhooks', { method: 'POST', body, headers })
 */
export async function signWebhook(webhook: WebhookToSign): Promise<WebhookHeaders> {
  checkOptions('webhook', webhook ?? null, ['body', 'secrets', 'id', 'timestamp'])
  const { body, secrets, id = `msg_${crypto.randomUUID()}` } = webhook
  const { timestamp = Math.floor(Date.now() / 1000) } = webhook
  checkBody(body)
  if (typeof id !== 'string' || !isWebhookId(id)) {
    throw new ArgumentError('id', 'visible ASCII of at most 512 characters', id)
  }
  checkInteger('timestamp', timestamp, 0, 999_999_999_999)

  const content = { id, timestamp: String(timestamp), body }
  const signatures = await Promise.all(secretList(secrets).map((secret) => entryOf(content, secret)))
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': content.timestamp,
    'webhook-signature': signatures.join(' '),
  }
}

/** Settings of {@link signedRequest}: the settings of {@link signWebhook} without the body. */
type SignedRequestOptions = Omit<WebhookToSign, 'body'>

/**
 * Creates a signed webhook request like the service's (§6.1), for {@link WebhookReceiver.handle} or `fetch`.
 *
 * Rejects as {@link signWebhook} does.
 *
 * @example
 * const response = await receiver.handle(await signedRequest('http://127.0.0.1/webhooks', payload, { secrets }))
 */
export async function signedRequest(
  url: string | URL,
  payload: unknown,
  options: SignedRequestOptions,
): Promise<Request> {
  const body = JSON.stringify(payload)
  return new Request(url, { method: 'POST', body, headers: await signWebhook({ ...options, body }) })
}

/**
 * Whether an entry of the signature header was made with one of the secrets (§6.1). Entries of versions other than
 * `v1` are ignored; a header of more than 32 entries is refused. The timestamp's age is not checked.
 *
 * False for an empty `webhook-id` or `webhook-timestamp`, which a sender may send. Rejects with an {@link ArgumentError} for missing secrets
 * or a missing part of the content.
 */
export async function verifySignature(
  content: SignedContent,
  signatureHeader: string,
  secrets: WebhookSecrets,
): Promise<boolean> {
  checkObject('content', content)
  checkString('content.id', content.id)
  checkString('content.timestamp', content.timestamp)
  checkBody(content.body)
  checkString('signatureHeader', signatureHeader)
  const isComplete = content.id !== '' && content.timestamp !== ''
  return verifyEntries(content, isComplete ? signatureEntries(signatureHeader) : [], secrets)
}

/** Like {@link verifySignature}, for the result of {@link signatureEntries}. */
export async function verifyEntries(
  content: SignedContent,
  entries: readonly string[],
  secrets: WebhookSecrets,
): Promise<boolean> {
  const list = secretList(secrets)

  // Every secret is tried on every entry, so that the time does not depend on which of them matches. Entries are compared as
  // text, since a Base64 decoder accepts several spellings of one signature.
  let matches = false
  for (const secret of list) {
    const expected = await entryOf(content, secret)
    for (const entry of entries) if (await hmac.equal(expected, entry)) matches = true
  }
  return matches
}

/** The entry of a signature header for this secret. */
async function entryOf({ id, timestamp, body }: SignedContent, secret: WebhookSecret): Promise<string> {
  return `v1,${await hmac.sign(secret, `${id}.${timestamp}.`, body)}`
}
