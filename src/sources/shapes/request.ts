import { map } from 'rxjs'
import type { Observable } from 'rxjs'
import { isObject } from '../../protocol/event.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { fedBy } from './fed-by.ts'

/** One request as an Observable: its answer's body, once. Unsubscribing destroys the socket. */
export function requestBody(context: Context, request: ApiRequest): Observable<unknown> {
  return fedBy(async (subscriber, signal) => {
    const { body } = await context.transport.request(request, signal)
    subscriber.next(body)
  })
}

/**
 * The same, with the answer taken for a wire shape. What is checked is that it is an object and that `lists` are arrays,
 * since the library reads those; the rest is passed on as the service sent it.
 */
export function requestShape<Shape extends object>(
  context: Context,
  request: ApiRequest,
  lists: readonly (keyof Shape & string)[] = [],
): Observable<Shape> {
  return requestBody(context, request).pipe(
    map((body) => {
      if (!isObject(body)) throw new ProtocolError('the answer is no object', request)
      const missing = lists.find((name) => !Array.isArray(body[name]))
      if (missing !== undefined) throw new ProtocolError(`the answer has no list ${missing}`, request)
      return body as Shape
    }),
  )
}
