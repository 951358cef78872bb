import { createExchange } from '#exchange'
import pRetry from 'p-retry'
import { asyncScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { retryDelay } from '../protocol/backoff.ts'
import type { Backoff } from '../protocol/backoff.ts'
import { checkDuration, checkInteger, checkOptionalFunctions } from '../protocol/check.ts'
import { Observers } from '../protocol/observers.ts'
import { ResponseReader } from './response-reader.ts'
import type { ApiResponse } from './response-reader.ts'
import { createEndpoint } from './endpoint.ts'
import type { ApiRequest, Endpoint, EndpointSettings } from './endpoint.ts'
import { ApiError, RateLimitError, RequestError } from './errors.ts'
import type { Exchange, Flow, WireRequest } from './exchange.ts'
import { createExchange as createFetchExchange } from './fetch-exchange.ts'
import type { Fetch } from './fetch-exchange.ts'
import { MessageReaders } from './message-reader.ts'
import { MessageStream } from './message-stream.ts'
import type { MessageSink } from './message-stream.ts'
import { AnswerStream } from './answer-stream.ts'
import type { AnswerSink } from './answer-stream.ts'
import { createQuotaLimiter } from './quota-limiter.ts'
import type { QuotaLimiter, QuotaSettings, QuotaWait } from './quota-limiter.ts'
import type { QuotaQueue } from './quota-queue.ts'
import type { ResponseContext } from './response-context.ts'
import type { Redact } from '../protocol/redactor.ts'
import { observeRequest } from './observer.ts'
import type { ClientObserver } from './observer.ts'
import { mayRetry, RetryBudget } from './retry-policy.ts'

export type { ApiRequest } from './endpoint.ts'
export type { StreamMessage } from './message-reader.ts'
export type { MessageSink } from './message-stream.ts'

/** Sends requests to one service, with one key. */
export interface Transport {
  /** Removes the key and the other secrets of every request's headers from a text. */
  readonly redact: Redact
  readonly observers: Observers<ClientObserver>
  /** The largest response body, decoded, in bytes. */
  readonly maxBodyBytes: number
  /** Throws an ArgumentError for an invalid request, without sending it. */
  check(request: ApiRequest): void
  /**
   * Sends a request when its quota allows. Retries until it succeeds or the error is not retryable. Rejects with a RequestError,
   * or with the signal's reason; throws an ArgumentError for an invalid request.
   */
  request(request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse>
  /**
   * Opens an event stream over one connection, without reconnecting. The sink is called only after this returns, and never
   * after the flow's `abort`. Throws an ArgumentError for an invalid request.
   */
  stream(request: ApiRequest, sink: MessageSink): Flow
  /**
   * Opens the event stream of one answer when its quota allows. Retries as `request`, but only until the stream is
   * open. The sink is called as by `stream`.
   */
  answer(request: ApiRequest, sink: AnswerSink): Flow
}

/** A request that failed and is retried. */
export interface RetryInfo {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Which attempt failed, counted from 1. */
  readonly attempt: number
  /** Delay before the next attempt, in ms. */
  readonly delay: number
  readonly error: RequestError
}

/** Settings of a transport. */
export interface TransportSettings extends EndpointSettings {
  /**
   * The most retries of a single request. Default 4. All requests of a client together have 500 retries, and one more for every five
   * that succeed: an outage does not multiply them.
   */
  readonly retries?: number | undefined
  /** How the delay between attempts grows. A `Retry-After` of the service lengthens it. */
  readonly backoff?: Backoff | undefined
  /** The largest response body, decoded, in bytes. Default 32 MiB. */
  readonly maxBodyBytes?: number | undefined
  /**
   * The longest data of one event in a stream, in characters. Default 16 Mi. A group's stream skips a longer one
   * and emits `stream.oversized`; `client.stream` errors with a ProtocolError.
   */
  readonly maxEventLength?: number | undefined
  /**
   * Limits of creating requests, per time window. Further requests wait. An object replaces the known limits of the named quotas; `false`
   * sets no limits. Default: the known limits. These are 600 searches, 600 extractions, 2,000 requests that create or add runs, 300 chats or responses and 300 monitors a
   * minute, and 300 FindAll runs an hour.
   */
  readonly quotas?: QuotaSettings | undefined
  /** Schedules the delays between attempts. Default asyncScheduler. */
  readonly scheduler?: SchedulerLike | undefined
  /** Random numbers for jitter, from 0 (inclusive) to 1 (exclusive). Default Math.random. */
  readonly random?: (() => number) | undefined
  /** Called before each delay between attempts. */
  readonly onRetry?: ((info: RetryInfo) => void) | undefined
  /** Called when requests of a quota begin to wait. */
  readonly onQuotaWait?: ((wait: QuotaWait) => void) | undefined
  /** Makes the requests, instead of undici on Node and the global `fetch` elsewhere. */
  readonly fetch?: Fetch | undefined
  /** An HTTP client for cases that {@link fetch} does not cover; set only one of the two. Default undici on Node and `fetch` elsewhere. */
  readonly exchange?: Exchange | undefined
}

/** Creates a transport. Throws an ArgumentError for an invalid setting. */
export function createTransport(settings: TransportSettings): Transport {
  return new RetryingTransport(settings)
}

/** Sends requests in the order of their quotas, and retries them within one budget. Its methods are fields, so that a copy of the object has them. */
class RetryingTransport implements Transport {
  readonly redact: Redact
  readonly observers = new Observers<ClientObserver>({ request: true })
  readonly maxBodyBytes: number
  readonly #endpoint: Endpoint
  readonly #limits: Pick<ResponseContext, 'maxBodyBytes' | 'maxEventLength' | 'readers' | 'now'>
  readonly #exchange: Exchange
  readonly #queueOf: QuotaLimiter
  readonly #retries: number
  readonly #budget = new RetryBudget()
  readonly #backoff: Backoff
  readonly #scheduler: SchedulerLike
  readonly #random: () => number
  readonly #onRetry: TransportSettings['onRetry']

  constructor(settings: TransportSettings) {
    const {
      retries = 4,
      backoff = {},
      maxBodyBytes = 32 * 1024 * 1024,
      maxEventLength = 16 * 1024 * 1024,
      scheduler = asyncScheduler,
      random = Math.random,
      onRetry,
      onQuotaWait = () => {},
    } = settings
    this.#endpoint = createEndpoint(settings)
    checkInteger('retries', retries, 0)
    checkInteger('maxBodyBytes', maxBodyBytes, 1)
    checkInteger('maxEventLength', maxEventLength, 1)
    if (backoff.initialDelay !== undefined) checkDuration('backoff.initialDelay', backoff.initialDelay)
    if (backoff.maxDelay !== undefined) checkDuration('backoff.maxDelay', backoff.maxDelay)
    this.redact = this.#endpoint.redact
    this.maxBodyBytes = maxBodyBytes
    this.#exchange = exchangeOf(settings)
    this.#queueOf = createQuotaLimiter(settings.quotas, scheduler, onQuotaWait)
    const readers = new MessageReaders(maxEventLength)
    this.#limits = { maxBodyBytes, maxEventLength, readers, now: () => scheduler.now() }
    this.#retries = retries
    this.#backoff = backoff
    this.#scheduler = scheduler
    this.#random = random
    this.#onRetry = onRetry
  }

  readonly check = (request: ApiRequest): void => {
    this.#endpoint.prepare(request, 'application/json', 'identity')
  }

  readonly request = (request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse> => {
    const wire = this.#endpoint.prepare(request, 'application/json', 'gzip, deflate, br')
    return this.#retried(request, wire, signal, (number) => this.#attempt(wire, request, number, signal))
  }

  readonly stream = (request: ApiRequest, sink: MessageSink): Flow =>
    this.#connect(this.#streamed(request), request.path, 1, sink)

  readonly answer = (request: ApiRequest, sink: AnswerSink): Flow => {
    const wire = this.#streamed(request)
    const stream = new AnswerStream(sink, (number, own) => this.#connect(wire, request.path, number, own))
    this.#retried(request, wire, stream.signal, (number) => stream.open(number)).catch((error: unknown) =>
      stream.failed(error),
    )
    return stream
  }

  /**
   * Makes attempts until one succeeds: the only loop of this kind in the transport. Each waits for its turn in the quota. Between two of
   * them is a delay with backoff, which the service's `Retry-After` lengthens and the signal ends.
   */
  #retried<T>(
    request: ApiRequest,
    wire: WireRequest,
    signal: AbortSignal | undefined,
    attempt: (number: number) => Promise<T>,
  ): Promise<T> {
    const queue = this.#queueOf(request.quota)
    let delay = 0
    return pRetry(
      (number) =>
        inTurn(queue, number > 1, signal, async (startedAt) => {
          try {
            const result = await attempt(number)
            queue?.accepted()
            this.#budget.succeeded()
            return result
          } catch (error) {
            if (error instanceof RequestError) delay = this.#delayAfter(error, number, startedAt, queue)
            throw error
          }
        }),
      {
        retries: request.retries ?? this.#retries,
        minTimeout: 0,
        signal,
        // Called only while retries are left. The delay is here, on our scheduler, and not in p-retry.
        shouldRetry: async ({ error, attemptNumber }) => {
          if (!(error instanceof RequestError) || !mayRetry(error, request.idempotent)) return false
          // The queue has the delay itself: a delay here would let later requests overtake this one.
          const isQueued = queue !== undefined && error instanceof RateLimitError
          // A queue that is refused sends fewer requests by itself.
          if (!isQueued && !this.#budget.take()) return false
          const { method, path } = wire
          this.#onRetry?.({ method, path, attempt: attemptNumber, delay, error })
          if (!isQueued) await wait(delay, this.#scheduler, signal)
          return true
        },
      },
    )
  }

  /** Sends the request once. */
  #attempt(
    wire: WireRequest,
    { path, mayBeEmpty = false }: ApiRequest,
    attempt: number,
    signal: AbortSignal | undefined,
  ): Promise<ApiResponse> {
    const observation = observeRequest(this.observers, wire, { path, isStream: false, attempt })
    return new Promise((resolve, reject) => {
      const aborted = () => {
        reader.flow?.abort()
        observation?.ended()
        reject(signal?.reason)
      }
      const reader = new ResponseReader(
        this.#contextOf(wire),
        mayBeEmpty ? 'JSON or nothing' : 'JSON',
        (response) => {
          signal?.removeEventListener('abort', aborted)
          observation?.responded(response.status)
          observation?.ended()
          resolve(response)
        },
        (error) => {
          signal?.removeEventListener('abort', aborted)
          if (error instanceof ApiError) observation?.responded(error.status)
          observation?.ended(error)
          reject(error)
        },
      )
      reader.flow = this.#exchange(observation?.wire ?? wire, reader)
      signal?.addEventListener('abort', aborted, { once: true })
    })
  }

  /** Compression would delay events until a block is full. */
  #streamed(request: ApiRequest): WireRequest {
    return this.#endpoint.prepare(request, 'text/event-stream', 'identity')
  }

  #connect(wire: WireRequest, path: string, attempt: number, sink: MessageSink): Flow {
    const observation = observeRequest(this.observers, wire, { path, isStream: true, attempt })
    const stream = new MessageStream(this.#contextOf(wire), sink, observation)
    stream.flow = this.#exchange(observation?.wire ?? wire, stream)
    return stream
  }

  #contextOf(request: WireRequest): ResponseContext {
    return { request, ...this.#limits, redact: this.#endpoint.redactorOf(request) }
  }

  /** How long to wait after the attempt with this number, in ms. A 429 pauses its whole quota. */
  #delayAfter(
    error: RequestError,
    attempt: number,
    startedAt: number,
    queue: QuotaQueue | undefined,
  ): number {
    const after = (failures: number) => retryDelay(error, failures - 1, this.#backoff, this.#random)
    if (queue === undefined || !(error instanceof RateLimitError)) return after(attempt)
    return queue.refused(startedAt, (refusals) => after(Math.max(attempt, refusals)))
  }
}

function exchangeOf({ fetch, exchange }: TransportSettings): Exchange {
  checkOptionalFunctions({ fetch, exchange })
  if (fetch !== undefined && exchange !== undefined)
    throw new ArgumentError('exchange', { message: 'fetch and exchange cannot both be given' }, undefined)
  return exchange ?? (fetch === undefined ? createExchange() : createFetchExchange(fetch))
}

/** Calls `send` when the queue allows, unless the signal is aborted before. */
function inTurn<T>(
  queue: QuotaQueue | undefined,
  isRetry: boolean,
  signal: AbortSignal | undefined,
  send: (startedAt: number) => Promise<T>,
): Promise<T> {
  if (queue === undefined) return send(0)
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const aborted = () => {
      leave()
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', aborted, { once: true })
    const start = (startedAt: number) => {
      signal?.removeEventListener('abort', aborted)
      resolve(send(startedAt))
    }
    const leave = queue.enter({ isRetry, start })
  })
}

/** Resolves after `delay` ms of the scheduler's time, or rejects with the signal's reason. */
function wait(delay: number, scheduler: SchedulerLike, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const aborted = () => {
      action.unsubscribe()
      reject(signal?.reason)
    }
    const action = scheduler.schedule(() => {
      signal?.removeEventListener('abort', aborted)
      resolve()
    }, delay)
    signal?.addEventListener('abort', aborted, { once: true })
  })
}
