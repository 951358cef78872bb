import { checkOptions } from '../../protocol/check.ts'
import { APPEND_TICK } from './append-clock.ts'
import type { EventLog } from './event-log.ts'
import { checkTick } from '../record/clock.ts'
import { retentionSettings } from './retention.ts'
import type { RetentionOptions } from './retention.ts'
import { OpenEventLog } from './open-event-log.ts'
import { checkedStore, checkStore } from '../store/checked-store.ts'
import type { LogStore } from '../store/contract.ts'
import { sharedPages } from '../store/shared-pages.ts'

/** Settings of {@link openLog}. */
export interface LogOptions {
  /** How long this log keeps what it records: `maxAge` in ms, `maxBytes` in bytes. Default: any age, at most 8 GiB, 256 MiB in memory. */
  readonly retention?: RetentionOptions
  /**
   * Time between two `log.tick` while nothing is appended, in ms, once `append` was used in a log that has no recording; `Infinity` for none at
   * all, so that time stands still. Otherwise they are appended each second. At least 1. Default 10,000.
   */
  readonly tick?: number
}

/**
 * Opens a log. Its recorders delete what is beyond `retention`; the oldest entry that a consumer or process needs, and those
 * after it, are kept.
 *
 * ```ts
 * import { memoryStore, openLog } from 'rivulet/log'
 *
 * await using log = await openLog(memoryStore())
 * ```
 */
export async function openLog(store: LogStore, options: LogOptions = {}): Promise<EventLog> {
  checkStore('store', store)
  checkOptions('options', options, ['retention', 'tick'])
  const retention = retentionSettings(options.retention)
  const { tick = APPEND_TICK } = options
  checkTick('tick', tick)
  // A store that cannot be opened refuses this.
  await store.positionAt('start')
  return new OpenEventLog(checkedStore(sharedPages(store)), retention, tick)
}
