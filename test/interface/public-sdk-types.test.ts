import type * as FindAlls from 'parallel-web/resources/beta/findall'
import type * as Memories from 'parallel-web/resources/beta/memory'
import type * as Monitors from 'parallel-web/resources/monitor'
import type * as Shared from 'parallel-web/resources/shared'
import type * as Groups from 'parallel-web/resources/task-group'
import type * as Runs from 'parallel-web/resources/task-run'
import type * as Top from 'parallel-web/resources/top-level'
import type * as Ours from './wire-types.ts'
import { describe, expectTypeOf, it } from 'vitest'

/**
 * The fields of `To` to which `From` is not assignable: a missing required field, or one of another type. The compiler runs
 * these tests.
 */
type Gaps<From, To> = {
  [Name in keyof To]-?: Name extends keyof From
    ? From[Name] extends To[Name]
      ? never
      : Name
    : undefined extends To[Name]
      ? never
      : Name
}[keyof To]

/** The type without `readonly`, which the SDK's types do not have. */
type Writable<T> = { -readonly [Name in keyof T]: Writable<T[Name]> }

/** A monitor of one type, in the SDK's types. */
type MonitorOf<Type, Settings, Output> = Omit<Monitors.Monitor, 'type' | 'settings' | 'output'> & {
  type: Type
  settings: Settings
  output?: Output
}

// Only the fields named below may be narrower than the SDK's.
describe("the SDK's types of responses are assignable to our types", () => {
  it('for searches', () => {
    expectTypeOf<Gaps<Top.SearchResult, Ours.SearchResponse>>().toBeNever()
    expectTypeOf<Gaps<Top.WebSearchResult, Ours.SearchResult>>().toBeNever()
  })

  it('for outputs', () => {
    expectTypeOf<Gaps<Runs.TaskRunTextOutput, Ours.TextOutput>>().toBeNever()
    expectTypeOf<Gaps<Runs.TaskRunJsonOutput, Ours.JsonOutput>>().toBeNever()
    expectTypeOf<Gaps<Runs.FieldBasis, Ours.FieldBasis>>().toBeNever()
    expectTypeOf<Gaps<Runs.Citation, Ours.Citation>>().toBeNever()
    expectTypeOf<Gaps<Runs.McpToolCall, Ours.McpToolCall>>().toBeNever()
  })

  it('for problems and warnings', () => {
    expectTypeOf<Gaps<Shared.ErrorResponse, Ours.ErrorResponse>>().toBeNever()
    expectTypeOf<Gaps<Shared.ErrorObject, Ours.ServiceProblem>>().toBeNever()
    expectTypeOf<Gaps<Shared.ErrorObject, Ours.TaskRunError>>().toBeNever()
    expectTypeOf<Gaps<Shared.Warning, Ours.Warning>>().toBeNever()
  })

  it('for runs, groups and their streams', () => {
    expectTypeOf<Exclude<Gaps<Runs.TaskRun, Ours.TaskRun>, 'created_at' | 'modified_at'>>().toBeNever()
    expectTypeOf<Exclude<Gaps<Groups.TaskGroup, Ours.TaskGroup>, 'created_at' | 'status'>>().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Groups.TaskGroupStatus, Ours.TaskGroupStatus>, 'modified_at' | 'status_message'>
    >().toBeNever()
    expectTypeOf<Exclude<Gaps<Groups.TaskGroupRunResponse, Ours.AddRunsResponse>, 'status'>>().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Groups.TaskGroupStatusEvent, Ours.TaskGroupStatusEvent>, 'status'>
    >().toBeNever()
    expectTypeOf<Exclude<Gaps<Runs.TaskRunEvent, Ours.TaskRunEvent>, 'input' | 'run'>>().toBeNever()
    expectTypeOf<Exclude<Gaps<Runs.TaskRunEvent, Ours.TaskRunState>, 'input' | 'run'>>().toBeNever()
    expectTypeOf<Exclude<Gaps<Runs.TaskRunResult, Ours.TaskRunState>, 'run'>>().toBeNever()
    expectTypeOf<Gaps<Runs.ErrorEvent, Ours.ErrorEvent>>().toBeNever()
  })

  it('for the inputs of runs', () => {
    expectTypeOf<
      Exclude<
        Gaps<Runs.RunInput, Ours.RunInput>,
        | 'advanced_settings'
        | 'enable_events'
        | 'mcp_servers'
        | 'metadata'
        | 'previous_interaction_id'
        | 'source_policy'
        | 'task_spec'
        | 'webhook'
      >
    >().toBeNever()
    expectTypeOf<Exclude<Gaps<Runs.TaskSpec, Ours.TaskSpec>, 'input_schema' | 'output_schema'>>().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Runs.McpServer, Ours.McpServer>, 'allowed_tools' | 'headers' | 'type'>
    >().toBeNever()
    expectTypeOf<Exclude<Gaps<Runs.Webhook, Ours.WebhookTarget>, 'event_types'>>().toBeNever()
    expectTypeOf<Exclude<Gaps<Runs.JsonSchema, Ours.JsonSchemaSpec>, 'type'>>().toBeNever()
    expectTypeOf<Exclude<Gaps<Shared.SourcePolicy, Ours.SourcePolicy>, 'after_date'>>().toBeNever()
  })

  it('for monitors', () => {
    type Changes = MonitorOf<'event_stream', Monitors.MonitorEventStreamResponseSettings, null>
    type Snapshot = MonitorOf<
      'snapshot',
      Monitors.MonitorSnapshotResponseSettings,
      Monitors.MonitorSnapshotOutput | null
    >
    expectTypeOf<
      Exclude<Gaps<Changes, Extract<Ours.Monitor, { type: 'event_stream' }>>, 'settings' | 'webhook'>
    >().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Snapshot, Extract<Ours.Monitor, { type: 'snapshot' }>>, 'webhook'>
    >().toBeNever()
    expectTypeOf<
      Exclude<
        Gaps<Monitors.MonitorEventStreamResponseSettings, Ours.EventStreamSettings>,
        'advanced_settings' | 'include_backfill' | 'output_schema'
      >
    >().toBeNever()
    expectTypeOf<Gaps<Monitors.MonitorSnapshotResponseSettings, Ours.SnapshotSettings>>().toBeNever()
    expectTypeOf<Gaps<Monitors.MonitorWebhook, Ours.MonitorWebhook>>().toBeNever()
  })

  it('for memories and found entities', () => {
    // Their `kind` is optional in the SDK. The client takes a result without one as unknown.
    expectTypeOf<Exclude<Gaps<Memories.TaskMemoryResult, Ours.TaskMemory>, 'kind'>>().toBeNever()
    expectTypeOf<Exclude<Gaps<Memories.MonitorMemoryResult, Ours.MonitorMemory>, 'kind'>>().toBeNever()
    expectTypeOf<Exclude<Gaps<Memories.FindAllMemoryResult, Ours.FindAllMemory>, 'kind'>>().toBeNever()
    expectTypeOf<Gaps<Memories.MonitorMemoryEvent, Ours.MonitorMemoryEvent>>().toBeNever()
    expectTypeOf<Gaps<FindAlls.FindAllEntitySearchResponse, Ours.EntitySearchResponse>>().toBeNever()
  })

  it('for the events of monitors', () => {
    expectTypeOf<
      Exclude<Gaps<Monitors.MonitorEventStreamEvent, Ours.MonitorEventStreamEvent>, 'event_type'>
    >().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Monitors.MonitorSnapshotEvent, Ours.MonitorSnapshotEvent>, 'event_type'>
    >().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Monitors.MonitorCompletionEvent, Ours.MonitorCompletionEvent>, 'event_type'>
    >().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Monitors.MonitorErrorEvent, Ours.MonitorErrorEvent>, 'event_type'>
    >().toBeNever()
    expectTypeOf<
      Exclude<Gaps<Monitors.PaginatedMonitorEvents, Ours.PaginatedMonitorEvents>, 'events'>
    >().toBeNever()
  })
})

// The fields named below are wider than the SDK's: the interface's processors, a run without one, any metadata, a task spec
// without an output schema, and future event types.
describe("our requests are assignable to the SDK's types", () => {
  it('for searches', () => {
    expectTypeOf<Gaps<Writable<Ours.SearchRequest>, Top.SearchParams>>().toBeNever()
  })

  it('for groups', () => {
    expectTypeOf<Gaps<Writable<Ours.GroupEventsQuery>, Groups.TaskGroupEventsParams>>().toBeNever()
    expectTypeOf<Gaps<Writable<Ours.GroupRunsQuery>, Groups.TaskGroupGetRunsParams>>().toBeNever()
    expectTypeOf<Gaps<Writable<Ours.AddRunsRequest>, Groups.TaskGroupAddRunsParams>>().toEqualTypeOf<
      'default_task_spec' | 'inputs'
    >()
    expectTypeOf<Gaps<Writable<Ours.RunInput>, Runs.RunInput>>().toEqualTypeOf<
      'metadata' | 'processor' | 'task_spec' | 'webhook'
    >()
    expectTypeOf<Gaps<Writable<Ours.TaskSpec>, Runs.TaskSpec>>().toEqualTypeOf<'output_schema'>()
    expectTypeOf<Gaps<Writable<Ours.McpServer>, Runs.McpServer>>().toBeNever()
  })

  it('for monitors', () => {
    expectTypeOf<Gaps<Writable<Ours.CreateMonitorRequest>, Monitors.MonitorCreateParams>>().toEqualTypeOf<
      'processor' | 'webhook'
    >()
    expectTypeOf<Gaps<Writable<Ours.MonitorEventsQuery>, Monitors.MonitorEventsParams>>().toBeNever()
    expectTypeOf<Gaps<Writable<Ours.EventStreamSettings>, Monitors.MonitorEventStreamSettings>>().toBeNever()
  })

  it('for memories, and for searches for entities', () => {
    expectTypeOf<Gaps<Writable<Ours.MemoryRetrieveRequest>, Memories.MemoryRetrieveParams>>().toBeNever()
    expectTypeOf<Gaps<Writable<Ours.MemoryEvictRequest>, Memories.MemoryEvictParams>>().toBeNever()
    expectTypeOf<Gaps<Writable<Ours.MemoryScope>, Memories.MemoryClearParams>>().toBeNever()
    expectTypeOf<Gaps<Writable<Ours.EntitySearchRequest>, FindAlls.FindAllEntitySearchParams>>().toBeNever()
  })
})
