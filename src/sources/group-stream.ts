import { catchError, concat, defer, EMPTY, map, Observable, of, throwError } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { gapEvent, groupEvent, groupSource } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { RunStatus } from '../protocol/task.ts'
import { NotFoundError, ProtocolError, ValidationError } from '../transport/errors.ts'
import type { ApiRequest } from '../transport/transport.ts'
import type { Context } from './context.ts'
import { gated } from './gated.ts'
import { GroupPosition } from './group-position.ts'
import { persisting } from './persisting.ts'
import { getTaskGroup } from './task-groups.ts'
import type { Tracking } from './tracking.ts'

/** One of a group's two streams. */
export interface GroupStream {
  readonly path: string
  readonly query: ApiRequest['query'] & {
    readonly last_event_id?: string | undefined
    readonly status?: RunStatus | undefined
  }
  readonly tracking?: Tracking | undefined
}

/**
 * A group's stream, resumed by itself until the group is done (§4.4, §4.5). Where the service stops short of what the
 * group has to tell, a `stream.gap` says so before the end. Where it no longer knows a position that it gave out, one says
 * that the stream begins again: what it told before comes again.
 */
export function groupStream(
  context: Context,
  groupId: string,
  stream: GroupStream,
): Observable<ResearchEvent> {
  const { path, query, tracking } = stream
  const source = groupSource(groupId)
  return defer(() => {
    const position = positionOf(stream)
    let incomplete = false
    let serverDelay: number | undefined
    const tell = (event: ResearchEvent) => {
      tracking?.entered(event, position.toString())
      return event
    }

    const connection = defer(() => {
      position.opened()
      const request = {
        method: 'GET',
        path,
        query: { ...query, last_event_id: position.cursor },
        idempotent: true,
        // The service may be silent for as long as it was asked to bear.
        ...(typeof query.timeout === 'number' && {
          timeouts: { silence: Math.max(query.timeout * 1_000 + 5_000, 60_000) },
        }),
      } as const
      return connect(context, groupId, request, position, tell, (delay) => {
        serverDelay = delay
      })
    })
    const done = () => {
      return getTaskGroup(context, groupId).pipe(
        map(({ status }) => status),
        // Not every deployment has this endpoint; and where it is the group that is gone, the stream will say so.
        catchError((error: unknown) =>
          error instanceof NotFoundError ? of(undefined) : throwError(() => error),
        ),
        map((status) => {
          const verdict = position.verdict(status)
          incomplete = verdict === 'incomplete'
          return verdict !== 'go on'
        }),
      )
    }
    const gap = (reason: string, place: string) =>
      tell(gapEvent(source, { from: null, to: null, reason }, 'stream', `${path} ${place}`))
    const refused = () => {
      const lost = position.cursor ?? ''
      if (!position.rewind()) return undefined
      return gap('the service no longer knows the position, the stream begins again', lost)
    }
    const resumed = connection.pipe(
      beginAgain(refused),
      persisting(context, source, { done, serverDelay: () => serverDelay }),
    )
    const unfinished = defer(() =>
      incomplete
        ? of(gap('the group is done, and its stream ended before all of it was told', position.cursor ?? ''))
        : EMPTY,
    )
    return concat(resumed, unfinished)
  })
}

/** Where the stream goes on: at the position that was kept, else where it was asked to. */
function positionOf({ query, tracking }: GroupStream): GroupPosition {
  if (tracking?.position === undefined) return new GroupPosition(query.last_event_id, query.status)
  const position = GroupPosition.parse(tracking.position, query.status)
  if (position === undefined) throw tracking.unreadable()
  return position
}

/** One connection. Keeps the position as it goes. */
function connect(
  context: Context,
  groupId: string,
  request: ApiRequest,
  position: GroupPosition,
  tell: (event: ResearchEvent) => ResearchEvent,
  onRetry: (delay: number) => void,
): Observable<ResearchEvent> {
  return new Observable((subscriber) => {
    const flow = context.transport.stream(request, {
      message({ id, data }) {
        // A keep-alive in the shape of a message.
        if (data === '') return
        let wire: unknown
        try {
          wire = JSON.parse(data)
        } catch (cause) {
          if (id !== undefined && position.mayBeBroken()) {
            flow.abort()
            subscriber.error(new ProtocolError('an event is not JSON', request, { cause }))
            return
          }
          wire = data
        }
        const event = groupEvent(groupId, wire, 'stream', id)
        position.advance(event)
        subscriber.next(tell(event))
      },
      retry: onRetry,
      end: () => subscriber.complete(),
      error: (error) => subscriber.error(error),
    })
    return gated(flow, subscriber)
  })
}

/** Subscribes once more when the service refuses the position; the event that says so comes before. */
function beginAgain(onRefused: () => ResearchEvent | undefined): MonoTypeOperatorFunction<ResearchEvent> {
  return (connection) =>
    connection.pipe(
      catchError((error: unknown) => {
        const gap = error instanceof ValidationError ? onRefused() : undefined
        return gap === undefined ? throwError(() => error) : concat(of(gap), connection)
      }),
    )
}
