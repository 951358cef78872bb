import type { StoreStats } from './store/retention-store.ts'
import type { LogStats } from './store/stats.ts'

/** The numbers as users get them. */
export function logStats({ now, readers, streams, ...stats }: StoreStats): LogStats {
  return {
    ...stats,
    readers: readers.flatMap(({ name, behind, ...reader }) => {
      const [, kind, own] = /^(consumer|process):([^]*)$/.exec(name) ?? []
      if ((kind !== 'consumer' && kind !== 'process') || own === undefined) return []
      const { oldestUnacknowledged: oldest } = reader
      const seconds = oldest === null ? 0 : Math.max(0, now - oldest) / 1_000
      return [{ ...reader, kind, name: own, lag: { entries: behind, seconds } }]
    }),
    streams: streams.map((stream) => ({ ...stream, name: stream.name.replace(/^stream:/, '') })),
  }
}
