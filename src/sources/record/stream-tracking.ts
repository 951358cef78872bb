import { LogError } from '../../log/errors.ts'
import type { RecordedStream } from '../../log/record/recorder.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { Tracking } from '../shapes/tracking.ts'
import type { FollowedMonitor } from './followed-monitor.ts'
import type { Reachability } from './reachability.ts'

/** Receives the events and positions of a recorded stream. */
export interface TrackedStream {
  readonly stream: RecordedStream
  readonly reachability: Reachability
  /** When the recording began, in Unix ms. */
  readonly startedAt: number
  /** Events that another stream has as well. */
  readonly ignores: (event: ResearchEvent) => boolean
  /** The monitor that is polled here, if webhooks are recorded. */
  readonly monitor: FollowedMonitor | undefined
  /** Called after an event was passed to the recorder. */
  readonly onEvent: (event: ResearchEvent) => void
}

/** Passes the events and positions of a stream to the recorder. */
export function streamTracking(tracked: TrackedStream): Tracking {
  const { stream, reachability, startedAt, ignores, monitor, onEvent } = tracked
  const isNew = stream.position === undefined
  return {
    position: stream.position,
    entered(event, position, isFirstWalk = isNew && isBefore(event, startedAt)) {
      if (ignores(event)) return
      stream.add(event, position, isFirstWalk)
      onEvent(event)
    },
    unreadable: () =>
      new LogError(
        `the position of the stream ${stream.name} in the log cannot be read; it was left as it is`,
      ),
    reached: () => reachability.reached(stream),
    lost: (error) => reachability.lost(stream, error),
    wake: monitor?.wake,
    polling: () => monitor?.polling(),
    caughtUp(position) {
      if (position !== undefined) stream.move(position)
      monitor?.caughtUp()
    },
  }
}

/** Whether the event happened before this time, in Unix ms. */
function isBefore({ time }: ResearchEvent, at: number): boolean {
  return time !== null && Date.parse(time) < at
}
