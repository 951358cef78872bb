import { wholeName } from '../consume/part-name.ts'
import type { StoreStats } from '../store/retention-store.ts'
import type { LogStats, ReaderStats } from '../store/stats.ts'

/** The statistics as users get them. */
export function logStats({ now, readers, streams, pausedBy, ...stats }: StoreStats): LogStats {
  const byName = Map.groupBy(readers, ({ name }) => wholeName(name))
  return {
    ...stats,
    pausedBy: pausedBy === null ? null : wholeName(pausedBy),
    readers: Array.from(byName).flatMap(([name, parts]) => {
      const [, kind, own] = /^(consumer|process):([^]*)$/.exec(name) ?? []
      if ((kind !== 'consumer' && kind !== 'process') || own === undefined) return []
      return [{ kind, name: own, ...together(parts, now) }]
    }),
    streams: streams.map((stream) => ({ ...stream, name: stream.name.replace(/^stream:/, '') })),
  }
}

/** The statistics of a reader, which may have several parts. */
function together(parts: StoreStats['readers'], now: number): Omit<ReaderStats, 'kind' | 'name'> {
  const last = parts.reduce((behind, part) => (part.behind > behind.behind ? part : behind))
  const times = parts.flatMap(({ oldestUnacknowledged: time }) => (time === null ? [] : [time]))
  const oldest = times.length === 0 ? null : Math.min(...times)
  const owners = new Set(parts.flatMap(({ owner }) => (owner === null ? [] : [owner])))
  return {
    cursor: last.cursor,
    lag: { entries: last.behind, seconds: oldest === null ? 0 : Math.max(0, now - oldest) / 1_000 },
    oldestUnacknowledged: oldest,
    acknowledgedAhead: sum(parts.map((part) => part.acknowledgedAhead)),
    deadLetters: sum(parts.map((part) => part.deadLetters)),
    holdsRetention: parts.some((part) => part.holdsRetention),
    isPaused: parts.some((part) => part.isPaused),
    owner: owners.size === 0 ? null : Array.from(owners).join(', '),
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
