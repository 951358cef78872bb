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
import type { PositionedStream, Shortfall } from '../shapes/positioned-reader.ts'
import { resumableStream } from '../shapes/resumable-stream.ts'

/** One of the two streams of a group. */
export interface GroupStream extends Omit<PositionedStream, 'path'> {
  readonly kind: StreamKind
  readonly query: PositionedStream['query'] & {
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
 */
export function groupStream(
  context: Context,
  groupId: string,
  stream: GroupStream & { readonly kind: 'runs' },
): Observable<GroupRunEvent>
export function groupStream(
  context: Context,
  groupId: string,
  stream: GroupStream & { readonly kind: 'events' },
): Observable<GroupEvent>
export function groupStream(context: Context, groupId: string, stream: GroupStream): Observable<GroupEvent> {
  return resumableStream(context, () => new GroupReader(context, groupId, stream, initialPosition(stream)))
}

/** The saved position, else the caller's `last_event_id`. */
function initialPosition({ kind, query, tracking }: GroupStream): GroupPosition {
  if (tracking?.position === undefined) return new GroupPosition(query.last_event_id, query.status, kind)
  const position = GroupPosition.parse(tracking.position, query.status, kind)
  if (position === undefined) throw tracking.unreadable()
  return position
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

  constructor(context: Context, groupId: string, stream: GroupStream, position: GroupPosition) {
    super(context, { ...stream, path: `${groupSource(groupId)}/${stream.kind}` }, position)
    this.#context = context
    this.#groupId = groupId
    this.#kind = stream.kind
  }

  get source(): string {
    return groupSource(this.#groupId)
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
    return unknownEvent(this.source, wire, 'stream', event.cursor, receivedAt)
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
