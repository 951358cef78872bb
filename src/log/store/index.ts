/**
 * What an author of a store of a log needs: the contract, its limits, what all stores share, and the suite that each store passes; and copies
 * of a log from one store into another. See `docs/reference/stores.md`.
 *
 * @module rivulet/log/store
 */
export { storeConformance } from './conformance/suite.ts'
export type { StoreHarness } from './conformance/suite.ts'
export type { TestRunner } from './conformance/area.ts'
export type {
  Commit,
  Fence,
  LogStore,
  ReaderState,
  ReadOptions,
  StoredReader,
  StreamAppend,
} from './contract.ts'
export { STORE_LIMITS } from './limits.ts'
export { newEntry } from './new-entry.ts'
export { isAtLeastAsComplete } from '../../protocol/event.ts'
export { mergeDuplicates } from './completeness.ts'
export { identityKey } from './identity-key.ts'
export { ageLimit, clockChangeOf, clockEntry, clocksOf, isTimeCertain, nextTime } from './log-clock.ts'
export { gapPage } from './gap-page.ts'
export type { CopyStore } from './copy-store.ts'
export { movedCheckpoint } from '../process/progress.ts'
export { migrateLog } from '../copy/migrate.ts'
export type { Migrated } from '../copy/migrate.ts'
export type { DeadLetterStore, NewDeadLetter } from './dead-letter-store.ts'
export type { Effect, EffectCommit, EffectState, EffectStore } from './effect-store.ts'
export { inboxLimits } from './inbox-store.ts'
export type { InboxStore } from './inbox-store.ts'
export type { ProcessCommit, ProcessStore, StateChange } from './process-store.ts'
export type { RetentionStore, TrimLimit } from './retention-store.ts'
export { UNDIVIDED } from './sharing-store.ts'
export type { Partitions, SharingStore } from './sharing-store.ts'
export { UndividedGroups } from './undivided-groups.ts'
export { compareStored, originalText, storedText } from '../../protocol/stored-text.ts'
export { compareTimers } from '../../streams/timers.ts'
export type { Timer, TimerChange } from '../../streams/timers.ts'
export { isOfSource, isWebhookOfSource } from '../state/of-source.ts'
export { keyRanges } from '../state/key-ranges.ts'
export { ProcessPositions } from '../state/process-position.ts'
