import type { MatchedEvent } from './state.ts'

/** Maximum number of events that a key holds. With more, the first one counts at once. */
export const MAX_HELD = 500

/** Inserts an event in order: by time, then source, then id; after its equals. */
export function hold(held: MatchedEvent[], event: MatchedEvent): void {
  let at = held.length
  // Most events come nearly in order.
  while (at > 0) {
    const before = held[at - 1]
    if (before === undefined || compareEvents(before, event) <= 0) break
    at--
  }
  held.splice(at, 0, event)
}

function compareEvents(a: MatchedEvent, b: MatchedEvent): number {
  return a.time - b.time || compare(a.cause[0], b.cause[0]) || compare(a.cause[1], b.cause[1])
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
