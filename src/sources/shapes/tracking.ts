import type { Observable } from 'rxjs'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { Place } from '../../state/progress-log.ts'

/** Keeps the place of one stream over restarts, for `watch` with a checkpoint and for `record`. */
export interface Tracking {
  /** Where the stream stood; undefined at its beginning. */
  readonly position: string | undefined
  /**
   * An event is about to be emitted; the stream stands at `place` once it was handled, or where it stood before.
   *
   * @param isFirstWalk Whether the stream walks through its past for the first time. Default false.
   */
  readonly entered: (event: ResearchEvent, place: Place | undefined, isFirstWalk?: boolean) => void
  /** The error that says that {@link position} cannot be read: where it stands, and what to do. */
  readonly unreadable: () => Error
  /** The service answered a request of the stream. */
  readonly reached?: () => void
  /** The service cannot be reached; the stream goes on trying. Called for each attempt. */
  readonly lost?: (error: unknown) => void
  /** Wakes a stream that polls. */
  readonly wake?: Observable<void>
  /** A poll begins at the newest event. One that was interrupted by a failure is resumed without a call. */
  readonly polling?: () => void
  /**
   * A poll has emitted all that the service listed.
   *
   * @param place The new place, where it changed without an event.
   */
  readonly caughtUp?: (place: Place | undefined) => void
}
