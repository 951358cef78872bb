export { ArgumentError } from './argument-error.ts'
export type { Backoff } from './backoff.ts'
export type { ChatChunk, ChatCompletion, ChatRequest } from './chat.ts'
export {
  gapEvent,
  groupEvent,
  groupSource,
  monitorEvent,
  monitorSource,
  runEvent,
  runSource,
} from './event.ts'
export type {
  Envelope,
  EventOf,
  FindAllEvent,
  FollowedMonitorEvent,
  GroupEvent,
  GroupRunEvent,
  ListedMonitorEvent,
  ResearchEvent,
  ResearchEventData,
  ResearchEventType,
  RunEvent,
  TaskRunState,
  Via,
} from './event.ts'
export type { ExtractRequest, ExtractResponse, ExtractResult } from './extract.ts'
export { findAllEvent, findAllSource } from './find-all-event.ts'
export { FIND_ALL_GENERATORS } from './find-all.ts'
export type {
  EntitySearchRequest,
  EntitySearchResponse,
  FindAllCandidate,
  FindAllGenerator,
  FindAllRequest,
  FindAllResult,
  FindAllRun,
  FindAllSchema,
} from './find-all.ts'
export { MEMORY_KINDS } from './memory.ts'
export type { Memory, MemoryKind, MemoryRetrieveRequest, MemoryScope } from './memory.ts'
export type {
  CreateMonitorRequest,
  Monitor,
  MonitorEvent,
  MonitorProcessor,
  UpdateMonitorRequest,
} from './monitor.ts'
export type { Citation, FieldBasis, JsonOutput, TaskOutput, TextOutput } from './output.ts'
export type { ErrorResponse, ValidationErrorResponse, Warning } from './problem.ts'
export type { ResponseEvent, ResponseObject, ResponseRequest } from './response.ts'
export { RivuletError } from './rivulet-error.ts'
export type { RunProgressStats } from './run-trace.ts'
export { SEARCH_MODES } from './search.ts'
export type { SearchMode, SearchRequest, SearchResponse, SearchResult } from './search.ts'
export type { AnswerSchema, StandardSchema } from './standard-schema.ts'
export type { AddRunsRequest, AddRunsResponse, TaskGroup, TaskGroupStatus } from './task-group.ts'
export { RUN_STATUSES } from './task.ts'
export type {
  CreateRunRequest,
  OutputSchema,
  RunInput,
  RunStatus,
  TaskRun,
  TaskRunResult,
  TaskSpec,
} from './task.ts'
