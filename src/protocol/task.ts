import type { TaskOutput } from './output.ts'
import type { Warning } from './problem.ts'

/** Every status of a task run (§2.7). */
export const RUN_STATUSES = [
  'queued',
  'action_required',
  'running',
  'completed',
  'failed',
  'cancelling',
  'cancelled',
] as const

/** The status of a task run (§2.7). */
export type RunStatus = (typeof RUN_STATUSES)[number]

/** Why a task run failed (§2.7). `ref_id` is beyond the interface document. */
export interface TaskRunError {
  readonly message: string
  readonly details?: unknown
  readonly detail?: unknown
  readonly ref_id?: string
}

/** A task run, as in run events and webhooks (§2.7). */
export interface TaskRun {
  readonly run_id: string
  readonly status: RunStatus
  readonly is_active: boolean
  readonly warnings?: readonly Warning[] | null
  readonly error?: TaskRunError | null
  readonly processor: string
  readonly metadata?: Readonly<Record<string, unknown>> | null
  readonly created_at: string | null
  readonly modified_at: string | null
  /** The group that the run belongs to; beyond the interface document. */
  readonly taskgroup_id?: string | null
  /** Passed as `previous_interaction_id` to continue with its context; beyond the interface document. */
  readonly interaction_id?: string
}

/** Which pages a search or a run may use (§2.8). Domain entries may be suffixes such as `.edu`. */
export interface SourcePolicy {
  readonly include_domains?: readonly string[]
  readonly exclude_domains?: readonly string[]
  /** YYYY-MM-DD. */
  readonly after_date?: string
}

/** An answer's shape as a JSON Schema (§2.8). */
export interface JsonSchemaSpec {
  readonly type: 'json'
  readonly json_schema: Readonly<Record<string, unknown>>
}

/** The form of a run's answer (§2.8); all but the `json` form are beyond the interface document. */
export type OutputSchema =
  | JsonSchemaSpec
  | { readonly type: 'text'; readonly description?: string }
  | { readonly type: 'auto' }
  | string

/** The task that a run carries out (§2.8). */
export interface TaskSpec {
  readonly output_schema?: OutputSchema
  /** A description; beyond the interface document also `{type: 'text', description}` or `{type: 'json', json_schema}`. */
  readonly input_schema?: string | Readonly<Record<string, unknown>>
}

/** The target to which the service posts webhooks (§2.8, §6). */
export interface WebhookTarget {
  readonly url: string
  readonly event_types: readonly string[]
}

/** A tool server that a run may call (§2.8). Its headers may contain a credential: never log them. */
export interface McpServer {
  readonly type: 'url'
  readonly url: string
  readonly name: string
  readonly headers?: Readonly<Record<string, string>>
  readonly allowed_tools?: readonly string[]
}

/** One run to add to a group (§2.8). */
export interface RunInput {
  readonly input: string | Readonly<Record<string, unknown>>
  readonly processor?: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The memory scope in which the completed run is kept, of at most 512 characters. Absent or null: the personal memory. */
  readonly memory_scope_key?: string | null
  readonly source_policy?: SourcePolicy
  readonly advanced_settings?: { readonly location?: string }
  readonly task_spec?: TaskSpec
  readonly previous_interaction_id?: string
  readonly mcp_servers?: readonly McpServer[]
  readonly enable_events?: boolean
  readonly webhook?: WebhookTarget
}

/** The response of `GET /v1/tasks/runs/{run_id}/result`; beyond the interface document. */
export interface TaskRunResult {
  readonly run: TaskRun
  readonly output: TaskOutput
}

/** The body of `POST /v1/tasks/runs`; beyond the interface document. */
export type CreateRunRequest = RunInput & { readonly processor: string }
