/**
 * Checkpoints and the inbox of webhooks in SQLite files.
 *
 * @module rivulet/state/sqlite
 */
export { ArgumentError } from '../protocol/argument-error.ts'
export type { CheckpointChanges, CheckpointState, CheckpointStore, HandledFact } from './checkpoint-store.ts'
export { CheckpointError, CheckpointInUseError, StateFileError, StateInUseError } from './errors.ts'
export type { HandledFactsLimits } from './handled-facts.ts'
export type { Inbox } from './inbox.ts'
export type { InboxOutcome } from '../protocol/webhook.ts'
export type { LeaseOptions } from './lease.ts'
export { sqliteCheckpointStore } from './sqlite-checkpoint-store.ts'
export type { SqliteCheckpointStore, SqliteCheckpointStoreOptions } from './sqlite-checkpoint-store.ts'
export { sqliteInbox } from './sqlite-inbox.ts'
export type { SqliteInbox, SqliteInboxOptions } from './sqlite-inbox.ts'
