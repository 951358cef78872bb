/**
 * The client, its events and its errors.
 *
 * @module rivulet
 */
export * from './protocol/index.ts'
export { createClient, createMonitorClient } from './client.ts'
export type { ClientOptions, MonitorClient, ResearchClient } from './client.ts'
export type { StreamPosition } from './protocol/stream-position.ts'
export { ResponseFailedError } from './sources/responses/response-failed-error.ts'
export { responseText } from './sources/responses/response-text.ts'
export type { Diagnostic } from './sources/context.ts'
export { FindAllFailedError, FindAllInterruptedError } from './sources/find-all/errors.ts'
export type { EnrichedCandidate } from './sources/find-all/enrichment.ts'
export type { Logger } from './sources/log-diagnostic.ts'
export type { MemoryUpdate } from './sources/memory/follow.ts'
export type { MemoryResult } from './sources/memory/retrieve.ts'
export type { MonitorSnapshot } from './sources/monitors/snapshots.ts'
export type { SearchOutcome, SearchQueries } from './sources/search/each.ts'
export { UncertainRequestError } from './sources/shapes/acted-on-once.ts'
export {
  AnswerFailedError,
  AnswerInterruptedError,
  AnswerSchemaError,
} from './sources/shapes/answer-errors.ts'
export { checkOutput, outputSchema, OutputSchemaError } from './sources/shapes/answer-schema.ts'
export type { CheckedOutput } from './sources/shapes/answer-schema.ts'
export { IncompleteStreamError } from './sources/shapes/incomplete-stream-error.ts'
export type { AwaitableSource, Source, SourceOptions } from './sources/shapes/source.ts'
export { StreamPositionError } from './sources/shapes/stream-item.ts'
export type { SourceStream, StreamItem } from './sources/shapes/stream-item.ts'
export type { TextProgress } from './sources/shapes/streamed-answer.ts'
export type { AddRunsOptions } from './sources/task-groups/add-runs.ts'
export { ExecutionError } from './sources/task-groups/execute.ts'
export type { ExecutedRun, ExecuteOptions } from './sources/task-groups/execute.ts'
export type { GroupProgress } from './sources/task-groups/progress.ts'
export { MissingHeadersError } from './sources/task-groups/retry.ts'
export type { RetriedRun, RetryOptions } from './sources/task-groups/retry.ts'
export type { GroupErrors } from './sources/task-groups/run-errors.ts'
export { PartialWriteError, UncertainWriteError } from './sources/task-groups/write-errors.ts'
export type { WriteProgress } from './sources/task-groups/write-errors.ts'
export {
  RunFailedError,
  RunInterruptedError,
  RunTimeoutError,
  UncertainRunError,
} from './sources/tasks/errors.ts'
export type { GetRunResult } from './sources/tasks/result.ts'
export { AllSourcesFailedError } from './sources/watch.ts'
export type { WatchOptions } from './sources/watch.ts'
export type { WatchedGroup, WatchedMonitor } from './sources/watched-streams.ts'
export {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  NotFoundError,
  PaymentRequiredError,
  PermissionError,
  ProtocolError,
  RateLimitError,
  RequestError,
  ServerError,
  ValidationError,
} from './transport/errors.ts'
export type { ChatCalls } from './sources/chat/calls.ts'
export type { FindAllCalls } from './sources/find-all/calls.ts'
export type { MonitorCalls } from './sources/monitors/calls.ts'
export type { StreamedResponseEvent } from './sources/responses/response-reader.ts'
export type { TaskGroupCalls } from './sources/task-groups/calls.ts'
export type { TaskCalls } from './sources/tasks/calls.ts'
