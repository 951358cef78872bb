import { createExchange } from '#exchange'
import pRetry from 'p-retry'
import { asyncScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { backoffDelay } from '../protocol/backoff.ts'
import type { Backoff } from '../protocol/backoff.ts'
import { checkDuration, checkInteger } from '../protocol/check.ts'
import { Answer } from './answer.ts'
import type { ApiResponse, Expected } from './answer.ts'
import { createEndpoint } from './endpoint.ts'
import type { ApiRequest, EndpointSettings } from './endpoint.ts'
import { RivuletError } from './errors.ts'
import type { Exchange, Flow, WireRequest } from './exchange.ts'
import { createExchange as createFetchExchange } from './fetch-exchange.ts'
import type { Fetch } from './fetch-exchange.ts'
import { MessageReaders } from './message-reader.ts'
import { MessageStream } from './message-stream.ts'
import type { MessageSink } from './message-stream.ts'
import type { Reading } from './reading.ts'
import type { Redact } from './redact.ts'
import { maySendAgain } from './retry-policy.ts'

export type { ApiRequest } from './endpoint.ts'
export type { StreamMessage } from './message-reader.ts'
export type { MessageSink } from './message-stream.ts'

/** Requests to one service, with one key. */
export interface Transport {
  /** Takes the key and what else may be secret of every request's headers out of a text. */
  readonly redact: Redact
  /** Throws the ArgumentError of a request that cannot be right, without sending it. */
  check(request: ApiRequest): void
  /**
   * Sends a request until it is answered or nothing more can be hoped for. Rejects with a RivuletError, or with the
   * signal's reason; throws an ArgumentError where the request cannot be right.
   */
  request(request: ApiRequest, signal?: AbortSignal): Promise<ApiResponse>
  /**
   * Opens an event stream over one connection; connecting again is the caller's. The sink hears nothing before this
   * returns and nothing after the flow's `abort`. Throws an ArgumentError where the request cannot be right.
   */
  stream(request: ApiRequest, sink: MessageSink): Flow
}

/** A request that failed and is sent again. */
export interface RetryInfo {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Which attempt failed, counted from 1. */
  readonly attempt: number
  /** How long until the next one, in ms. */
  readonly delay: number
  readonly error: RivuletError
}

/** Settings of a transport. */
export interface TransportSettings extends EndpointSettings {
  /** How often a single request is sent again, at the most. Default 4. */
  readonly retries?: number | undefined
  /** How waits between attempts grow, where the service does not say how long to wait. */
  readonly backoff?: Backoff | undefined
  /** Bytes of a whole answer, decoded, at the most. Default 32 MiB. */
  readonly maxBodyBytes?: number | undefined
  /**
   * Characters of one event's data in a stream, at the most. Default 16 Mi. A group's stream skips a longer one
   * and emits `stream.oversized`; `client.stream` errors with a ProtocolError.
   */
  readonly maxEventLength?: number | undefined
  /** Where waits between attempts take place. Default asyncScheduler. */
  readonly scheduler?: SchedulerLike | undefined
  /** For jitter, from 0 up to 1. Default Math.random. */
  readonly random?: (() => number) | undefined
  /** Called before each wait between attempts. */
  readonly onRetry?: ((info: RetryInfo) => void) | undefined
  /** What makes the requests, in place of undici on Node and the global `fetch` elsewhere. */
  readonly fetch?: Fetch | undefined
  /** What speaks HTTP, for what {@link fetch} cannot do; not both. Default undici on Node and `fetch` elsewhere. */
  readonly exchange?: Exchange | undefined
}

/** A transport to the service of these settings. Throws an ArgumentError where one of them cannot be right. */
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
  const readers = new MessageReaders(maxEventLength)
  const limits = { maxBodyBytes, maxEventLength, readers }
  const reading = (request: WireRequest): Reading => ({
    request,
    ...limits,
    now,
    redact: redactorOf(request),
  })

  /** Attempt after attempt; what may be sent again, and when, is ours to say. */
  const untilAnswered = (
    wire: WireRequest,
    { idempotent, mayBeEmpty = false }: ApiRequest,
    signal: AbortSignal | undefined,
  ) =>
    pRetry(() => attempt(exchange, wire, mayBeEmpty ? 'JSON or nothing' : 'JSON', reading(wire), signal), {
      retries,
      minTimeout: 0,
      signal,
      // Called only where there is a retry left. It waits here, where the scheduler says what time is.
      async shouldRetry({ error, attemptNumber }) {
        if (!(error instanceof RivuletError) || !maySendAgain(error, idempotent)) return false
        const delay = error.retryAfter ?? backoffDelay(attemptNumber - 1, backoff, random)
        onRetry?.({ method: wire.method, path: wire.path, attempt: attemptNumber, delay, error })
        await wait(delay, scheduler, signal)
        return true
      },
    })

  return {
    redact,
    check(request) {
      prepare(request, 'application/json', 'identity')
    },
    request(request, signal) {
      const wire = prepare(request, 'application/json', 'gzip, deflate, br')
      return untilAnswered(wire, request, signal)
    },
    stream(request, sink) {
      // Compressing holds events back until there is enough to compress.
      const wire = prepare(request, 'text/event-stream', 'identity')
      const stream = new MessageStream(reading(wire), sink)
      stream.flow = exchange(wire, stream)
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
  reading: Reading,
  signal: AbortSignal | undefined,
): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const aborted = () => {
      answer.flow?.abort()
      reject(signal?.reason)
    }
    const answer = new Answer(
      reading,
      expected,
      (response) => {
        signal?.removeEventListener('abort', aborted)
        resolve(response)
      },
      (error) => {
        signal?.removeEventListener('abort', aborted)
        reject(error)
      },
    )
    answer.flow = exchange(wire, answer)
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
