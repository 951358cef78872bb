import { defer, map, Observable, of } from 'rxjs'
import { reconnect } from '../../operators/reconnect.ts'
import { groupEvent, groupSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { ProtocolError } from '../transport/errors.ts'
import type { ApiRequest } from '../transport/transport.ts'
import type { Context } from './context.ts'
import { gated } from './gated.ts'
import { getTaskGroup } from './task-groups.ts'

/** Where a group's stream stands, kept over its connections. */
interface Position {
  /** The last event that the subscriber got, or what the stream was opened with. */
  lastEventId: string | undefined
  /** Whether the stream's last status said that no run is active. */
  ended: boolean
  /** Whether a look at the group, before this connection was opened, found no run active. */
  idle: boolean
  /** Whether this connection has brought an event. */
  moved: boolean
  /** The server's `retry:`, in ms. */
  retry: number | undefined
}

/**
 * One of a group's two streams, resumed by itself until the group is done (§4.4, §4.5).
 *
 * A clean close alone does not say that the group is done: the service closes after an hour too, and events may have
 * come up since. It is done when the stream's last word was that no run is active, or when a connection opened after the
 * group was seen inactive brings nothing more.
 */
export function groupStream(
  context: Context,
  groupId: string,
  path: string,
  query: ApiRequest['query'] & { readonly last_event_id?: string | undefined },
): Observable<ResearchEvent> {
  return defer(() => {
    const position: Position = {
      lastEventId: query.last_event_id,
      ended: false,
      idle: false,
      moved: false,
      retry: undefined,
    }
    const connection = defer(() => {
      position.moved = false
      const request = {
        method: 'GET',
        path,
        query: { ...query, last_event_id: position.lastEventId },
        idempotent: true,
      } as const
      return connect(context, groupId, request, position)
    })
    const done = () => {
      if (position.ended || (position.idle && !position.moved)) return of(true)
      return getTaskGroup(context, groupId).pipe(
        map(({ status }) => {
          position.idle = !status.is_active
          return false
        }),
      )
    }
    return connection.pipe(
      reconnect({
        ...context.backoff,
        scheduler: context.scheduler,
        random: context.random,
        done,
        serverDelay: () => position.retry,
        onReconnect: (info) => context.report({ kind: 'reconnect', source: groupSource(groupId), ...info }),
      }),
    )
  })
}

/** One connection. Keeps the position as it goes. */
function connect(
  context: Context,
  groupId: string,
  request: ApiRequest,
  position: Position,
): Observable<ResearchEvent> {
  return new Observable((subscriber) => {
    const flow = context.transport.stream(request, {
      message({ id, data }) {
        let wire: unknown
        try {
          wire = JSON.parse(data)
        } catch (cause) {
          flow.abort()
          subscriber.error(new ProtocolError('an event is not JSON', request, { cause }))
          return
        }
        const event = groupEvent(groupId, wire, 'stream', id)
        position.moved = true
        if (event.type === 'task_group.status') position.ended = !event.data.status.is_active
        if (event.cursor !== undefined) position.lastEventId = event.cursor
        subscriber.next(event)
      },
      retry(delay) {
        position.retry = delay
      },
      end: () => subscriber.complete(),
      error: (error) => subscriber.error(error),
    })
    return gated(flow)
  })
}
