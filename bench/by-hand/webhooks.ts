import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

/** A webhook that was accepted. */
export interface Delivery {
  readonly id: string
  /** Unix time in seconds. */
  readonly timestamp: number
  readonly payload: object
}

const MAX_BODY = 4 * 1_024 * 1_024
const BODY_TIMEOUT = 10_000
/** How much the timestamp may differ from the clock, in ms. */
const TOLERANCE = 5 * 60_000
/** How long the service retries, in ms. */
const REMEMBERED = 48 * 3_600_000
const MAX_IDS = 100_000
/** Deliveries that wait for the subscriber. */
const MAX_PENDING = 1_000

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Receives webhooks (§6.1) without Rivulet: what a careful engineer writes by hand for what `createWebhookReceiver` does with its inbox
 * in memory. Verifies the raw bytes before it parses them, compares in constant time, stores each id once before it answers, and
 * calls `onDelivery` after the answer.
 */
export function receiveWebhooksByHand(
  secret: string,
  onDelivery: (delivery: Delivery) => void,
): RequestListener {
  /** The time of each id, oldest first. */
  const seen = new Map<string, number>()
  const pending: Delivery[] = []

  function deliver(): void {
    for (const delivery of pending.splice(0)) onDelivery(delivery)
  }

  /** Returns the status of the answer. */
  function accept(headers: IncomingMessage['headers'], body: Buffer): number {
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
    if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return 400
    const now = Date.now()
    if (!(Math.abs(now - Number(timestamp) * 1_000) <= TOLERANCE)) return 403
    if (!isSigned(secret, `${id}.${timestamp}.`, body, signatures)) return 401
    const payload = parse(body)
    if (payload === undefined) return 422
    forget(now)
    if (seen.has(id)) return 204
    if (pending.length === MAX_PENDING) return 503
    seen.set(id, now)
    if (pending.push({ id, timestamp: Number(timestamp), payload }) === 1) setImmediate(deliver)
    return 204
  }

  /** Forgets ids that are too old or too many. */
  function forget(now: number): void {
    for (const [id, at] of seen) {
      if (seen.size < MAX_IDS && now - at < REMEMBERED) return
      seen.delete(id)
    }
  }

  return (request, response) => {
    if (request.method !== 'POST') return answer(response, 405)
    if (request.headers['content-type']?.split(';')[0]?.trim().toLowerCase() !== 'application/json')
      return answer(response, 415)
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(() => answer(response, 408), BODY_TIMEOUT)
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= MAX_BODY) chunks.push(chunk)
      else answer(response, 413)
    })
    request.on('end', () => {
      if (!response.headersSent) answer(response, accept(request.headers, Buffer.concat(chunks)))
    })
    request.on('close', () => clearTimeout(timer))
    request.on('error', () => {})
  }
}

function answer(response: ServerResponse, status: number): void {
  if (!response.headersSent) response.writeHead(status).end()
}

/** Whether one of the signatures is that of the exact bytes. Compares each of them, so that the time is the same. */
function isSigned(secret: string, prefix: string, body: Buffer, signatures: string): boolean {
  const digest = createHmac('sha256', secret).update(prefix).update(body).digest('base64')
  const expected = Buffer.from(`v1,${digest}`)
  let isValid = false
  for (const signature of signatures.split(' ')) {
    const claimed = Buffer.from(signature)
    if (claimed.length === expected.length && timingSafeEqual(claimed, expected)) isValid = true
  }
  return isValid
}

/** The body, if it is UTF-8 and a JSON object. */
function parse(body: Buffer): object | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(body))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
