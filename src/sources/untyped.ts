import { Observable } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkBoolean, checkOneOf, checkOptions } from '../protocol/check.ts'
import type { ApiRequest, StreamMessage } from '../transport/transport.ts'
import type { Context } from './context.ts'
import { applyBackpressure } from './shapes/backpressure.ts'
import { requestBody } from './shapes/request.ts'
import { awaitable, sourceOf } from './shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from './shapes/source.ts'

/** Options of the untyped calls. */
export interface UntypedOptions
  extends SourceOptions, Pick<ApiRequest, 'query' | 'headers' | 'betas' | 'timeouts'> {}

/** Options of the untyped POST. */
export interface UntypedPostOptions extends UntypedOptions {
  /** Whether the request may be sent again even where the service may have taken it. Default false. */
  readonly idempotent?: boolean
}

/** Options of the untyped stream. What it calls is called between two messages, in the order of the stream. */
export interface UntypedStreamOptions extends UntypedOptions {
  /** Default `GET`. */
  readonly method?: 'GET' | 'POST'
  /** Sent as JSON with a POST. Default: no body. */
  readonly body?: unknown
  /** Called with the server's `retry:`: how long to wait before the next connection, in ms. */
  readonly onRetry?: (delay: number) => void
  /** Called with an `id:` that came without data: the position moves, and no message comes with it. */
  readonly onId?: (id: string) => void
}

const OPTIONS = ['signal', 'query', 'headers', 'betas', 'timeouts']

/** `GET path`: the answer's JSON, unchecked, once. */
export function untypedGet(
  context: Context,
  path: string,
  options: UntypedOptions = {},
): AwaitableSource<unknown> {
  checkPath(path)
  checkOptions('options', options, OPTIONS)
  const { signal, ...rest } = options
  const request = { ...rest, method: 'GET', path, idempotent: true, mayBeEmpty: true } as const
  context.transport.check(request)
  return awaitable(requestBody(context, request), signal)
}

/**
 * `POST path` with a JSON body: the answer's JSON, unchecked, once. It is sent again only where the service cannot have
 * taken it, unless `idempotent` says that twice does no harm.
 */
export function untypedPost(
  context: Context,
  path: string,
  body?: unknown,
  options: UntypedPostOptions = {},
): AwaitableSource<unknown> {
  checkPath(path)
  checkOptions('options', options, [...OPTIONS, 'idempotent'])
  const { signal, idempotent = false, ...rest } = options
  checkBoolean('idempotent', idempotent)
  const request = { ...rest, method: 'POST', path, body, idempotent, mayBeEmpty: true } as const
  context.transport.check(request)
  return awaitable(requestBody(context, request), signal)
}

/**
 * The messages of any event stream, over one connection: completes at a clean close or a 204, and fails at a drop and at a
 * message longer than `maxEventLength`. How to
 * resume is the caller's to know; `reconnect` of `rivulet/operators` does the rest:
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
export function untypedStream(
  context: Context,
  path: string,
  options: UntypedStreamOptions = {},
): Source<StreamMessage> {
  checkPath(path)
  checkOptions('options', options, [...OPTIONS, 'method', 'body', 'onRetry', 'onId'])
  const { signal, method = 'GET', onRetry = () => {}, onId = () => {}, ...rest } = options
  checkOneOf('method', method, ['GET', 'POST'])
  for (const [name, value] of Object.entries({ onRetry, onId }))
    if (typeof value !== 'function') throw new ArgumentError(name, 'a function', value)
  if (method === 'GET' && rest.body !== undefined)
    throw new ArgumentError('body', { message: "a GET has no body; the method 'POST' has" }, undefined)
  const request: ApiRequest = { ...rest, method, path, idempotent: method === 'GET' }
  context.transport.check(request)
  const messages = new Observable<StreamMessage>((subscriber) => {
    /** What the caller's function throws ends the stream. */
    const calling = (call: () => void) => {
      try {
        call()
      } catch (thrown) {
        subscriber.error(thrown)
      }
    }
    const flow = context.transport.stream(request, {
      message: (message) => subscriber.next(message),
      retry: (delay) => calling(() => onRetry(delay)),
      id: (id) => calling(() => onId(id)),
      end: () => subscriber.complete(),
      error: (error) => subscriber.error(error),
    })
    return applyBackpressure(flow, subscriber)
  })
  return sourceOf(messages, signal)
}

function checkPath(path: unknown): void {
  const fits = typeof path === 'string' && /^\/(?!\/)[^?#\\\s]*$/.test(path)
  if (!fits || path.split('/').some((segment) => segment === '.' || segment === '..')) {
    throw new ArgumentError(
      'path',
      "a path that begins with one '/', without query (use the query option)",
      path,
    )
  }
}
