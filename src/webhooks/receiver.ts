import { Subject, throwError } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import {
  checkDuration,
  checkFunction,
  checkInteger,
  checkObject,
  checkOptions,
  checkWait,
} from '../protocol/check.ts'
import { isObject } from '../protocol/json.ts'
import type { WebhookDelivery, WebhookInbox } from '../protocol/webhook.ts'
import { BodyIntake } from '../http/body-intake.ts'
import { fetchHandler } from '../http/fetch-handler.ts'
import type { HttpHandler, HttpRequest, HttpResponse } from '../http/handler.ts'
import { Deliveries, later } from './deliveries.ts'
import { memoryInbox } from './memory-inbox.ts'
import type { MemoryInbox } from './memory-inbox.ts'
import { refusalOf, refusalResponse } from './refusal.ts'
import type { WebhookRefusal, WebhookRefusalCode } from './refusal.ts'
import { isWebhookId, isWebhookTimestamp, secretList, signatureEntries, verifyEntries } from './signature.ts'
import type { WebhookSecrets } from './signature.ts'

/** Settings of {@link createWebhookReceiver}. */
export interface WebhookReceiverOptions {
  /**
   * The account's webhook secret (§5); several during a rotation; or a function that is called for each request, before its signature is
   * verified, so that a rotation needs no restart. It may return a promise; have it cache what it reads. If it throws, rejects, takes
   * longer than `bodyTimeout`, or returns no secret, the request gets a 503 and is sent again.
   */
  readonly secrets: WebhookSecrets | (() => WebhookSecrets | Promise<WebhookSecrets>)
  /** How much `webhook-timestamp` may differ from the current time, in ms. Default 5 minutes. */
  readonly tolerance?: number
  /** The largest body, in bytes. Default 4 MiB. */
  readonly maxBodyBytes?: number
  /**
   * The most memory for the bodies of all requests, in bytes, from the first byte to the response. At least `maxBodyBytes`.
   * Requests above it get a 503 with a `Retry-After`. Default 64 MiB, or `maxBodyBytes` if that is more.
   */
  readonly maxBytesInFlight?: number
  /** How long a body may take to arrive after its headers, and then a promise of the secrets to resolve, in ms. Default 10 seconds. */
  readonly bodyTimeout?: number
  /**
   * The inbox in which deliveries are stored before the response. With `log.inbox` of an open log, `log.record({ client, webhooks: receiver
   * })` records them. Default: {@link memoryInbox}, whose {@link WebhookReceiver.deliveries} are lost with the process.
   */
  readonly inbox?: WebhookInbox | MemoryInbox
  /** Returns the current time, Unix ms. Default `Date.now`. */
  readonly clock?: () => number
}

/** The receiving end of the service's webhooks (§6.1). */
export interface WebhookReceiver extends HttpHandler {
  /**
   * Answers a webhook request: 204 when its delivery is stored or was already stored, else a status with a JSON body
   * `{code, message}`. Reads the body itself, since the signature is over the exact bytes. Never rejects.
   *
   * From the headers, before the body is read:
   *
   * | Status | `code` | When |
   * |---|---|---|
   * | 503 | `closed` | the receiver is closed |
   * | 405 | `method_not_allowed` | not a POST |
   * | 415 | `unsupported_media_type` | the content type is not `application/json` |
   * | 400 | `missing_header` | one of the three webhook headers is missing |
   * | 400 | `malformed_header` | the id is not visible ASCII, or the timestamp is not a number |
   * | 401 | `bad_signature` | no entry of the signature has version `v1`, or there are more than 32 |
   * | 403 | `timestamp_out_of_tolerance` | the timestamp is too old, or too far in the future |
   * | 413 | `body_too_large` | `content-length` is larger than `maxBodyBytes` |
   * | 503 | `overloaded` | the body would currently exceed `maxBytesInFlight`; with a `Retry-After` |
   * | 503 | `inbox_full` | the inbox is full, if the inbox reports this before storing; with a `Retry-After` |
   *
   * From the body:
   *
   * | Status | `code` | When |
   * |---|---|---|
   * | 400 | `incomplete_body` | the connection ended within the body |
   * | 408 | `body_timeout` | the body took longer than `bodyTimeout` |
   * | 413 | `body_too_large` | the body is larger than `maxBodyBytes` |
   * | 503 | `overloaded` | the bodies of all requests reach `maxBytesInFlight`; with a `Retry-After` |
   * | 401 | `bad_signature` | no signature matches one of the secrets |
   * | 422 | `malformed_json` | the body is not a JSON object |
   * | 503 | `closed` | the receiver was closed meanwhile |
   * | 503 | `inbox_full` | the inbox is full; with a `Retry-After` |
   * | 503 | `unavailable` | the inbox failed, or the secrets are not available |
   *
   * They are checked in this order. The sender retries after any of them.
   *
   * The checks of the headers need no signature. They reveal this clock, the limits, whether the inbox is full, and, while it
   * is, whether an id is known. This information is not secret.
   */
  handle(request: Request): Promise<Response>
  /**
   * The same for a request of any server, without a `Request` and a `Response`. {@link nodeListener} calls it. To run code
   * around it, wrap {@link handle} in a function of your own and mount that.
   */
  respond(request: HttpRequest): Promise<HttpResponse>
  /**
   * The accepted deliveries, each once, after its response. Hot: subscribers share them. Without a subscriber, and under
   * backpressure (see `Gate` of `rivulet/operators`), they stay in the inbox. Completes on `close`; errors only if the inbox can no longer
   * emit them, which closes the receiver.
   *
   * With `log.inbox`, errors with an ArgumentError: `log.record` reads that inbox, and consumers read the log.
   */
  readonly deliveries: Observable<WebhookDelivery>
  /** The `log.inbox` that it stores into; undefined for a memory inbox. */
  readonly inbox: WebhookInbox | undefined
  /** Every refused request with the reason, for logs and alerts. Hot; completes on `close`. */
  readonly refusals: Observable<WebhookRefusal>
  /**
   * Completes the streams, and answers further requests with 503. Deliveries in a memory inbox would be lost, so they are
   * emitted to the current subscribers first; `log.inbox` keeps them, and is left open.
   */
  close(): void
}

const MIB = 1024 * 1024

/** The names of the options, checked by the compiler. */
const OPTIONS: { readonly [Name in keyof Required<WebhookReceiverOptions>]: true } = {
  secrets: true,
  tolerance: true,
  maxBodyBytes: true,
  maxBytesInFlight: true,
  bodyTimeout: true,
  inbox: true,
  clock: true,
}

/** The response to a webhook whose delivery is stored. */
const STORED: HttpResponse = { status: 204 }

/**
 * Creates a receiver of the service's webhooks (§6.1). Mount {@link WebhookReceiver.handle} in any server for `Request` and
 * `Response`, or {@link nodeListener} in a `node:http` server.
 *
 * @throws {ArgumentError} for an invalid option.
 * @example
 * const receiver = createWebhookReceiver({ secrets: process.env['RIVULET_WEBHOOK_SECRET'] ?? '' })
 * receiver.deliveries.subscribe(({ id, payload }) => console.log(id, payload))
 * createServer(nodeListener(receiver)).listen(3000)
 */
export function createWebhookReceiver(options: WebhookReceiverOptions): WebhookReceiver {
  checkOptions('createWebhookReceiver', options ?? null, Object.keys(OPTIONS))
  const { secrets, tolerance = 5 * 60_000, maxBodyBytes = 4 * MIB, clock = Date.now } = options
  const { maxBytesInFlight = Math.max(64 * MIB, maxBodyBytes), bodyTimeout = 10_000 } = options
  if (typeof secrets !== 'function') secretList(secrets)
  checkDuration('tolerance', tolerance, true)
  checkInteger('maxBodyBytes', maxBodyBytes, 1)
  checkInteger('maxBytesInFlight', maxBytesInFlight, maxBodyBytes)
  checkWait('bodyTimeout', bodyTimeout)
  checkFunction('clock', clock)
  const { inbox = memoryInbox({ clock }) } = options
  checkObject('inbox', inbox)
  if (typeof inbox.put !== 'function') throw new ArgumentError('inbox', 'an inbox, such as log.inbox', inbox)
  return new Receiver({ secrets, tolerance, maxBodyBytes, maxBytesInFlight, bodyTimeout, inbox, clock })
}

/** Its public methods are fields, since applications pass them on as functions. */
class Receiver implements WebhookReceiver {
  readonly deliveries: Observable<WebhookDelivery>
  readonly inbox: WebhookInbox | undefined
  readonly refusals: Observable<WebhookRefusal>
  readonly #settings: Required<WebhookReceiverOptions>
  readonly #intake: BodyIntake
  /** Undefined for the inbox of a log. */
  readonly #deliveries: Deliveries | undefined
  readonly #refused = new Subject<WebhookRefusal>()
  #isClosed = false

  constructor(settings: Required<WebhookReceiverOptions>) {
    const { inbox } = settings
    this.#settings = settings
    this.#intake = new BodyIntake(settings)
    this.#deliveries = isMemoryInbox(inbox) ? new Deliveries(inbox, () => this.#fail()) : undefined
    this.deliveries = this.#deliveries?.stream ?? throwError(recorded)
    this.inbox = this.#deliveries === undefined ? inbox : undefined
    this.refusals = this.#refused.asObservable()
  }

  readonly respond = async (request: HttpRequest): Promise<HttpResponse> => {
    try {
      const code = await this.#receive(request)
      return code === undefined ? STORED : this.#refuse(refusalOf(code, this.#detailsOf(code)))
    } catch (cause) {
      return this.#refuse(refusalOf('unavailable', { cause }))
    }
  }

  readonly handle = fetchHandler(this)

  readonly close = (): void => {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#deliveries?.close()
    this.#refused.complete()
  }

  /** Ends, since the inbox can no longer emit its deliveries. */
  #fail(): void {
    this.#isClosed = true
    this.#refused.complete()
  }

  /** Receives a request. Returns the reason for a refusal. */
  async #receive(request: HttpRequest): Promise<WebhookRefusalCode | undefined> {
    const signed = this.#checkHeaders(request)
    if (typeof signed === 'string') return signed

    const body = this.#intake.open()
    try {
      request.read(body)
      const bytes = await body.bytes
      return typeof bytes === 'string' ? bytes : await this.#store(signed, bytes)
    } finally {
      body.release()
    }
  }

  /** The webhook's headers, or the reason for a refusal. */
  #checkHeaders(request: HttpRequest): SignedHeaders | WebhookRefusalCode {
    const { clock, tolerance, inbox } = this.#settings
    if (this.#isClosed) return 'closed'
    if (request.method !== 'POST') return 'method_not_allowed'
    if (!isJson(request.header('content-type'))) return 'unsupported_media_type'
    const id = request.header('webhook-id')
    const timestamp = request.header('webhook-timestamp')
    const signature = request.header('webhook-signature')
    if (!id || !timestamp || !signature) return 'missing_header'
    if (!isWebhookId(id) || !isWebhookTimestamp(timestamp)) return 'malformed_header'
    const entries = signatureEntries(signature)
    if (entries.length === 0) return 'bad_signature'
    // Negated, so that a clock that returns NaN accepts nothing.
    const age = Math.abs(clock() - Number(timestamp) * 1000)
    if (!(age <= tolerance)) return 'timestamp_out_of_tolerance'
    const refusal = this.#intake.refusalOf(request.header('content-length'))
    if (refusal !== undefined) return refusal
    return inbox.isFull?.(id) === true ? 'inbox_full' : { id, timestamp, entries }
  }

  /** Verifies and stores a webhook. Returns the reason for a refusal. */
  async #store(
    { id, timestamp, entries }: SignedHeaders,
    body: Uint8Array,
  ): Promise<WebhookRefusalCode | undefined> {
    const { inbox } = this.#settings
    const secrets = await this.#secretsInTime()
    if (!(await verifyEntries({ id, timestamp, body }, entries, secrets))) return 'bad_signature'

    // Requiring an object makes the signed text unambiguous: an id may contain the dots that join it, but a body that included
    // part of the id or timestamp would start with a digit.
    const parsed = parseObject(body)
    if (parsed === undefined) return 'malformed_json'

    // The receiver may have been closed while the body arrived.
    if (this.#isClosed) return 'closed'
    const outcome = await inbox.put({ id, timestamp: Number(timestamp), payload: parsed.value }, parsed.text)
    if (outcome === 'full') return 'inbox_full'
    if (outcome === 'stored') this.#deliveries?.schedule()
    return undefined
  }

  /** The secrets. Rejects when a promise of them takes too long, since the body holds its share of the memory until then. */
  async #secretsInTime(): Promise<WebhookSecrets> {
    const { secrets, bodyTimeout } = this.#settings
    const current = typeof secrets === 'function' ? secrets() : secrets
    if (typeof current === 'string' || current instanceof Uint8Array || Array.isArray(current)) return current
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no secrets within ${bodyTimeout} ms`)), bodyTimeout)
    })
    try {
      return await Promise.race([current, late])
    } finally {
      clearTimeout(timer)
    }
  }

  #refuse(refusal: WebhookRefusal): HttpResponse {
    if (this.#refused.observed) later(() => this.#refused.next(refusal))
    return refusalResponse(refusal)
  }

  /** The `Retry-After` for a lack of memory, in s: every body that is in flight now has ended by then. */
  #detailsOf(code: WebhookRefusalCode): Pick<WebhookRefusal, 'retryAfter'> {
    if (code !== 'overloaded' && code !== 'inbox_full') return {}
    return { retryAfter: Math.ceil(this.#settings.bodyTimeout / 1000) }
  }
}

/** The headers of a webhook, not yet verified. */
interface SignedHeaders {
  readonly id: string
  readonly timestamp: string
  readonly entries: readonly string[]
}

/** Whether deliveries are taken from the inbox. The inbox of a log is read by a recorder. */
function isMemoryInbox(inbox: WebhookInbox | MemoryInbox): inbox is MemoryInbox {
  return 'take' in inbox && typeof inbox.take === 'function'
}

function recorded(): ArgumentError {
  const message =
    'a receiver with log.inbox has no deliveries: record them with log.record({ client, webhooks: receiver }), and read them ' +
    'with a consumer of the log'
  return new ArgumentError('inbox', { message }, undefined)
}

function isJson(contentType: string | null): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

/** A JSON object and its text. */
interface ParsedObject {
  readonly text: string
  readonly value: Readonly<Record<string, unknown>>
}

/** Has no state between two bodies, not even after a malformed one. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses bytes as a JSON object; undefined if they are anything else. */
function parseObject(bytes: Uint8Array): ParsedObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { text, value } : undefined
  } catch {
    return undefined
  }
}
