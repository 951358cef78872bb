import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { EventLog } from './event-log.ts'
import { retentionSettings } from './retention.ts'
import type { RetentionOptions } from './retention.ts'
import { OpenEventLog } from './open-event-log.ts'
import { checkedStore } from '../store/checked-store.ts'
import type { LogStore } from '../store/contract.ts'
import { sharedPages } from '../store/shared-pages.ts'

/** Settings of {@link openLog}. */
export interface LogOptions {
  /** How long this log keeps what it records. Default: at most 8 GiB, whatever its age. */
  readonly retention?: RetentionOptions
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
  checkStore(store)
  checkOptions('options', options, ['retention'])
  const retention = retentionSettings(options.retention)
  // A store that cannot be opened refuses this.
  await store.positionAt('start')
  return new OpenEventLog(checkedStore(sharedPages(store)), retention)
}

/** The first mistake of many is to give a path. */
function checkStore(store: unknown): void {
  if (isObject(store) && typeof store['positionAt'] === 'function') return
  throw new ArgumentError('store', 'a store, such as sqliteStore(file) or memoryStore()', store)
}
