import { createExchange } from '#exchange'
import pRetry from 'p-retry'
import { asyncScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { backoffDelay } from '../protocol/backoff.ts'
import type { Backoff } from '../protocol/backoff.ts'
import { checkDuration, checkInteger } from '../protocol/check.ts'
import { Observers } from '../protocol/observers.ts'
import { ResponseReader } from './response-reader.ts'
import type { ApiResponse, Expected } from './response-reader.ts'
import { createEndpoint } from './endpoint.ts'
import type { ApiRequest, EndpointSettings } from './endpoint.ts'
import { ApiError, RivuletError } from './errors.ts'
import type { Exchange, Flow, WireRequest } from './exchange.ts'
import { createExchange as createFetchExchange } from './fetch-exchange.ts'
import type { Fetch } from './fetch-exchange.ts'
import { MessageReaders } from './message-reader.ts'
import { MessageStream } from './message-stream.ts'
import type { MessageSink } from './message-stream.ts'
import type { ResponseContext } from './response-context.ts'
import type { Redact } from './redact.ts'
import { observeRequest } from './observer.ts'
import type { ClientObserver, Observation } from './observer.ts'
import { mayRetry } from './retry-policy.ts'

export type { ApiRequest } from './endpoint.ts'
export type { StreamMessage } from './message-reader.ts'
export type { MessageSink } from './message-stream.ts'

/** Sends requests to one service, with one key. */
export interface Transport {
  /** Removes the key and the other secrets of every request's headers from a text. */
  readonly redact: Redact
  readonly observers: Observers<ClientObserver>
  /** Throws an ArgumentError for an invalid request, without sending it. */
  check(request: ApiRequest): void
  /**
   * Sends a request. Retries until it succeeds or the error is not retryable. Rejects with a RivuletError, or with the
   * signal's reason; throws an ArgumentError for an invalid request.
   */
  request(request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse>
  /**
   * Opens an event stream over one connection, without reconnecting. The sink is called only after this returns, and never
   * after the flow's `abort`. Throws an ArgumentError for an invalid request.
   */
  stream(request: ApiRequest, sink: MessageSink): Flow
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
  readonly error: RivuletError
}

/** Settings of a transport. */
export interface TransportSettings extends EndpointSettings {
  /** The most retries of a single request. Default 4. */
  readonly retries?: number | undefined
  /** How the delay between attempts grows, where the service sends no `Retry-After`. */
  readonly backoff?: Backoff | undefined
  /** The largest response body, decoded, in bytes. Default 32 MiB. */
  readonly maxBodyBytes?: number | undefined
  /**
   * The longest data of one event in a stream, in characters. Default 16 Mi. A group's stream skips a longer one
   * and emits `stream.oversized`; `client.stream` errors with a ProtocolError.
   */
  readonly maxEventLength?: number | undefined
  /** Schedules the delays between attempts. Default asyncScheduler. */
  readonly scheduler?: SchedulerLike | undefined
  /** For jitter, from 0 up to 1. Default Math.random. */
  readonly random?: (() => number) | undefined
  /** Called before each delay between attempts. */
  readonly onRetry?: ((info: RetryInfo) => void) | undefined
  /** Makes the requests, instead of undici on Node and the global `fetch` elsewhere. */
  readonly fetch?: Fetch | undefined
  /** An HTTP client for what {@link fetch} cannot do; not both. Default undici on Node and `fetch` elsewhere. */
  readonly exchange?: Exchange | undefined
}

/** Creates a transport. Throws an ArgumentError for an invalid setting. */
export function createTransport(settings: TransportSettings): Transport {
  const {
    retries = 4,
    backoff = {},
    maxBodyBytes = 32 * 1024 * 1024,
    maxEventLength = 16 * 1024 * 1024,
    scheduler = asyncScheduler,
    random = Math.random,
    onRetry,
  } = settings
  const { prepare, redact, redactorOf } = createEndpoint(settings)
  checkInteger('retries', retries, 0)
  checkInteger('maxBodyBytes', maxBodyBytes, 1)
  checkInteger('maxEventLength', maxEventLength, 1)
  if (backoff.initialDelay !== undefined) checkDuration('backoff.initialDelay', backoff.initialDelay)
  if (backoff.maxDelay !== undefined) checkDuration('backoff.maxDelay', backoff.maxDelay)
  const exchange = exchangeOf(settings)

  const now = () => scheduler.now()
  const observers = new Observers<ClientObserver>()
  const readers = new MessageReaders(maxEventLength)
  const limits = { maxBodyBytes, maxEventLength, readers }
  const contextOf = (request: WireRequest): ResponseContext => ({
    request,
    ...limits,
    now,
    redact: redactorOf(request),
  })

  const withRetries = (
    wire: WireRequest,
    { idempotent, mayBeEmpty = false, path, retries: ownRetries = retries }: ApiRequest,
    signal: AbortSignal | undefined,
  ) =>
    pRetry(
      (number) => {
        const observation = observeRequest(observers, wire, { path, isStream: false, attempt: number })
        const expected = mayBeEmpty ? 'JSON or nothing' : 'JSON'
        return attempt(exchange, observation?.wire ?? wire, expected, contextOf(wire), signal, observation)
      },
      {
        retries: ownRetries,
        minTimeout: 0,
        signal,
        // Called only while retries are left. The delay is here, on our scheduler, and not in p-retry.
        async shouldRetry({ error, attemptNumber }) {
          if (!(error instanceof RivuletError) || !mayRetry(error, idempotent)) return false
          const delay = error.retryAfter ?? backoffDelay(attemptNumber - 1, backoff, random)
          onRetry?.({ method: wire.method, path: wire.path, attempt: attemptNumber, delay, error })
          await wait(delay, scheduler, signal)
          return true
        },
      },
    )

  return {
    redact,
    observers,
    check(request) {
      prepare(request, 'application/json', 'identity')
    },
    request(request, signal) {
      const wire = prepare(request, 'application/json', 'gzip, deflate, br')
      return withRetries(wire, request, signal)
    },
    stream(request, sink) {
      // Compression would delay events until a block is full.
      const wire = prepare(request, 'text/event-stream', 'identity')
      const observation = observeRequest(observers, wire, { path: request.path, isStream: true, attempt: 1 })
      const stream = new MessageStream(contextOf(wire), sink, observation)
      stream.flow = exchange(observation?.wire ?? wire, stream)
      return stream
    },
  }
}

function exchangeOf({ fetch, exchange }: TransportSettings): Exchange {
  for (const [name, value] of Object.entries({ fetch, exchange }))
    if (value !== undefined && typeof value !== 'function') throw new ArgumentError(name, 'a function', value)
  if (fetch !== undefined && exchange !== undefined)
    throw new ArgumentError('exchange', { message: 'fetch and exchange cannot both be given' }, undefined)
  return exchange ?? (fetch === undefined ? createExchange() : createFetchExchange(fetch))
}

/** Sends the request once. */
function attempt(
  exchange: Exchange,
  wire: WireRequest,
  expected: Expected,
  context: ResponseContext,
  signal: AbortSignal | undefined,
  observation: Observation | undefined,
): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      reader.flow?.abort()
      observation?.ended()
      reject(signal?.reason)
    }
    const reader = new ResponseReader(
      context,
      expected,
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
    reader.flow = exchange(wire, reader)
    signal?.addEventListener('abort', aborted, { once: true })
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
