import { wholeName } from '../consume/part-name.ts'
import { watermarkOf } from '../process/progress.ts'
import { eventTimeOf, knownTime } from '../record/event-time.ts'
import type { LogStore } from '../store/contract.ts'
import type { StoreStats } from '../store/retention-store.ts'
import type { LogStats, ReaderStats } from '../store/stats.ts'

type ReadersOf = Pick<LogStore, 'reader'>

/** The statistics of a log as users get them. */
export async function logStats(store: ReadersOf & Pick<LogStore, 'retention'>): Promise<LogStats> {
  const { now, readers, streams, pausedBy, ...stats } = await store.retention.stats()
  const byName = Map.groupBy(readers, ({ name }) => wholeName(name))
  const named = streams.map(({ name, position, owner }) => ({
    name: name.replace(/^stream:/, ''),
    position,
    owner,
  }))
  const known = await Promise.all(
    Array.from(byName, async ([name, parts]): Promise<readonly ReaderStats[]> => {
      const [, kind, own] = /^(consumer|process):([^]*)$/.exec(name) ?? []
      if ((kind !== 'consumer' && kind !== 'process') || own === undefined) return []
      const watermark = kind === 'process' ? await watermarkIn(store, parts) : null
      return [{ kind, name: own, ...together(parts, now), watermark }]
    }),
  )
  return {
    ...stats,
    pausedBy: pausedBy === null ? null : wholeName(pausedBy),
    readers: known.flat(),
    streams: named,
    time: { now, ...eventTimeOf(new Map(named.map(({ name, position }) => [name, position]))) },
  }
}

/** The watermark of a process, by its parts. */
async function watermarkIn(store: ReadersOf, parts: StoreStats['readers']): Promise<number | null> {
  const each = parts.map(async ({ name }) =>
    watermarkOf((await store.reader(name))?.process?.checkpoint ?? ''),
  )
  return knownTime(Math.min(...(await Promise.all(each))))
}

/** The statistics of a reader, which may have several parts. */
function together(
  parts: StoreStats['readers'],
  now: number,
): Omit<ReaderStats, 'kind' | 'name' | 'watermark'> {
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
