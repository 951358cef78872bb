import { defer, EMPTY, map } from 'rxjs'
import type { Observable } from 'rxjs'
import { FIND_ALL_BETA } from '../../protocol/betas.ts'
import { checkId, checkInteger, checkOptions } from '../../protocol/check.ts'
import type { FindAllEvent } from '../../protocol/event.ts'
import { findAllEvent, findAllSource } from '../../protocol/find-all-event.ts'
import type { FindAllEventsQuery, FindAllRunStatus } from '../../protocol/find-all.ts'
import { checkRequest, namesOf } from '../../protocol/requests/check.ts'
import { findAllEventsQuery } from '../../protocol/requests/find-all.ts'
import type { RequestLine } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { IncompleteStreamError } from '../shapes/incomplete-stream-error.ts'
import { PositionedReader } from '../shapes/positioned-reader.ts'
import type { PositionedStream, Shortfall } from '../shapes/positioned-reader.ts'
import { resumableStream } from '../shapes/resumable-stream.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import type { Tracking } from '../shapes/tracking.ts'
import { checkUntil, cursorOrStart } from '../task-groups/events.ts'
import { FindAllPosition } from './position.ts'
import { getFindAll } from './requests.ts'

/** Options of `findAll.events`: the query, and when to complete. */
export interface FindAllEventsOptions extends FindAllEventsQuery, SourceOptions {
  /**
   * When to complete. `done`: when the run is not active and every event was emitted. `closed`: never, since a run that has ended can be
   * extended. Default `done`.
   */
  readonly until?: 'done' | 'closed'
}

/**
 * Emits the events of a FindAll run, each once. Reconnects after failures and resumes after the last event. Completes when the
 * run is not active and every event was emitted; errors with an `IncompleteStreamError` if the service does not send some.
 * Beyond the interface document.
 */
export function findAllEvents(
  context: Context,
  findAllId: string,
  options: FindAllEventsOptions = {},
  tracking?: Tracking,
): Source<FindAllEvent> {
  checkId('findAllId', findAllId)
  checkOptions('options', options, [...namesOf(findAllEventsQuery), 'until', 'signal'])
  checkRequest(findAllEventsQuery, options)
  const { signal, last_event_id, timeout, until } = options
  // 0 would close each stream at once, and so reconnect for ever.
  if (timeout !== undefined) checkInteger('timeout', timeout, 1)
  checkUntil(until)
  const query = { last_event_id: cursorOrStart(last_event_id), timeout }
  const path = `${findAllSource(findAllId)}/events`
  const stream = { path, query, betas: [FIND_ALL_BETA], until, tracking }
  return sourceOf(findAllStream(context, findAllId, stream), signal)
}

function findAllStream(context: Context, findAllId: string, stream: FindAllStream): Observable<FindAllEvent> {
  return defer(() => {
    // A recorded run that has ended is not requested again.
    if (stream.until !== 'closed' && initialPosition(stream).isDone) return EMPTY
    return resumableStream(
      context,
      () => new FindAllReader(context, findAllId, stream, initialPosition(stream)),
    )
  })
}

interface FindAllStream extends PositionedStream {
  readonly query: { readonly last_event_id: string | undefined; readonly timeout: number | undefined }
}

/** The saved position, else the caller's `last_event_id`. */
function initialPosition({ query, tracking }: FindAllStream): FindAllPosition {
  if (tracking?.position === undefined) return new FindAllPosition(query.last_event_id)
  const position = FindAllPosition.parse(tracking.position)
  if (position === undefined) throw tracking.unreadable()
  return position
}

/** Reads the stream of a FindAll run. Repeats are not emitted. */
class FindAllReader extends PositionedReader<FindAllEvent, FindAllRunStatus> {
  readonly #context: Context
  readonly #findAllId: string
  readonly #stream: FindAllStream
  readonly #position: FindAllPosition

  constructor(context: Context, findAllId: string, stream: FindAllStream, position: FindAllPosition) {
    super(context, stream, position)
    this.#context = context
    this.#findAllId = findAllId
    this.#stream = stream
    this.#position = position
  }

  get source(): string {
    return findAllSource(this.#findAllId)
  }

  /** A service that keeps the stream of an ended run open repeats the last status. */
  override get isOver(): boolean {
    return this.#position.isOver && this.#stream.until !== 'closed'
  }

  protected eventOf(wire: unknown, id: string | undefined, receivedAt: number): FindAllEvent {
    return findAllEvent(this.#findAllId, wire, 'stream', id, receivedAt)
  }

  protected override emits(_event: FindAllEvent, isNew: boolean): boolean {
    return isNew
  }

  protected readState(): Observable<FindAllRunStatus | undefined> {
    return getFindAll(this.#context, this.#findAllId).pipe(map(({ status }) => status))
  }

  protected override completed(): void {
    this.#position.isDone = true
    this.#stream.tracking?.caughtUp(this.#position.snapshot)
  }

  protected incomplete(
    request: RequestLine,
    { missing, expected }: Shortfall,
    patience: number,
  ): IncompleteStreamError {
    const what =
      missing === 0
        ? 'the last status of a run that is over is missing'
        : `${missing} of ${expected} candidates are missing`
    const advice =
      'subscribe again, without last_event_id if the same are missing, or read them with findAll.result'
    return new IncompleteStreamError(request, { missing, expected, what, advice, patience })
  }
}
