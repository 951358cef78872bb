import { Observable } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkBoolean, checkOneOf, checkOptions } from '../protocol/check.ts'
import type { ApiRequest, StreamMessage } from '../transport/transport.ts'
import type { Context } from './context.ts'
import { applyBackpressure } from './shapes/backpressure.ts'
import { requestBody } from './shapes/request.ts'
import { awaitable, sourceOf } from './shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from './shapes/source.ts'

/** Options of the untyped requests. */
export interface UntypedOptions
  extends SourceOptions, Pick<ApiRequest, 'query' | 'headers' | 'betas' | 'timeouts'> {}

/** Options of the untyped POST. */
export interface UntypedPostOptions extends UntypedOptions {
  /** Whether the request may be retried even if the service may have acted on it. Default false. */
  readonly idempotent?: boolean
}

/** Options of the untyped stream. Callbacks are called between two messages, in the order of the stream. */
export interface UntypedStreamOptions extends UntypedOptions {
  /** Method of the request. Default `GET`. */
  readonly method?: 'GET' | 'POST'
  /** Sent as JSON with a POST. Default: no body. */
  readonly body?: unknown
  /** Called with the server's `retry:`: how long to wait before the next connection, in ms. Default: none. */
  readonly onRetry?: (delay: number) => void
  /** Called with an `id:` without data: the position advances without a message. Default: none. */
  readonly onId?: (id: string) => void
}

const OPTIONS = ['signal', 'query', 'headers', 'betas', 'timeouts']

/** The calls for endpoints that the library does not support yet: what they send and receive is unchecked. */
export interface UntypedCalls extends ReturnType<typeof untypedCalls> {}

/** Creates the untyped calls of a client. */
export function untypedCalls(context: Context) {
  return {
    /** `GET path`: emits the JSON of the response once, unchecked, for endpoints that the library does not support yet. */
    get(path: string, options: UntypedOptions = {}): AwaitableSource<unknown> {
      checkPath(path)
      checkOptions('options', options, OPTIONS)
      const { signal, ...rest } = options
      const request = { ...rest, method: 'GET', path, idempotent: true, mayBeEmpty: true } as const
      context.transport.check(request)
      return awaitable(requestBody(context, request), signal)
    },
    /**
     * `POST path` with a JSON body: emits the JSON of the response once, unchecked. Retried only if the service cannot have acted
     * on it, unless `idempotent` is true.
     */
    post(path: string, body?: unknown, options: UntypedPostOptions = {}): AwaitableSource<unknown> {
      checkPath(path)
      checkOptions('options', options, [...OPTIONS, 'idempotent'])
      const { signal, idempotent = false, ...rest } = options
      checkBoolean('idempotent', idempotent)
      const request = { ...rest, method: 'POST', path, body, idempotent, mayBeEmpty: true } as const
      context.transport.check(request)
      return awaitable(requestBody(context, request), signal)
    },
    /**
     * Emits the messages of any event stream, over one connection. Completes after a clean close or a 204; errors if the connection
     * breaks or a message is longer than `maxEventLength`. To resume, use `reconnect` of `rivulet/operators`:
     *
     * ```ts
     * import { defer, tap } from 'rxjs'
     * import { createClient } from 'rivulet'
     * import { reconnect } from 'rivulet/operators'
     *
     * const client = createClient()
     * let position: string | undefined
     * let delay: number | undefined
     * defer(() =>
     *   client.stream('/v1/runs/run_123/events', {
     *     query: { last_event_id: position },
     *     onId: (id) => (position = id),
     *     onRetry: (ms) => (delay = ms),
     *   }),
     * )
     *   .pipe(
     *     tap(({ id }) => (position = id ?? position)),
     *     reconnect({ serverDelay: () => delay }),
     *   )
     *   .subscribe(({ data }) => console.log(data))
     * ```
     */
    stream(path: string, options: UntypedStreamOptions = {}): Source<StreamMessage> {
      checkPath(path)
      checkOptions('options', options, [...OPTIONS, 'method', 'body', 'onRetry', 'onId'])
      const { signal, method = 'GET', onRetry = () => {}, onId = () => {}, ...rest } = options
      checkOneOf('method', method, ['GET', 'POST'])
      for (const [name, value] of Object.entries({ onRetry, onId }))
        if (typeof value !== 'function') throw new ArgumentError(name, 'a function', value)
      if (method === 'GET' && rest.body !== undefined)
        throw new ArgumentError('body', { message: "a GET has no body; use the method 'POST'" }, undefined)
      const request: ApiRequest = { ...rest, method, path, idempotent: method === 'GET' }
      context.transport.check(request)
      return sourceOf(messagesOf(context, request, { onRetry, onId }), signal)
    },
  }
}

function messagesOf(
  { transport }: Context,
  request: ApiRequest,
  { onRetry, onId }: Required<Pick<UntypedStreamOptions, 'onRetry' | 'onId'>>,
): Observable<StreamMessage> {
  return new Observable((subscriber) => {
    /** An error of a callback errors the stream. */
    const guard = (call: () => void) => {
      try {
        call()
      } catch (thrown) {
        subscriber.error(thrown)
      }
    }
    const flow = transport.stream(request, {
      message: (message) => subscriber.next(message),
      retry: (delay) => guard(() => onRetry(delay)),
      id: (id) => guard(() => onId(id)),
      end: () => subscriber.complete(),
      error: (error) => subscriber.error(error),
    })
    return applyBackpressure(flow, subscriber)
  })
}

function checkPath(path: unknown): void {
  const isValid = typeof path === 'string' && /^\/(?!\/)[^?#\\\s]*$/.test(path)
  if (!isValid || path.split('/').some((segment) => segment === '.' || segment === '..')) {
    throw new ArgumentError(
      'path',
      "a path that begins with one '/', without query (use the query option)",
      path,
    )
  }
}
