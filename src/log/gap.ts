import type { EventOf } from '../protocol/event.ts'
import type { Entry, Position } from './store/contract.ts'

/** The source of the events of the log itself. */
const LOG_SOURCE = '/log'

/**
 * The entry that a reader gets instead of entries that were deleted before it has read them.
 *
 * @param recorded When the last of them was recorded, in Unix ms.
 */
export function gapEntry(from: Position, to: Position, recorded: number): Entry<EventOf<'log.gap'>> {
  return {
    id: `gap:${from}:${to}`,
    source: LOG_SOURCE,
    type: 'log.gap',
    time: null,
    data: { from, to },
    received: new Date(recorded).toISOString(),
    via: 'log',
    position: to,
    recorded,
    revision: 1,
    backfill: false,
  }
}
