import { Observable, Subject } from 'rxjs'
import { gateOf } from '../protocol/gate.ts'
import type { Gate } from '../protocol/gate.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkInteger, checkOptions, checkWait } from '../protocol/check.ts'
import type { WebhookDelivery } from '../protocol/webhook.ts'
import type { Inbox } from '../state/inbox.ts'
import { memoryInbox } from '../state/memory-inbox.ts'
import { BodyIntake } from '../http/body-intake.ts'
import { fetchHandler } from '../http/fetch-handler.ts'
import type { HttpAnswer, HttpRequest } from '../http/handler.ts'
import { parseObject } from './json-object.ts'
import { later } from './later.ts'
import { refusalAnswer, refusalOf } from './refusal.ts'
import type { WebhookRefusal, WebhookRefusalCode } from './refusal.ts'
import { isWebhookId, isWebhookTimestamp, secretList, signatureEntries, verifyEntries } from './signature.ts'
import type { WebhookSecrets } from './signature.ts'

/** Settings of {@link createWebhookReceiver}. */
export interface WebhookReceiverOptions {
  /**
   * The account's webhook secret (§5); several while it is rotated; or a function that is asked at each request, so
   * that a rotation needs no restart.
   */
  readonly secrets: WebhookSecrets | (() => WebhookSecrets)
  /** How far `webhook-timestamp` may be from the present, either way, in ms. Default 5 minutes. */
  readonly tolerance?: number
  /** The largest body that is read, in bytes. Default 4 MiB. */
  readonly maxBodyBytes?: number
  /**
   * What the bodies of all requests may hold at once, in bytes, from their first byte to their answer. At least `maxBodyBytes`.
   * The sender of what goes beyond it is asked to try again. Default 64 MiB, or `maxBodyBytes` where that is more.
   */
  readonly maxBytesInFlight?: number
  /** How long a body may take to come once its headers are there, in ms. Default 10 seconds. */
  readonly bodyTimeout?: number
  /** Where deliveries wait, and their ids are remembered. Default {@link memoryInbox}. */
  readonly inbox?: Inbox
  /** Unix time in ms. Default `Date.now`. */
  readonly clock?: () => number
}

/** The receiving end of the service's webhooks (§6.1). */
export interface WebhookReceiver {
  /**
   * Answers a webhook request: 204 once its delivery is stored or was stored before, else a status of its own with a
   * JSON body `{code, message}`. Reads the body itself, since the signature is over the exact bytes. Never rejects.
   *
   * From the headers alone, before any of the body is read:
   *
   * | Status | `code` | When |
   * |---|---|---|
   * | 503 | `closed` | the receiver is closed |
   * | 405 | `method_not_allowed` | not a POST |
   * | 415 | `unsupported_media_type` | the content type is not `application/json` |
   * | 400 | `missing_header` | one of the three webhook headers is missing |
   * | 400 | `malformed_header` | the id is not visible ASCII, or the timestamp no number |
   * | 401 | `bad_signature` | no entry of the signature is one of version `v1`, or there are more than 32 |
   * | 403 | `timestamp_out_of_tolerance` | the timestamp is too old, or too far ahead |
   * | 413 | `body_too_large` | `content-length` says that the body is larger than `maxBodyBytes` |
   * | 503 | `overloaded` | the body would not fit into `maxBytesInFlight` now; with a `Retry-After` |
   * | 503 | `inbox_full` | more deliveries wait than the inbox holds, as far as it knows beforehand |
   *
   * From the body:
   *
   * | Status | `code` | When |
   * |---|---|---|
   * | 400 | `incomplete_body` | the body broke off |
   * | 408 | `body_timeout` | the body took longer than `bodyTimeout` |
   * | 413 | `body_too_large` | the body is larger than `maxBodyBytes` |
   * | 503 | `overloaded` | the bodies of all requests hold `maxBytesInFlight`; with a `Retry-After` |
   * | 401 | `bad_signature` | no signature fits one of the secrets |
   * | 422 | `malformed_json` | the body is not a JSON object |
   * | 503 | `closed` | the receiver was closed meanwhile |
   * | 503 | `inbox_full` | more deliveries wait than the inbox holds |
   * | 503 | `unavailable` | the inbox failed, or the secrets could not be had |
   *
   * They are checked in this order. The sender retries after any of them.
   *
   * What is answered from the headers needs no signature. It shows an unsigned sender this clock, how
   * large the limits are, whether there is room, and, while there is none, whether an id is known. Nothing of it is secret.
   */
  handle(request: Request): Promise<Response>
  /**
   * The accepted deliveries, each once, after its answer. Hot: subscribers share them. While nobody is subscribed, and
   * while a subscriber is behind (see `Gate` of `rivulet/operators`), they wait in the inbox. Completes on `close`; errors
   * only if the inbox cannot hand them out any more, which closes the receiver.
   *
   * A durable inbox hands out again what is not {@link done} when somebody subscribes and nobody else is subscribed: after
   * a restart, and after a `retry` in the same process. Who joins others gets what comes from then on.
   */
  readonly deliveries: Observable<WebhookDelivery>
  /**
   * Says that the delivery with this id was handled, so that a durable inbox hands it out no more.
   * `client.watch({ webhooks, checkpoint })` says it by itself. May be called after `close`, as long as the inbox is open.
   */
  done(id: string): void | Promise<void>
  /** What was refused and why, for logs and alerts. Hot; completes on `close`. */
  readonly refusals: Observable<WebhookRefusal>
  /**
   * Completes, and answers requests 503 from then on. An inbox in memory has its last chance here, so what it holds is
   * handed to the subscribers there are; a durable one keeps it for the next start. The inbox is left open.
   */
  close(): void
}

const MIB = 1024 * 1024

/** What may be set, as the compiler knows it. */
const OPTIONS: { readonly [Name in keyof Required<WebhookReceiverOptions>]: true } = {
  secrets: true,
  tolerance: true,
  maxBodyBytes: true,
  maxBytesInFlight: true,
  bodyTimeout: true,
  inbox: true,
  clock: true,
}

/** Answers a webhook whose delivery is stored. */
const STORED: HttpAnswer = { status: 204 }

/** Deliveries handed out in a row before other work gets its turn, so that a long backlog holds up no answer. */
const TURN = 256

/**
 * Creates a receiver of the service's webhooks (§6.1). Mount {@link WebhookReceiver.handle} in any server that speaks
 * `Request` and `Response`, or {@link nodeListener} in one of `node:http`.
 *
 * @throws {ArgumentError} for an option that cannot be right.
 * @example
 * const receiver = createWebhookReceiver({ secrets: process.env['WEBHOOK_SECRET'] ?? '' })
 * receiver.deliveries.subscribe(({ id, payload }) => console.log(id, payload))
 * createServer(nodeListener(receiver)).listen(3000)
 */
export function createWebhookReceiver(options: WebhookReceiverOptions): WebhookReceiver {
  checkOptions('createWebhookReceiver', options, Object.keys(OPTIONS))
  const { secrets, tolerance = 5 * 60_000, maxBodyBytes = 4 * MIB, clock = Date.now } = options
  const { maxBytesInFlight = Math.max(64 * MIB, maxBodyBytes), bodyTimeout = 10_000 } = options
  const currentSecrets = typeof secrets === 'function' ? secrets : () => secrets
  if (typeof secrets !== 'function') secretList(secrets)
  checkDuration('tolerance', tolerance, true)
  checkInteger('maxBodyBytes', maxBodyBytes, 1)
  checkInteger('maxBytesInFlight', maxBytesInFlight, maxBodyBytes)
  checkWait('bodyTimeout', bodyTimeout)
  if (typeof clock !== 'function') throw new ArgumentError('clock', 'a function', clock)
  const { inbox = memoryInbox({ clock }) } = options

  const intake = new BodyIntake({ maxBodyBytes, maxBytesInFlight, bodyTimeout })
  /** Whatever holds the room now has given it back by then, in s. */
  const retryAfter = Math.ceil(bodyTimeout / 1000)
  const handedOut = new Subject<WebhookDelivery>()
  const refused = new Subject<WebhookRefusal>()
  /** The gates of those who are subscribed. */
  const gates: Gate[] = []
  let closed = false
  let scheduled = false

  /** Answers a webhook request. Never rejects. */
  async function answer(request: HttpRequest): Promise<HttpAnswer> {
    try {
      const code = await receive(request)
      if (code === undefined) return STORED
      return refuse(refusalOf(code, code === 'overloaded' ? { retryAfter } : {}))
    } catch (cause) {
      return refuse(refusalOf('unavailable', { cause }))
    }
  }

  /** Takes a request in; the reason where it cannot. */
  async function receive(request: HttpRequest): Promise<WebhookRefusalCode | undefined> {
    const signed = checkHeaders(request)
    if (typeof signed === 'string') return signed

    const body = intake.open()
    try {
      request.read(body)
      const bytes = await body.bytes
      return typeof bytes === 'string' ? bytes : await store(signed, bytes)
    } finally {
      body.release()
    }
  }

  /** What the headers say; the reason where they alone are enough to refuse. */
  function checkHeaders(request: HttpRequest): SignedHeaders | WebhookRefusalCode {
    if (closed) return 'closed'
    if (request.method !== 'POST') return 'method_not_allowed'
    if (!isJson(request.header('content-type'))) return 'unsupported_media_type'
    const id = request.header('webhook-id')
    const timestamp = request.header('webhook-timestamp')
    const signature = request.header('webhook-signature')
    if (!id || !timestamp || !signature) return 'missing_header'
    if (!isWebhookId(id) || !isWebhookTimestamp(timestamp)) return 'malformed_header'
    const entries = signatureEntries(signature)
    if (entries.length === 0) return 'bad_signature'
    // Written so that a clock which gives no number lets nothing pass.
    const age = Math.abs(clock() - Number(timestamp) * 1000)
    if (!(age <= tolerance)) return 'timestamp_out_of_tolerance'
    const refusal = intake.refusalOf(request.header('content-length'))
    if (refusal !== undefined) return refusal
    return inbox.isFull?.(id) === true ? 'inbox_full' : { id, timestamp, entries }
  }

  /** Verifies and stores a webhook whose body has come; the reason where it cannot. */
  async function store(
    { id, timestamp, entries }: SignedHeaders,
    body: Uint8Array,
  ): Promise<WebhookRefusalCode | undefined> {
    if (!(await verifyEntries({ id, timestamp, body }, entries, currentSecrets()))) return 'bad_signature'

    // Only an object will do, which is also what makes the signed text unambiguous: the dots that join it can stand in
    // an id too, but a body that took over part of the id or timestamp would begin with a digit.
    const parsed = parseObject(body)
    if (parsed === undefined) return 'malformed_json'

    // It may have been closed while the body came in.
    if (closed) return 'closed'
    const outcome = await inbox.put({ id, timestamp: Number(timestamp), payload: parsed.value }, parsed.text)
    if (outcome === 'full') return 'inbox_full'
    if (outcome === 'stored') scheduleHandOut()
    return undefined
  }

  function refuse(refusal: WebhookRefusal): HttpAnswer {
    if (refused.observed) later(() => refused.next(refusal))
    return refusalAnswer(refusal)
  }

  /** A turn of the event loop lies between an answer and its delivery, so that no subscriber holds up the answer. */
  function scheduleHandOut(): void {
    // A subscriber schedules one when it comes. A runtime that ends its timers with the request needs none before.
    if (scheduled || !handedOut.observed) return
    scheduled = true
    later(() => {
      scheduled = false
      let turn = 0
      while (turn < TURN && !isHeldBack() && handOut()) turn += 1
      if (turn === TURN) scheduleHandOut()
    })
  }

  /** Deliveries are shared, so the subscriber who is furthest behind holds them back. */
  function isHeldBack(): boolean {
    return gates.some((gate) => gate.closed)
  }

  /** Hands out the next delivery, if somebody listens and there is one. */
  function handOut(): boolean {
    if (!handedOut.observed) return false
    const delivery = take()
    if (delivery === undefined) return false
    handedOut.next(delivery)
    return true
  }

  function take(): WebhookDelivery | undefined {
    try {
      return inbox.take()
    } catch (error) {
      fail(error)
      return undefined
    }
  }

  /** Has everything handed out again that is not done, where the inbox still has it. */
  function rewind(): void {
    try {
      inbox.rewind?.()
    } catch (error) {
      fail(error)
    }
  }

  /** The inbox cannot hand out any more. */
  function fail(error: unknown): void {
    closed = true
    handedOut.error(error)
    refused.complete()
  }

  function close(): void {
    if (closed) return
    closed = true
    // They were answered 2xx, and an inbox in memory has no other chance to pass them on.
    let more = inbox.durable !== true
    while (more) more = handOut()
    handedOut.complete()
    refused.complete()
  }

  const deliveries = new Observable<WebhookDelivery>((subscriber) => {
    // Whoever was handed something before is gone. While others listen, they would get it twice.
    if (!closed && !handedOut.observed) rewind()
    const subscription = handedOut.subscribe(subscriber)
    const gate = gateOf(subscriber)
    if (gate !== undefined) subscription.add(obey(gate))
    scheduleHandOut()
    return subscription
  })

  /** Holds deliveries back while the gate is closed, until the function that it returns is called. */
  function obey(gate: Gate): () => void {
    gates.push(gate)
    const stopListening = gate.onChange((isClosed) => {
      if (!isClosed) scheduleHandOut()
    })
    return () => {
      stopListening()
      gates.splice(gates.indexOf(gate), 1)
      // It may have been the one that held back.
      scheduleHandOut()
    }
  }

  return {
    handle: fetchHandler(answer),
    deliveries,
    refusals: refused.asObservable(),
    done: (id) => inbox.done(id),
    close,
  }
}

/** The headers of a webhook that may be what they say. */
interface SignedHeaders {
  readonly id: string
  readonly timestamp: string
  readonly entries: readonly string[]
}

function isJson(contentType: string | null): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}
