import { streamEvents } from '../http/event-stream.ts'
import type { OpenGroupStream } from '../tasks/group-routes.ts'
import { deletable } from './deleted-group.ts'
import { concerns, type Faults } from './faults.ts'
import { openFaultyWriter } from './faulty-event-writer.ts'

/** Opens streams of groups that inject faults. */
export function openFaultyGroupStream(faults: Faults): OpenGroupStream {
  return (outgoing, { path, groupId, position, feedFrom }, options) => {
    const feed = deletable(feedFrom(repeated(faults, path, position)), faults, groupId)
    return streamEvents(outgoing, feed, { ...options, openWriter: openFaultyWriter(faults, path) })
  }
}

/** The fault `repeat-events`: an earlier position. */
export function repeated(faults: Faults, path: string, position: number): number {
  // At the beginning there is nothing to repeat.
  if (position === 0) return position
  const fault = faults.take('repeat-events', (armed) => concerns(armed, path))
  return fault === undefined ? position : Math.max(0, position - (fault.count ?? 1))
}
