/**
 * The client, the events, and the event log.
 *
 * @module rivulet
 */
export * from './protocol/index.ts'
export { memoryLog } from './log/memory/memory-log.ts'
export type {
  MemoryLog,
  MemoryLogConnection,
  MemoryLogOptions,
  MemoryLogWrite,
} from './log/memory/memory-log.ts'
export {
  MAX_APPEND_DONE,
  MAX_APPEND_ENTRIES,
  MAX_APPEND_LENGTH,
  MAX_COMMIT_BYTES,
} from './log/store/contract.ts'
export type {
  DeadLetterError,
  DeadLetterStore,
  RedeliveredDeadLetter,
  NewDeadLetter,
  Redeliveries,
  Redelivery,
  StoredDeadLetter,
} from './log/store/dead-letter-store.ts'
export type { EffectHandler } from './log/consume/effects.ts'
export { exactlyOnceIn } from './log/consume/exactly-once.ts'
export type { PlainEffect, PreparedEffect } from './log/consume/exactly-once.ts'
export type {
  AppliedEffect,
  Effect,
  EffectCommit,
  EffectResult,
  EffectState,
  EffectStates,
  EffectStore,
  GivenUpEffect,
  MovedEffects,
  SentDeadLetters,
  StatesInCopy,
} from './log/store/effect-store.ts'
export type { DeadLetterQueue } from './log/event-log/dead-letters.ts'
export { openLog } from './log/event-log/open-log.ts'
export type { LogOptions } from './log/event-log/open-log.ts'
export type { EventLog, Forgotten } from './log/event-log/event-log.ts'
export type { ConsumeOptions } from './log/consume/consume-options.ts'
export type { LogReader } from './log/event-log/log-reader.ts'
export type { LogProcess, ProcessOptions } from './log/process/process.ts'
export type { OutputEvent, ProcessContext } from './streams/process-functions.ts'
export type {
  ProcessChange,
  ProcessSnapshot,
  ProcessState,
  StatePage,
  StatePageOptions,
} from './log/process/process-state.ts'
export type { LogJob } from './log/event-log/job.ts'
export type { LogObserver } from './log/event-log/observer.ts'
export type { ConsumerOptions, EntryOf } from './log/consume/consumer-options.ts'
export type {
  ChangesOptions,
  ChangesPage,
  ProcessCommit,
  ProcessStore,
  RangeOptions,
  RangePage,
  StateChange,
  StoredChange,
  TimersOptions,
} from './log/store/process-store.ts'
export type { Timer, TimerChange, TimerClock } from './streams/timers.ts'
export type {
  Appended,
  Commit,
  Entry,
  Fence,
  LogStore,
  NewEntry,
  Page,
  Position,
  ReaderState,
  StoredReader,
  ReadOptions,
  StartAt,
  StreamAppend,
} from './log/store/contract.ts'
export type { InboxLimits, InboxPlace, InboxStore, PendingDelivery } from './log/store/inbox-store.ts'
export type { RetentionOptions } from './log/event-log/retention.ts'
export type { ExportOptions } from './log/event-log/export.ts'
export type { LogStats, ReaderStats, StreamStats } from './log/store/stats.ts'
export type {
  LogRoom,
  LogUsage,
  RetentionStore,
  StoreStats,
  Trimmed,
  TrimLimit,
} from './log/store/retention-store.ts'
export type { Partitions, SharingStore } from './log/store/sharing-store.ts'
export {
  EffectError,
  FencedError,
  LogClosedError,
  LogConflictError,
  LogError,
  LogGapError,
  LogInUseError,
  LogPositionError,
  LogUnsupportedError,
  LogValueError,
  ProcessVersionError,
  SnapshotTooLargeError,
  StalledConsumerError,
} from './log/errors.ts'
export { ProcessError } from './streams/process-error.ts'
export type { PositionProblem } from './log/errors.ts'
export { AcknowledgementError, keepPosition } from './protocol/acknowledgement.ts'
export { createClient, createMonitorClient } from './client.ts'
export type { ClientOptions, MonitorClient, ResearchClient } from './client.ts'
export type { Diagnostic } from './sources/context.ts'
export { UncertainRequestError } from './sources/shapes/acted-on-once.ts'
export { AwaitableSource, Source } from './sources/shapes/source.ts'
export type { SourceOptions } from './sources/shapes/source.ts'
export type { AddRunsOptions } from './sources/task-groups/add-runs.ts'
export { checkOutput, outputSchema, OutputSchemaError } from './sources/shapes/answer-schema.ts'
export type { CheckedOutput } from './sources/shapes/answer-schema.ts'
export { ExecutionError } from './sources/task-groups/execute.ts'
export type {
  ExecutedRun,
  ExecuteOptions,
  ExecuteRuns,
  TypedExecuteOptions,
  UnfinishedRun,
} from './sources/task-groups/execute.ts'
export type { GroupProgress, GroupProgressOptions } from './sources/task-groups/progress.ts'
export type { GroupErrors, RunErrorGroup } from './sources/task-groups/run-errors.ts'
export { MissingHeadersError } from './sources/task-groups/retry.ts'
export type { RetriedRun, RetryOptions } from './sources/task-groups/retry.ts'
export { PartialWriteError, UncertainWriteError } from './sources/task-groups/write-errors.ts'
export type { AddedInput, WriteProgress } from './sources/task-groups/write-errors.ts'
export type { MonitorEventsOptions } from './sources/monitors/events.ts'
export type { FollowMonitorOptions } from './sources/monitors/follow.ts'
export type {
  CheckedMonitorSnapshot,
  MonitorSnapshot,
  MonitorSnapshots,
  MonitorSnapshotsOptions,
  TypedMonitorSnapshotsOptions,
} from './sources/monitors/snapshots.ts'
export type { ListMonitorsOptions, MonitorCalls } from './sources/monitors/calls.ts'
export type { EntitySearchOptions, FindAllCalls } from './sources/find-all/calls.ts'
export type {
  CheckedEnrichment,
  CheckedFindAllEvent,
  CheckedFindAllResult,
  EnrichedCandidate,
} from './sources/find-all/enrichment.ts'
export { FindAllFailedError, FindAllInterruptedError } from './sources/find-all/errors.ts'
export type { EnrichedFindAllOptions, RunFindAll, RunFindAllOptions } from './sources/find-all/run.ts'
export type { FindAllEventsOptions } from './sources/find-all/events.ts'
export type { MemoryCalls } from './sources/memory/calls.ts'
export type { MemoryResult, RetrievedMemories } from './sources/memory/retrieve.ts'
export type { FollowMemoryOptions, MemoryUpdate } from './sources/memory/follow.ts'
export type { GroupEventsOptions } from './sources/task-groups/events.ts'
export type { GroupRunsOptions } from './sources/task-groups/runs.ts'
export { IncompleteStreamError } from './sources/shapes/incomplete-stream-error.ts'
export type {
  CheckedGroupRunEvent,
  CheckedRunState,
  GroupRuns,
  TypedGroupRunsOptions,
} from './sources/task-groups/typed-runs.ts'
export type { CreateTaskGroupOptions, TaskGroupCalls } from './sources/task-groups/calls.ts'
export type { CreateRunOptions } from './sources/tasks/create.ts'
export {
  RunFailedError,
  RunInterruptedError,
  RunTimeoutError,
  UncertainRunError,
} from './sources/tasks/errors.ts'
export type {
  CheckedRunResult,
  RunResult,
  RunResultOptions,
  TypedRunResultOptions,
} from './sources/tasks/result.ts'
export type { RunTask, RunTaskOptions, TypedRunTaskOptions } from './sources/tasks/run.ts'
export type { TaskCalls } from './sources/tasks/calls.ts'
export type { ChatCalls, CheckedCompletion, TypedAnswerOptions } from './sources/chat/calls.ts'
export type { CheckedResponse, ResponseCalls } from './sources/responses/calls.ts'
export { ResponseFailedError } from './sources/responses/response-failed-error.ts'
export type { StreamedResponseEvent, UnknownResponseEvent } from './sources/responses/response-reader.ts'
export { responseText } from './sources/responses/response-text.ts'
export {
  AnswerFailedError,
  AnswerInterruptedError,
  AnswerSchemaError,
} from './sources/shapes/answer-errors.ts'
export type { TextProgress } from './sources/shapes/streamed-answer.ts'
export type { SearchCalls } from './sources/search/calls.ts'
export type { SearchEachOptions, SearchOutcome, SearchQueries, SearchQuery } from './sources/search/each.ts'
export type { Logger } from './sources/log-diagnostic.ts'
export type { UntypedOptions, UntypedPostOptions, UntypedStreamOptions } from './sources/untyped.ts'
export type { RecordedLists, RecordedWebhooks, Recording, RecordOptions } from './log/record/recording.ts'
export { AllSourcesFailedError } from './sources/watch.ts'
export type { WatchCalls, WatchedWebhooks, WatchOptions, WatchPositionedOptions } from './sources/watch.ts'
export type { StreamPosition } from './protocol/stream-position.ts'
export { StreamPositionError } from './sources/shapes/stream-item.ts'
export type {
  SourceStream,
  StreamCaughtUp,
  StreamEvent,
  StreamItem,
  StreamLost,
  StreamPolling,
  StreamReached,
} from './sources/shapes/stream-item.ts'
export type {
  OpenStream,
  Watched,
  WatchedFindAll,
  WatchedGroup,
  WatchedMonitor,
  WatchedRun,
} from './sources/watched-streams.ts'
export type {
  Exchange,
  Flow,
  HeaderReader,
  ResponseSink,
  Timeouts,
  WireRequest,
} from './transport/exchange.ts'
export type { Fetch } from './transport/fetch-exchange.ts'
export type { ClientObserver, ObservedRequest, RequestObservation } from './transport/observer.ts'
export type { QuotaSettings } from './transport/quota-limiter.ts'
export type { StreamMessage } from './transport/transport.ts'
export * from './transport/errors.ts'
