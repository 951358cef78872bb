import type { Json } from '../../../protocol/json.ts'
import type { Expression } from '../../cel/expression.ts'
import type { Contribution, MatchedEvent, WindowMatch, WindowState } from '../state.ts'

/**
 * A kind of window with its settings. It keeps nothing itself: its state, at first one without times, is passed in and changed in place. Times are Unix ms and
 * never decrease for one state.
 */
export interface WindowKind {
  /** Takes an event that matches. Returns whether it is a pulse, or the value of the pulse if it has one. */
  apply(
    state: WindowState,
    time: number,
    match: WindowMatch,
    event: MatchedEvent,
  ): boolean | { readonly value: string }
  /** When something changes after `now` without an event; undefined for never. Changes up to `now` are done. */
  deadline(state: WindowState, now: number): number | undefined
  /** Performs the actions that are due at this time. Returns whether it is a pulse. */
  at(state: WindowState, time: number): boolean
  /** Whether its condition holds. Without this method, the condition holds from a pulse until something resolves it. */
  holds?(state: WindowState, time: number): boolean
  /** The value that the window measures. Default: it measures nothing. */
  value?(state: WindowState, time: number): number | null
  /** Whether no event that counts at this time was dropped. Default: it does not matter. */
  isComplete?(state: WindowState, time: number): boolean
  /** Resets the state after a resolving event. Default: known values stay known. */
  reset?(state: WindowState): void
  /** Whether the state has no content. Default: it has no times. */
  isEmpty?(state: WindowState): boolean
  /** Gives up what would be a pulse if some event does not come. Returns whether there was such a thing. */
  giveUp?(state: WindowState): boolean
  /** Takes the events of the pulse, if it has more of them than the last one. */
  takePulse?(state: WindowState): Contribution | undefined
}

/** Evaluates the expressions of a window for an event. */
export interface Reading {
  /** Whether a condition holds. */
  holds(condition: Expression): boolean
  /** Undefined if the expression has no value. */
  valueOf(expression: Expression): Json | undefined
  /** Undefined if the expression has no value, or one that is no number. */
  numberOf(expression: Expression): number | undefined
}

/** A kind of window in the table of all of them. */
export interface WindowType<Settings> {
  /** Undefined for a window that is evaluated elsewhere. `rule` is the name of its rule, for errors. */
  create(settings: Settings, rule: string): WindowKind | undefined
  /** What an event for which `when` holds means for the window; null for nothing. Default: it counts. */
  match?(settings: Settings, reading: Reading): WindowMatch | null
  /** The number of events or values that the window needs, if it is a setting. */
  needed?(settings: Settings): number
}

/** The number of events that a window has room for, at least. */
const ROOM = 1_000

/** The number of events and values that a rule may ask for in one window. */
export const MAX_NEEDED = 5_000

/** How many events or values a window has room for that needs so many. */
export function roomFor(needed: number): number {
  return Math.max(Math.min(needed, MAX_NEEDED), ROOM)
}

/** Adds a value at its last time, so that the values that leave first are first. Returns whether the window had it. */
export function addValue(state: WindowState, time: number, hash: string): boolean {
  const { times, hashes = [] } = state
  state.hashes = hashes
  const known = hashes.indexOf(hash)
  if (known >= 0) {
    times.splice(known, 1)
    hashes.splice(known, 1)
  }
  times.push(time)
  hashes.push(hash)
  return known >= 0
}

/** Drops the oldest items if there are more than the window has room for. */
export function dropExcess(state: WindowState, room: number): void {
  const excess = state.times.length - room
  if (excess <= 0) return
  state.lastDropped = state.times[excess - 1] ?? 0
  state.dropped = (state.dropped ?? 0) + excess
  dropFirst(state, excess)
}

/** Removes the items up to a time. */
export function dropUpTo(state: WindowState, time: number): void {
  dropFirst(state, upTo(state.times, time))
}

function dropFirst({ times, hashes, numbers }: WindowState, count: number): void {
  if (count === 0) return
  for (const list of [times, hashes, numbers]) {
    // Mostly one leaves, for which `splice` would create a list.
    if (count === 1) list?.shift()
    else list?.splice(0, count)
  }
}

/** The number of times that are not after this one. `times` is in order. */
export function upTo(times: readonly number[], time: number): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((times[middle] ?? Infinity) <= time) low = middle + 1
    else high = middle
  }
  return low
}

/** The members of a value: those of a list, otherwise the value alone. */
export function membersOf(value: Json, max: number): readonly Json[] {
  return Array.isArray(value) ? value.slice(0, max) : [value]
}
