export * from './protocol/index.ts'
export { openCheckpoint } from './state/checkpoint.ts'
export type { Checkpoint } from './state/checkpoint.ts'
export type {
  CheckpointChanges,
  CheckpointState,
  CheckpointStore,
  HandledFact,
} from './state/checkpoint-store.ts'
export { memoryCheckpointStore } from './state/memory-checkpoint-store.ts'
export { CheckpointError, CheckpointInUseError, StateFileError, StateInUseError } from './state/errors.ts'
export { createClient } from './client.ts'
export type { ClientOptions, ResearchClient } from './client.ts'
export type { Diagnostic } from './sources/context.ts'
export { AwaitableSource, Source } from './sources/source.ts'
export type { SourceOptions } from './sources/source.ts'
export type { AddRunsOptions } from './sources/add-runs.ts'
export { checkOutput, outputSchema, OutputSchemaError } from './sources/answer-schema.ts'
export type { CheckedOutput } from './sources/answer-schema.ts'
export { ExecutionError } from './sources/execute-runs.ts'
export type {
  ExecutedRun,
  ExecuteOptions,
  TypedExecuteOptions,
  UnfinishedRun,
} from './sources/execute-runs.ts'
export type { GroupProgress, GroupProgressOptions } from './sources/group-progress.ts'
export { PartialWriteError, UncertainWriteError } from './sources/write-errors.ts'
export type { AddedInput, WriteProgress } from './sources/write-errors.ts'
export type { MonitorEventsOptions } from './sources/monitor-events.ts'
export type { FollowMonitorOptions } from './sources/follow-monitor.ts'
export type { CreateMonitorRequest, ListMonitorsOptions } from './sources/monitors.ts'
export type { GroupEventsOptions } from './sources/group-events.ts'
export type { GroupRunsOptions } from './sources/group-runs.ts'
export { IncompleteStreamError } from './sources/incomplete-stream-error.ts'
export type { CheckedGroupRunEvent, CheckedRunState, TypedGroupRunsOptions } from './sources/typed-runs.ts'
export type { CreateTaskGroupOptions } from './sources/task-groups.ts'
export type { Logger } from './sources/log-diagnostic.ts'
export type { UntypedOptions, UntypedPostOptions, UntypedStreamOptions } from './sources/untyped.ts'
export type { Watched, WatchedGroup, WatchedMonitor, WatchedWebhooks, WatchOptions } from './sources/watch.ts'
export type {
  Exchange,
  Flow,
  HeaderReader,
  ResponseSink,
  Timeouts,
  WireRequest,
} from './transport/exchange.ts'
export type { Fetch } from './transport/fetch-exchange.ts'
export type { StreamMessage } from './transport/transport.ts'
export * from './transport/errors.ts'
