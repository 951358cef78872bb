import type { EventOf } from '../../protocol/event.ts'
import type { Entry, Page, Position } from './contract.ts'

/**
 * The page that a reader gets instead of entries that were deleted before it has read them.
 *
 * @param recorded When the last of them was recorded, in Unix ms.
 */
export function gapPage(from: Position, to: Position, recorded: number, isEnd: boolean): Page {
  const entry: Entry<EventOf<'log.gap'>> = {
    id: `gap:${from}:${to}`,
    // The log itself.
    source: '/log',
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
  return { entries: [entry], lengths: [0], position: to, isEnd, gap: entry.data }
}
