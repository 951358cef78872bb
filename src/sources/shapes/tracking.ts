import type { Observable } from 'rxjs'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { StreamPosition } from '../../protocol/stream-position.ts'

/** Receives the events of a recorded stream, and keeps its position over restarts. */
export interface Tracking {
  /** The stored position of the stream; undefined at its beginning. */
  readonly position: string | undefined
  /** Wakes a stream that polls. */
  readonly wake: Observable<void> | undefined
  /**
   * An event is about to be emitted; the stream is at `position` after it; without one, its position does not change.
   *
   * @param isFirstWalk Whether the stream walks through its past for the first time. Default false.
   */
  entered(event: ResearchEvent, position: StreamPosition | undefined, isFirstWalk?: boolean): void
  /** The error for a {@link position} that cannot be read. It says where the position is stored, and what to do. */
  unreadable(): Error
  /** The service answered a request of the stream. */
  reached(): void
  /** The service cannot be reached; the stream keeps trying. Called for each attempt. */
  lost(error: unknown): void
  /** A poll begins at the newest event. One that was interrupted by a failure is resumed without a call. */
  polling(): void
  /**
   * A poll has emitted all events that the service listed.
   *
   * @param position The new position, if it changed without an event.
   */
  caughtUp(position: StreamPosition | undefined): void
}
