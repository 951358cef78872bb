import { catchError, map, Observable, of, throwError } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { detached } from '../protocol/detached.ts'
import { gapEvent, groupEvent, groupSource, isObject } from '../protocol/event.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import type { RunStatus } from '../protocol/task.ts'
import { NotFoundError, ProtocolError, ValidationError } from '../transport/errors.ts'
import type { RivuletError } from '../transport/errors.ts'
import type { Flow } from '../transport/exchange.ts'
import { MAX_RETRY_AFTER } from '../transport/retry-policy.ts'
import type { ApiRequest, MessageSink, StreamMessage } from '../transport/transport.ts'
import type { Context } from './context.ts'
import { gated } from './gated.ts'
import { GroupPosition } from './group-position.ts'
import type { StreamEnd } from './group-position.ts'
import { persisting } from './persisting.ts'
import { getTaskGroup } from './task-groups.ts'
import type { Tracking } from './tracking.ts'

/** One of a group's two streams. */
export interface GroupStream {
  readonly tells: StreamEnd
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
  return new Observable((subscriber) => {
    const reader = new GroupReader(context, groupId, stream, positionOf(stream))
    const connections = new Observable<ResearchEvent>((connection) => reader.connect(connection))
    const resumption = { done: () => reader.isDone(subscriber), serverDelay: () => reader.serverDelay }
    return connections.pipe(persisting(context, reader.source, resumption)).subscribe(subscriber)
  })
}

/** Where the stream goes on: at the position that was kept, else where it was asked to. */
function positionOf({ tells, query, tracking }: GroupStream): GroupPosition {
  if (tracking?.position === undefined) return new GroupPosition(query.last_event_id, query.status, tells)
  const position = GroupPosition.parse(tracking.position, query.status, tells)
  if (position === undefined) throw tracking.unreadable()
  return position
}

/** One subscription to a group's stream, over all of its connections. Keeps the position as it goes. */
class GroupReader {
  readonly source: string
  /** The latest `retry:` of the server, in ms. */
  serverDelay: number | undefined
  readonly #context: Context
  readonly #groupId: string
  readonly #stream: GroupStream
  readonly #position: GroupPosition

  constructor(context: Context, groupId: string, stream: GroupStream, position: GroupPosition) {
    this.source = groupSource(groupId)
    this.#context = context
    this.#groupId = groupId
    this.#stream = stream
    this.#position = position
  }

  /** Opens a connection from the position. Returns what destroys it. */
  connect(subscriber: Subscriber<ResearchEvent>): () => void {
    const { path, query } = this.#stream
    this.#position.opened()
    const request = {
      method: 'GET',
      path,
      query: { ...query, last_event_id: this.#position.cursor },
      idempotent: true,
      // The service may be silent for as long as it was asked to bear.
      ...(typeof query.timeout === 'number' && {
        timeouts: { silence: Math.max(query.timeout * 1_000 + 5_000, 60_000) },
      }),
    } as const
    const connection = new GroupConnection(this, request, subscriber)
    connection.flow = this.#context.transport.stream(request, connection)
    return gated(connection.flow, subscriber)
  }

  /** The event of a message; undefined where the message was cut short, and may come whole another time. */
  read({ id, data }: StreamMessage): ResearchEvent | undefined {
    const wire = parsed(data)
    if (wire === undefined && id !== undefined && this.#position.mayBeBroken()) return undefined
    const event = groupEvent(
      this.#groupId,
      wire === undefined ? detached(data) : wire,
      'stream',
      id,
      this.#now,
    )
    this.#position.advance(event)
    return this.#told(event)
  }

  /** Goes back to the beginning where the service refuses a position that it gave out; the event that says so. */
  rewind(): ResearchEvent | undefined {
    const lost = this.#position.cursor ?? ''
    if (!this.#position.rewind()) return undefined
    return this.#gap('the service no longer knows the position, the stream begins again', lost)
  }

  /** Whether all was told that there is, after a clean close; tells the subscriber where the service left something out. */
  isDone(subscriber: Subscriber<ResearchEvent>): Observable<boolean> {
    return getTaskGroup(this.#context, this.#groupId).pipe(
      map(({ status }) => (isObject(status) ? status : undefined)),
      // Not every deployment has this endpoint; and where it is the group that is gone, the stream will say so.
      catchError((error: unknown) =>
        error instanceof NotFoundError ? of(undefined) : throwError(() => error),
      ),
      map((status) => {
        const verdict = this.#position.verdict(status)
        if (verdict === 'incomplete') {
          const reason = 'the group is done, and its stream ended before all of it was told'
          subscriber.next(this.#gap(reason, this.#position.cursor ?? ''))
        }
        return verdict !== 'go on'
      }),
    )
  }

  #gap(reason: string, place: string): ResearchEvent {
    const gap = { from: null, to: null, reason }
    return this.#told(gapEvent(this.source, gap, 'stream', `${this.#stream.path} ${place}`, this.#now))
  }

  get #now(): number {
    return this.#context.scheduler.now()
  }

  #told(event: ResearchEvent): ResearchEvent {
    this.#stream.tracking?.entered(event, this.#position.place)
    return event
  }
}

/** One connection. */
class GroupConnection implements MessageSink {
  flow: Flow | undefined
  readonly #reader: GroupReader
  readonly #request: ApiRequest
  readonly #subscriber: Subscriber<ResearchEvent>

  constructor(reader: GroupReader, request: ApiRequest, subscriber: Subscriber<ResearchEvent>) {
    this.#reader = reader
    this.#request = request
    this.#subscriber = subscriber
  }

  message(message: StreamMessage): void {
    // A keep-alive in the shape of a message.
    if (message.data === '') return
    const event = this.#reader.read(message)
    if (event !== undefined) return this.#subscriber.next(event)
    this.flow?.abort()
    this.error(new ProtocolError('an event is not JSON', this.#request))
  }

  retry(delay: number): void {
    this.#reader.serverDelay = Math.min(delay, MAX_RETRY_AFTER)
  }

  end(): void {
    this.#subscriber.complete()
  }

  error(error: RivuletError): void {
    const gap = error instanceof ValidationError ? this.#reader.rewind() : undefined
    if (gap === undefined) return this.#subscriber.error(error)
    this.#subscriber.next(gap)
    if (!this.#subscriber.closed) this.#subscriber.add(this.#reader.connect(this.#subscriber))
  }
}

/** Undefined for what is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
