import type { WallAndMonotonic } from '../store/log-clock.ts'
import type { RetentionStore } from '../store/retention-store.ts'
import { forget } from './forgetting.ts'
import type { Transactions } from './open-log.ts'

/** Retention of a log in an SQLite file. Deletions are not synced: a power cut takes them back, and they are repeated. */
export function sqliteRetention(transactions: Transactions, clocks: WallAndMonotonic): RetentionStore {
  const { read, write, alone } = transactions
  return {
    defaultMaxBytes: 8 * 1024 ** 3,
    interval: 0,
    stats: () => read((log) => log.stats.read(log.entries.now(clocks))),
    usage: () =>
      read(({ trimming, entries }) => ({ ...trimming.usage(), isTimeCertain: entries.isTimeCertain })),
    room: () =>
      read(({ trimming, entries }) => ({ ...trimming.room(), isTimeCertain: entries.isTimeCertain })),
    async trim(limit) {
      // Without a lock first, since there is mostly nothing to delete.
      const plan = await read(({ trimming }) => trimming.plan({ ...limit, limit: 1 }))
      return plan.deleted === 0 ? plan : write('NORMAL', ({ trimming }) => trimming.trim(limit))
    },
    async clean() {
      const hasMore = await read(
        ({ processes, trimming }) => processes.hasDropped() || trimming.hasOldIdentities(),
      )
      return (
        hasMore &&
        write('NORMAL', ({ processes, trimming }) => processes.clean() || !trimming.trimIdentities())
      )
    },
    async truncateWal() {
      await alone((log) => log.file.emptyWal())
    },
    forget: (source) => forget(transactions, source),
    setPaused: (reader, maxBytes) => write('NORMAL', ({ trimming }) => trimming.setPaused(reader, maxBytes)),
    remove: (reader, fence) =>
      write('NORMAL', (log) => {
        if (fence === undefined) log.claims.revoke(reader)
        else log.claims.check(fence)
        log.readers.remove(reader)
        log.processes.drop(reader)
      }),
  }
}
