import { defer, map, of } from 'rxjs'
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
import type { StreamRequest } from '../shapes/positioned-reader.ts'
import type { Shortfall } from '../shapes/resumed-position.ts'
import { resumableStream } from '../shapes/resumable-stream.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import { eventsOf, StreamPositionError } from '../shapes/stream-item.ts'
import type { SourceStream, StreamItem } from '../shapes/stream-item.ts'
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
): Source<FindAllEvent> {
  return sourceOf(eventsOf(findAllItems(context, findAllId, options)), options.signal)
}

/** The stream of a FindAll run. */
export function findAllStreamOf(findAllId: string): SourceStream {
  return { name: `find-alls/${findAllId}`, source: findAllSource(findAllId) }
}

/** The same with the position after each event. Resumes from a saved one; a run that has ended is not requested again. */
export function findAllItems(
  context: Context,
  findAllId: string,
  options: FindAllEventsOptions,
  saved?: string,
): Observable<StreamItem<FindAllEvent>> {
  checkId('findAllId', findAllId)
  checkOptions('options', options, [...namesOf(findAllEventsQuery), 'until', 'signal'])
  checkRequest(findAllEventsQuery, options)
  const { last_event_id, timeout, until } = options
  // 0 would close each stream at once, and so reconnect for ever.
  if (timeout !== undefined) checkInteger('timeout', timeout, 1)
  checkUntil(until)
  const query = { last_event_id: cursorOrStart(last_event_id), timeout }
  return defer(() => {
    const positionOf = () => {
      const position =
        saved === undefined ? new FindAllPosition(query.last_event_id) : FindAllPosition.parse(saved)
      if (position === undefined) throw new StreamPositionError(findAllStreamOf(findAllId))
      return position
    }
    if (until !== 'closed' && positionOf().isDone)
      return of({ kind: 'caughtUp', stream: findAllStreamOf(findAllId) } as const)
    return resumableStream(
      context,
      () => new FindAllReader(context, findAllId, { query, until }, positionOf()),
    )
  })
}

/** Reads the stream of a FindAll run. Repeats are not emitted. */
class FindAllReader extends PositionedReader<FindAllEvent, FindAllRunStatus> {
  readonly #context: Context
  readonly #findAllId: string
  readonly #until: StreamRequest['until']
  readonly #position: FindAllPosition

  constructor(
    context: Context,
    findAllId: string,
    request: Pick<StreamRequest, 'query' | 'until'>,
    position: FindAllPosition,
  ) {
    const stream = findAllStreamOf(findAllId)
    const path = `${stream.source}/events`
    super(context, stream, { ...request, path, betas: [FIND_ALL_BETA] }, position)
    this.#context = context
    this.#findAllId = findAllId
    this.#until = request.until
    this.#position = position
  }

  /** A service that keeps the stream of an ended run open repeats the last status. */
  override get isOver(): boolean {
    return this.#position.isOver && this.#until !== 'closed'
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

  override completed(): StreamItem<FindAllEvent> {
    // A run that has ended is not requested again, also if its last event came before its end was known.
    this.#position.isDone = true
    return { kind: 'caughtUp', stream: this.stream, position: this.#position.snapshot }
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
