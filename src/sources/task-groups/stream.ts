import { map } from 'rxjs'
import type { Observable } from 'rxjs'
import { groupEvent, groupSource, unknownEvent } from '../../protocol/event.ts'
import type { GroupEvent, GroupRunEvent } from '../../protocol/event.ts'
import type { TaskGroupStatus } from '../../protocol/task-group.ts'
import type { RunStatus } from '../../protocol/task.ts'
import { NotFoundError } from '../../transport/errors.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { ApiRequest } from '../../transport/transport.ts'
import type { Context, GroupRunsPath } from '../context.ts'
import { GroupPosition } from './position.ts'
import type { StreamKind } from './position.ts'
import { taskGroup } from './read.ts'
import { IncompleteStreamError } from '../shapes/incomplete-stream-error.ts'
import { PositionedReader } from '../shapes/positioned-reader.ts'
import type { StreamRequest } from '../shapes/positioned-reader.ts'
import type { Shortfall } from '../shapes/resumed-position.ts'
import { resumableStream } from '../shapes/resumable-stream.ts'
import { StreamPositionError } from '../shapes/stream-item.ts'
import type { SourceStream, StreamItem } from '../shapes/stream-item.ts'

/** One of the two streams of a group. */
export function groupStreamOf(groupId: string, kind: StreamKind): SourceStream {
  return { name: `groups/${groupId}/${kind}`, source: groupSource(groupId) }
}

interface GroupStream<Kind extends StreamKind = StreamKind> {
  readonly groupId: string
  readonly kind: Kind
}

/** The request of {@link groupItems}. */
interface GroupRequest extends Omit<StreamRequest, 'path'> {
  readonly query: StreamRequest['query'] & {
    readonly last_event_id?: string | undefined
    readonly status?: RunStatus | undefined
  }
}

/**
 * A group's stream, resumed until the group is done (§4.4, §4.5).
 *
 * If the group is done and events are missing, it errors with an {@link IncompleteStreamError} after the client's `patience`
 * without a new event. If the service rejects a position that it sent, the stream emits `stream.gap` and restarts from the
 * beginning: earlier events are emitted again.
 *
 * @param position The saved position. Default: the request's `last_event_id`.
 */
export function groupItems(
  context: Context,
  stream: GroupStream<'runs'>,
  request: GroupRequest,
  position?: string,
): Observable<StreamItem<GroupRunEvent>>
export function groupItems(
  context: Context,
  stream: GroupStream<'events'>,
  request: GroupRequest,
  position?: string,
): Observable<StreamItem<GroupEvent>>
export function groupItems(
  context: Context,
  stream: GroupStream,
  request: GroupRequest,
  saved?: string,
): Observable<StreamItem<GroupEvent>> {
  const { groupId, kind } = stream
  const { last_event_id, status } = request.query
  return resumableStream(context, () => {
    const position =
      saved === undefined
        ? new GroupPosition(last_event_id, status, kind)
        : GroupPosition.parse(saved, status, kind)
    if (position === undefined) throw new StreamPositionError(groupStreamOf(groupId, kind))
    return new GroupReader(context, stream, request, position)
  })
}

/** Reads a group's stream. */
class GroupReader extends PositionedReader<GroupEvent, TaskGroupStatus> {
  readonly #context: Context
  readonly #groupId: string
  readonly #kind: StreamKind
  /** The prefix of the path of this connection. */
  #prefix: GroupRunsPath['prefix'] = '/v1'
  /** Whether this connection tries the other prefix, after a 404. */
  #triesOther = false

  constructor(
    context: Context,
    { groupId, kind }: GroupStream,
    request: GroupRequest,
    position: GroupPosition,
  ) {
    const stream = groupStreamOf(groupId, kind)
    super(context, stream, { ...request, path: `${stream.source}/${kind}` }, position)
    this.#context = context
    this.#groupId = groupId
    this.#kind = kind
  }

  override connect(): ApiRequest {
    const request = super.connect()
    if (this.#kind === 'events') return request
    if (!this.#triesOther) this.#prefix = this.#context.groupRuns.prefix
    return this.#prefixed(request)
  }

  #prefixed<Request extends RequestLine>(request: Request): Request {
    return { ...request, path: request.path.replace('/v1', this.#prefix) }
  }

  override open(): void {
    super.open()
    this.#triesOther = false
    if (this.#kind === 'runs') this.#context.groupRuns.prefix = this.#prefix
  }

  override isRetryable(error: unknown): boolean {
    // A group that does not exist has a 404 at both.
    if (error instanceof NotFoundError && this.#kind === 'runs' && !this.#triesOther) {
      this.#triesOther = true
      this.#prefix = this.#prefix === '/v1' ? '/v1beta' : '/v1'
      return true
    }
    return super.isRetryable(error)
  }

  protected eventOf(wire: unknown, id: string | undefined, receivedAt: number): GroupEvent {
    const event = groupEvent(this.#groupId, wire, 'stream', id, receivedAt)
    // The runs stream has no statuses (§4.5).
    if (this.#kind === 'events' || event.type !== 'task_group.status') return event
    return unknownEvent(this.stream.source, wire, 'stream', event.cursor, receivedAt)
  }

  protected readState(): Observable<TaskGroupStatus | undefined> {
    return taskGroup(this.#context, this.#groupId).pipe(map(({ status }) => status))
  }

  protected incomplete(request: RequestLine, shortfall: Shortfall, patience: number): IncompleteStreamError {
    const { missing, expected } = shortfall
    const what =
      missing === 0
        ? `the last status of a group of ${expected} ended runs is missing`
        : `${missing} of ${expected} ended runs are missing`
    const advice =
      'subscribe again, without last_event_id if the same are missing, or read a single run with tasks.result'
    return new IncompleteStreamError(this.#prefixed(request), { missing, expected, what, advice, patience })
  }
}
