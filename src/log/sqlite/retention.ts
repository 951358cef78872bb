import type { Fence } from '../store/fence.ts'
import type { WallAndMonotonic } from '../store/log-clock.ts'
import { resolve } from 'node:path'
import { checkInteger, checkText } from '../../protocol/check.ts'
import type {
  LogRoom,
  LogUsage,
  RetentionStore,
  StoreStats,
  Trimmed,
  TrimLimit,
} from '../store/retention-store.ts'
import { backUp } from './backup.ts'
import { forget } from './forgetting.ts'
import type { Transactions } from './open-log.ts'

/** Retention of a log in an SQLite file. Deletions are not synced: a power cut takes them back, and they are repeated. */
export class SqliteRetention implements RetentionStore {
  readonly defaultMaxBytes = 8 * 1024 ** 3
  readonly interval = 0
  readonly #transactions: Transactions
  readonly #clocks: WallAndMonotonic

  constructor(transactions: Transactions, clocks: WallAndMonotonic) {
    this.#transactions = transactions
    this.#clocks = clocks
  }

  stats(): Promise<StoreStats> {
    return this.#transactions.read((log) => log.stats.read(log.entries.now(this.#clocks)))
  }

  async backup(file: string): Promise<void> {
    const name = resolve(file)
    const path = await this.#transactions.read((log) => log.file.path)
    await backUp(path, name)
  }

  usage(): Promise<LogUsage> {
    return this.#transactions.read(({ trimming, entries }) => ({
      ...trimming.usage(),
      isTimeCertain: entries.isTimeCertain,
    }))
  }

  room(): Promise<LogRoom> {
    return this.#transactions.read(({ trimming, entries }) => ({
      ...trimming.room(),
      isTimeCertain: entries.isTimeCertain,
    }))
  }

  isTrimmed(): Promise<boolean> {
    return this.#transactions.read((log) => log.trimming.isTrimmed())
  }

  async trim(limit: TrimLimit): Promise<Trimmed> {
    checkInteger('limit', limit.limit, 1)
    // Without a lock first, since there is mostly nothing to delete.
    const plan = await this.#transactions.read((log) => log.trimming.plan({ ...limit, limit: 1 }))
    if (plan.deleted === 0) return plan
    return this.#transactions.write('NORMAL', (log) => log.trimming.trim(limit))
  }

  async trimIdentities(): Promise<boolean> {
    if (!(await this.#transactions.read((log) => log.trimming.hasOldIdentities()))) return true
    return this.#transactions.write('NORMAL', (log) => log.trimming.trimIdentities())
  }

  async truncateWal(): Promise<void> {
    await this.#transactions.alone((log) => log.file.emptyWal())
  }

  async forget(source: string): Promise<number> {
    checkText('source', source)
    return forget(this.#transactions, source)
  }

  async setPaused(reader: string | null, maxBytes: number): Promise<void> {
    await this.#transactions.write('NORMAL', (log) => log.trimming.setPaused(reader, maxBytes))
  }

  async remove(reader: string, fence?: Fence): Promise<void> {
    await this.#transactions.write('NORMAL', (log) => {
      if (fence === undefined) log.claims.revoke(reader)
      else log.claims.check(fence)
      log.readers.remove(reader)
      log.processes.drop(reader)
    })
  }
}
