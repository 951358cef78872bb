import type { ResearchEvent } from '../../protocol/event.ts'
import type { Place } from '../../state/progress-log.ts'

/** Keeps the place of one stream over restarts: what `watch` makes of a checkpoint. */
export interface Tracking {
  /** Where the stream stood; undefined at its beginning. */
  readonly position: string | undefined
  /** An event is about to be told; the stream stands at `place` once it was handled, or where it stood before. */
  readonly entered: (event: ResearchEvent, place: Place | undefined) => void
  /** The error that says that {@link position} cannot be read: where it stands, and what to do. */
  readonly unreadable: () => Error
}
