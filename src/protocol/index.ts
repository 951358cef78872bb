export type * from './alert.ts'
export { ArgumentError } from './argument-error.ts'
export { backoffDelay, isRetryable } from './backoff.ts'
export type { Backoff, Retryable } from './backoff.ts'
export {
  gapEvent,
  groupEvent,
  groupSource,
  monitorEvent,
  monitorSource,
  completeness,
  runEvent,
  runSource,
  unknownEvent,
} from './event.ts'
export type {
  Cause,
  Envelope,
  EventOf,
  FindAllEvent,
  FollowedMonitorEvent,
  GroupEvent,
  GroupRunEvent,
  ListedMonitorEvent,
  LogClock,
  LogGap,
  LogTick,
  OversizedEvent,
  ResearchEvent,
  ResearchEventData,
  ResearchEventType,
  RunEvent,
  SourceFailure,
  SourceLive,
  SourceLost,
  StreamGap,
  TaskRunState,
  Via,
} from './event.ts'
export type { GatewayRevoked, GatewaySearch, GatewaySession } from './gateway.ts'
export type { Json } from './json.ts'
export type * from './chat.ts'
export type * from './extract.ts'
export { findAllEvent, findAllSource } from './find-all-event.ts'
export { ENTITY_TYPES, FIND_ALL_GENERATORS } from './find-all.ts'
export type * from './find-all.ts'
export { MEMORY_KINDS } from './memory.ts'
export type * from './memory.ts'
export type * from './monitor.ts'
export type * from './output.ts'
export type * from './problem.ts'
export { QUOTAS } from './quotas.ts'
export type { Quota, QuotaLimit, QuotaLimits } from './quotas.ts'
export type * from './response.ts'
export { RivuletError } from './rivulet-error.ts'
export { runTraceEvent } from './run-trace-event.ts'
export type * from './run-trace.ts'
export { SEARCH_MODES } from './search.ts'
export type * from './search.ts'
export type * from './standard-schema.ts'
export type * from './task-group.ts'
export { RUN_STATUSES } from './task.ts'
export type * from './task.ts'
export type * from './webhook.ts'
