/**
 * The event log: recording, consumers and processes.
 *
 * @module rivulet/log
 */
export { openLog } from './event-log/open-log.ts'
export type { LogOptions } from './event-log/open-log.ts'
export type { AppEvent } from './event-log/app-event.ts'
export type { EventLog, Forgotten, LogReadOptions } from './event-log/event-log.ts'
export type { DeadLetterQueue } from './event-log/dead-letters.ts'
export type { LogJob } from './event-log/job.ts'
export type { LogObserver } from './event-log/observer.ts'
export type { LogReader } from './event-log/log-reader.ts'
export type { RetentionOptions } from './event-log/retention.ts'
export { memoryStore } from './memory/store.ts'
export type { MemoryStore, MemoryStoreOptions } from './memory/store.ts'
export type { ConsumerOptions, EntryOf } from './consume/consumer-options.ts'
export { exactlyOnceIn } from './consume/exactly-once.ts'
export type { EffectHandler } from './consume/effects.ts'
export type { LogProcess, ProcessOptions } from './process/process.ts'
export type { TableState } from './process/table-state.ts'
export type { ProcessChange, ProcessSnapshot, ProcessState } from './process/process-state.ts'
export type { Recording, RecordOptions } from './record/recording.ts'
export type { Appended, Entry, NewEntry, Page, Position, StartAt } from './store/contract.ts'
export type { StoredDeadLetter } from './store/dead-letter-store.ts'
export type { LogStats } from './store/stats.ts'
export {
  ConsumerError,
  EffectError,
  FencedError,
  LogClosedError,
  LogConflictError,
  LogError,
  LogFileError,
  LogGapError,
  LogInUseError,
  LogPositionError,
  LogServerError,
  LogUnsupportedError,
  LogValueError,
  ProcessVersionError,
  SnapshotTooLargeError,
  StalledConsumerError,
} from './errors.ts'
export { AcknowledgementError } from '../protocol/acknowledgement.ts'
export { eventTime } from '../streams/clocks.ts'
export { ProcessError } from '../streams/process-error.ts'
