import { map } from 'rxjs'
import type { Observable } from 'rxjs'
import { isObject } from '../../protocol/json.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { fromAsync } from './from-async.ts'

/** Sends one request, emits the body of its response and completes. Unsubscribing destroys the socket. */
export function requestBody(context: Context, request: ApiRequest): Observable<unknown> {
  return fromAsync(async (subscriber, signal) => {
    const { body } = await context.transport.request(request, signal)
    subscriber.next(body)
  })
}

/**
 * Like {@link requestBody}, with the body as a wire shape. Checks only the parts that the library reads: that the body is an object and
 * that `lists` are arrays.
 */
export function requestShape<Shape extends object>(
  context: Context,
  request: ApiRequest,
  lists: readonly (keyof Shape & string)[] = [],
): Observable<Shape> {
  return requestBody(context, request).pipe(
    map((body) => {
      if (!isObject(body)) throw new ProtocolError('the response is not an object', request)
      const missing = lists.find((name) => !Array.isArray(body[name]))
      if (missing !== undefined) throw new ProtocolError(`the response has no list ${missing}`, request)
      return body as Shape
    }),
  )
}
