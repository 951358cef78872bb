import type { ResearchEvent } from 'rivulet'

/** What a loop by hand makes of a window: its key, its start in Unix ms, and the count and the sum of its events. */
export type WindowByHand = readonly [key: string, start: number, count: number, sum: number]

interface Bare {
  count: number
  sum: number
}

/** The end of a tick's time, in Unix ms; undefined for another entry. */
function tickOf({ type, data }: ResearchEvent): number | undefined {
  return type === 'log.tick' ? Date.parse(String(Object(data).through)) : undefined
}

/** Counts and sums over windows of one length, as one writes it without a library. */
export function fixedByHand(
  entries: readonly ResearchEvent[],
  size: number,
  every: number,
  valueOf: (event: ResearchEvent) => number,
): readonly WindowByHand[] {
  const open = new Map<number, Map<string, Bare>>()
  const results: WindowByHand[] = []
  let watermark = -Infinity
  for (const entry of entries) {
    const tick = tickOf(entry)
    if (tick !== undefined) {
      watermark = tick
      for (const start of [...open.keys()].toSorted((a, b) => a - b)) {
        if (start + size > watermark) break
        for (const [key, { count, sum }] of open.get(start) ?? []) results.push([key, start, count, sum])
        open.delete(start)
      }
      continue
    }
    const at = Date.parse(entry.time ?? entry.received)
    for (let start = Math.floor(at / every) * every; start > at - size; start -= every) {
      if (start + size <= watermark) continue
      let windows = open.get(start)
      if (windows === undefined) open.set(start, (windows = new Map()))
      const window = windows.get(entry.source)
      if (window === undefined) windows.set(entry.source, { count: 1, sum: valueOf(entry) })
      else {
        window.count += 1
        window.sum += valueOf(entry)
      }
    }
  }
  return results
}

/** Counts and sums over sessions, for events in the order of their time. */
export function sessionsByHand(
  entries: readonly ResearchEvent[],
  gap: number,
  valueOf: (event: ResearchEvent) => number,
): readonly WindowByHand[] {
  const open = new Map<string, Bare & { readonly start: number; last: number }>()
  const results: WindowByHand[] = []
  for (const entry of entries) {
    const tick = tickOf(entry)
    if (tick !== undefined) {
      for (const [key, { start, last, count, sum }] of open) {
        if (last + gap > tick) continue
        results.push([key, start, count, sum])
        open.delete(key)
      }
      continue
    }
    const at = Date.parse(entry.time ?? entry.received)
    const session = open.get(entry.source)
    if (session !== undefined && at < session.last + gap) {
      session.last = at
      session.count += 1
      session.sum += valueOf(entry)
      continue
    }
    if (session !== undefined) results.push([entry.source, session.start, session.count, session.sum])
    open.set(entry.source, { start: at, last: at, count: 1, sum: valueOf(entry) })
  }
  return results
}

/** A pair of ids. */
export type PairByHand = readonly [left: string, right: string]

/** Pairs of events of a source within a time, of two kinds. */
export function pairsByHand(
  entries: readonly ResearchEvent[],
  within: number,
  isLeft: (event: ResearchEvent) => boolean,
): readonly PairByHand[] {
  interface Side {
    left: { readonly at: number; readonly id: string }[]
    right: { readonly at: number; readonly id: string }[]
  }
  const keys = new Map<string, Side>()
  const pairs: PairByHand[] = []
  for (const entry of entries) {
    const tick = tickOf(entry)
    if (tick !== undefined) {
      for (const sides of keys.values()) {
        sides.left = sides.left.filter(({ at }) => at + within >= tick)
        sides.right = sides.right.filter(({ at }) => at + within >= tick)
      }
      continue
    }
    const at = Date.parse(entry.time ?? entry.received)
    let sides = keys.get(entry.source)
    if (sides === undefined) keys.set(entry.source, (sides = { left: [], right: [] }))
    const { id } = entry
    if (isLeft(entry)) {
      for (const other of sides.right) if (Math.abs(other.at - at) <= within) pairs.push([id, other.id])
      sides.left.push({ at, id })
    } else {
      for (const other of sides.left) if (Math.abs(other.at - at) <= within) pairs.push([other.id, id])
      sides.right.push({ at, id })
    }
  }
  return pairs
}
