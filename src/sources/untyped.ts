import { Observable } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import type { ApiRequest, StreamMessage } from '../transport/transport.ts'
import type { Context } from './context.ts'
import { gated } from './gated.ts'
import { requestBody } from './request.ts'
import { awaitable, sourceOf } from './source.ts'
import type { AwaitableSource, Source, SourceOptions } from './source.ts'

/** Options of the untyped calls. */
export interface UntypedOptions
  extends SourceOptions, Pick<ApiRequest, 'query' | 'headers' | 'betas' | 'timeouts'> {}

/** `GET path`: the answer's JSON, unchecked, once. */
export function untypedGet(
  context: Context,
  path: string,
  options: UntypedOptions = {},
): AwaitableSource<unknown> {
  checkPath(path)
  const { signal, ...rest } = options
  const request = { ...rest, method: 'GET', path, idempotent: true } as const
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
  options: UntypedOptions & { readonly idempotent?: boolean } = {},
): AwaitableSource<unknown> {
  checkPath(path)
  const { signal, idempotent = false, ...rest } = options
  const request = { ...rest, method: 'POST', path, body, idempotent } as const
  context.transport.check(request)
  return awaitable(requestBody(context, request), signal)
}

/**
 * The messages of any event stream, over one connection: completes at a clean close and fails at a drop. How to resume
 * is the caller's to know; `reconnect` of `rivulet/operators` does the rest.
 */
export function untypedStream(
  context: Context,
  path: string,
  options: UntypedOptions = {},
): Source<StreamMessage> {
  checkPath(path)
  const { signal, ...rest } = options
  const request: ApiRequest = { ...rest, method: 'GET', path, idempotent: true }
  context.transport.check(request)
  const messages = new Observable<StreamMessage>((subscriber) => {
    const flow = context.transport.stream(request, {
      message: (message) => subscriber.next(message),
      retry: () => {},
      end: () => subscriber.complete(),
      error: (error) => subscriber.error(error),
    })
    return gated(flow, subscriber)
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
