import { catchError, concat, defer, EMPTY, from, map, of, takeWhile, throwError } from 'rxjs'
import type { Observable } from 'rxjs'
import { isRetryable } from '../../protocol/backoff.ts'
import { detached } from '../../protocol/detached.ts'
import { oversizedEvent, runSource } from '../../protocol/event.ts'
import type { EventOf, RunEvent } from '../../protocol/event.ts'
import { parseJson } from '../../protocol/json.ts'
import { runTraceEvent } from '../../protocol/run-trace-event.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'
import { ConnectionError, NotFoundError } from '../../transport/errors.ts'
import type { ApiRequest, StreamMessage } from '../../transport/transport.ts'
import type { Context } from '../context.ts'
import { IncompleteStreamError } from '../shapes/incomplete-stream-error.ts'
import { MAX_MALFORMED, ProtocolErrorLimit } from '../shapes/protocol-error-limit.ts'
import { resumableStream } from '../shapes/resumable-stream.ts'
import type { StreamReader } from '../shapes/resumable-stream.ts'
import { StreamPositionError } from '../shapes/stream-item.ts'
import type { SourceStream, StreamEvent, StreamItem } from '../shapes/stream-item.ts'
import { hasEnded } from './ended.ts'
import { runAt } from './read.ts'
import { isOutput } from './result.ts'
import { SeenTrace } from './seen-trace.ts'

/** Options of {@link runItems}. */
export interface RunItemsOptions {
  /** The saved position. */
  readonly position?: string | undefined
  /** The id of a state that was emitted already. */
  readonly seen?: string | undefined
}

/**
 * The stream of one run's events over any number of connections, until the last state; beyond the interface document. It cannot
 * be resumed: each connection sends the trace from its beginning, and entries that were already emitted are dropped. A run that has ended is
 * not requested again.
 *
 * If the run has ended and its last state is missing, it errors with an {@link IncompleteStreamError} once no new event came for as long as
 * the client's option `patience` allows.
 */
export function runItems(
  context: Context,
  runId: string,
  { position, seen }: RunItemsOptions = {},
): Observable<StreamItem<RunEvent>> {
  return defer(() => {
    const reader = new RunReader(context, runId, seen)
    if (position !== undefined && position !== ENDED.text()) throw new StreamPositionError(reader.stream)
    if (position !== undefined) return from(reader.lastItems())
    const items = resumableStream(context, () => reader).pipe(
      catchError((error: unknown) => (reader.isEndedBy(error) ? EMPTY : throwError(() => error))),
      takeWhile(() => !reader.isDoneReading, true),
    )
    return concat(
      items,
      defer(() => reader.lastItems()),
    )
  })
}

/** The stream of a single run. */
export function runStreamOf(runId: string): SourceStream {
  return { name: `runs/${runId}`, source: runSource(runId) }
}

/** The saved position of a run that has ended. */
const ENDED: StreamPosition = { text: () => 'ended' }

/** The least number of clean closes in a row without a new event before an {@link IncompleteStreamError}. */
const MIN_CLOSES = 3

/** The most states of one run whose ids are remembered. */
const MAX_STATES = 1_000

/** The most distinct progress of one run that is remembered. */
const MAX_STATS = 1_000

/** Reads a run's stream. */
class RunReader implements StreamReader<RunEvent> {
  serverDelay: number | undefined
  readonly stream: SourceStream
  readonly isOver = false
  /** Whether the last state was read, and no other event follows it. */
  isDoneReading = false
  readonly #context: Context
  readonly #runId: string
  readonly #trace = new SeenTrace()
  /** Apart from the trace, since a later connection sends only the current progress. */
  readonly #stats = new SeenTrace(MAX_STATS)
  readonly #states = new Set<string>()
  /** Whether no message of this connection was read. */
  #isAtStart = true
  /** Whether this connection had a new event. */
  #hasNew = false
  /** Connections in a row without a new event that ended at a malformed message. */
  #malformed = 0
  /** The ids of malformed messages that were emitted, which later connections send again. */
  readonly #malformedIds = new Set<string>()
  /** The id of this connection's last progress. */
  #lastStats: string | undefined
  /** Whether the last message was too long to read. It may have been the last state. */
  #isAfterSkipped = false
  /** The end of the run, read as the first message of a connection: the trace and the last state follow it. */
  #held: EventOf<'task_run.state'> | undefined
  /** Whether an earlier connection had it too. */
  #heldBefore = false
  /** When the current bytes arrived. */
  #receivedAt = 0
  /** Set while the run has ended and its last state is missing: since when, and after how many clean closes. */
  #shortfall: { readonly since: number; closes: number } | undefined
  /** Whether the last request was for the run, not for its stream. */
  #isReadingRun = false
  readonly #runErrors = new ProtocolErrorLimit()
  readonly #streamErrors = new ProtocolErrorLimit()

  constructor(context: Context, runId: string, seen: string | undefined) {
    this.#context = context
    this.#runId = runId
    this.stream = runStreamOf(runId)
    if (seen !== undefined) this.#states.add(seen)
  }

  connect(): ApiRequest {
    this.#trace.connect()
    this.#stats.connect()
    this.#isAtStart = true
    this.#isReadingRun = this.#isAfterSkipped = this.#hasNew = false
    this.#heldBefore = this.#held !== undefined
    this.#lastStats = undefined
    return this.#request
  }

  get #request() {
    return { method: 'GET', path: `${this.stream.source}/events`, idempotent: true } as const
  }

  open(): void {
    this.#streamErrors.reset()
  }

  received(): void {
    this.#receivedAt = this.#now
  }

  read({ data }: StreamMessage): StreamEvent<RunEvent> | null | undefined {
    const wire = parseJson(data)
    const content = wire === undefined ? detached(data) : wire
    const event = runTraceEvent(this.#runId, content, 'stream', this.#receivedAt)
    if (wire === undefined && !this.#malformedIds.has(event.id)) {
      this.#malformed += 1
      // The next connection sends the message again.
      if (this.#malformed < MAX_MALFORMED) return undefined
      this.#malformedIds.add(event.id)
    }
    const isFirst = this.#isAtStart
    this.#isAtStart = this.#isAfterSkipped = false
    if (event.type === 'task_run.state') return this.#readState(event, isFirst)
    if (event.type === 'task_run.progress_stats') {
      if (event.id === this.#lastStats) return null
      this.#lastStats = event.id
      return this.#unlessRepeated(event, this.#stats.addCurrent(event.id))
    }
    return this.#readEntry(event)
  }

  #readState(event: EventOf<'task_run.state'>, isFirst: boolean): StreamEvent<RunEvent> | null {
    if (hasEnded(event.data.run)) {
      if (isFirst) {
        this.#held = event
        return null
      }
      this.#held = undefined
      this.isDoneReading = true
      return this.#emitted(event, ENDED)
    }
    if (this.#states.has(event.id)) return null
    this.#states.add(event.id)
    for (const oldest of this.#states) {
      if (this.#states.size <= MAX_STATES) break
      this.#states.delete(oldest)
    }
    return this.#emitted(event, undefined)
  }

  /** Reads an event that a later connection sends again. */
  #readEntry(event: RunEvent): StreamEvent<RunEvent> | null {
    const occurrence = this.#trace.add(event.id)
    // An error has its own id, so an equal one is the same.
    if (event.type === 'error' && occurrence !== 1) return null
    return this.#unlessRepeated(event, occurrence)
  }

  #unlessRepeated(event: RunEvent, occurrence: number | undefined): StreamEvent<RunEvent> | null {
    if (occurrence === undefined) return null
    return this.#emitted(occurrence === 1 ? event : { ...event, id: `${event.id}:${occurrence}` }, undefined)
  }

  skip(limit: number): StreamEvent<RunEvent> | null {
    this.#isAtStart = false
    this.#isAfterSkipped = true
    return this.#readEntry(
      oversizedEvent(this.stream.source, { limit }, 'stream', undefined, this.#receivedAt),
    )
  }

  moveTo(): void {}

  noContent(): void {}

  rewind(): undefined {
    return undefined
  }

  isRetryable(error: unknown): boolean {
    if (error instanceof IncompleteStreamError || this.isEndedBy(error)) return false
    const errors = this.#isReadingRun ? this.#runErrors : this.#streamErrors
    return errors.permitsRetry(error) && isRetryable(error)
  }

  /** Whether the stream is complete, although the service did not close it. */
  isEndedBy(error: unknown): boolean {
    return error instanceof ConnectionError && error.reason === 'silence' && this.#isComplete
  }

  completed(): undefined {
    // The held state comes first.
    return undefined
  }

  /** The items at the end of the stream: the held state, and that there is no more. */
  lastItems(): StreamItem<RunEvent>[] {
    const caughtUp = { kind: 'caughtUp', stream: this.stream } as const
    return this.#held === undefined ? [caughtUp] : [this.#item(this.#held, ENDED), caughtUp]
  }

  /**
   * Whether the held state is the last event. Something may have ended the connection within the trace, so a second one must
   * bring nothing new.
   */
  get #isComplete(): boolean {
    return this.#holdsLast && this.#heldBefore && !this.#hasNew
  }

  /** Whether the held state can be the last one: the last state of a completed run has the output. */
  get #holdsLast(): boolean {
    if (this.#held === undefined) return false
    const { run, output } = this.#held.data
    return run.status !== 'completed' || isOutput(output)
  }

  /**
   * Emits whether the stream is complete. Errors with an {@link IncompleteStreamError} if the run has ended and its last state did not come
   * for as long as the option `patience` allows.
   */
  isDone(): Observable<boolean> {
    if (this.#holdsLast) return of(this.#isComplete)
    this.#isReadingRun = true
    return runAt(this.#context, this.stream.source, this.#runId).pipe(
      map(hasEnded),
      // Some deployments may lack this endpoint. If the run itself was deleted, the stream gets a 404 too.
      catchError((error: unknown) => (error instanceof NotFoundError ? of(true) : throwError(() => error))),
      map((isEnded) => {
        this.#runErrors.reset()
        if (isEnded && this.#isAfterSkipped) return true
        this.#countClose(isEnded)
        return false
      }),
    )
  }

  #countClose(isEnded: boolean): void {
    if (!isEnded) {
      this.#shortfall = undefined
      return
    }
    const { since = this.#now, closes = 0 } = this.#shortfall ?? {}
    const { patience } = this.#context
    // Several closes, since a suspended process may find its time over at the first one.
    if (closes >= MIN_CLOSES && this.#now - since >= patience) throw incompleteRun(this.#request, patience)
    this.#shortfall = { since, closes: closes + 1 }
  }

  get #now(): number {
    return this.#context.scheduler.now()
  }

  #emitted(event: RunEvent, position: StreamPosition | undefined): StreamEvent<RunEvent> {
    this.#hasNew = true
    this.#malformed = 0
    this.#shortfall = undefined
    return this.#item(event, position)
  }

  #item(event: RunEvent, position: StreamPosition | undefined): StreamEvent<RunEvent> {
    return { kind: 'event', stream: this.stream, event, position, isNew: true }
  }
}

function incompleteRun(request: ApiRequest, patience: number): IncompleteStreamError {
  const what = 'the run has ended, its last state is missing'
  const advice = 'read its result with tasks.result'
  return new IncompleteStreamError(request, { missing: 1, expected: 1, what, advice, patience })
}
