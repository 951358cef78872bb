/** One source of an answer (§2.3). */
export interface Citation {
  readonly url: string
  readonly title?: string | null
  /** Passages of the cited page; only some processors provide them. */
  readonly excerpts?: readonly string[] | null
}

/** The reasoning and citations of one output field (§2.3). */
export interface FieldBasis {
  readonly field: string
  readonly reasoning: string
  readonly citations?: readonly Citation[]
  /** `low`, `medium` or `high` have been seen; only some processors provide it. */
  readonly confidence?: string | null
}

/** A call that a run made to a tool server (§2.3). */
export interface McpToolCall {
  readonly tool_call_id: string
  readonly server_name: string
  readonly tool_name: string
  readonly arguments: string
  readonly content?: string | null
  readonly error?: string | null
}

interface OutputBase {
  readonly basis: readonly FieldBasis[]
  readonly mcp_tool_calls?: readonly McpToolCall[] | null
  /** @deprecated The service reports tool calls in `mcp_tool_calls` now (§9). */
  readonly beta_fields?: Readonly<Record<string, unknown>> | null
}

/** An answer in prose; its basis has one entry, for the field `output` (§2.3). */
export interface TextOutput extends OutputBase {
  readonly type: 'text'
  readonly content: string
}

/** An answer that follows the task's JSON schema; its basis has one entry per top-level field (§2.3). */
export interface JsonOutput extends OutputBase {
  readonly type: 'json'
  readonly content: Readonly<Record<string, unknown>>
  /** The schema that the service chose, if the task gave none. */
  readonly output_schema?: Readonly<Record<string, unknown>> | null
}

/** The output of a task run, discriminated by `type` (§2.3). */
export type TaskOutput = TextOutput | JsonOutput
