import type { FieldBasis, McpToolCall } from './output.ts'
import type { JsonSchemaSpec, McpServer, RunStatus, WebhookTarget } from './task.ts'

/* Shapes of FindAll. All of this file is beyond the interface document. */

/** Every generator, from the cheapest to the most thorough. */
export const FIND_ALL_GENERATORS = ['preview', 'base', 'core', 'pro'] as const

/** The effort with which candidates are generated. */
export type FindAllGenerator = (typeof FIND_ALL_GENERATORS)[number]

/** A condition that an entity must meet. */
export interface MatchCondition {
  readonly name: string
  readonly description: string
}

/** The information to find about each matched candidate. */
export interface FindAllEnrichment {
  readonly output_schema: JsonSchemaSpec
  /** Default `core`. */
  readonly processor?: string
  readonly mcp_servers?: readonly McpServer[]
}

/** The target of a FindAll run and its conditions. */
export interface FindAllSchema {
  readonly objective: string
  /** The kind of entity, such as `companies`. */
  readonly entity_type: string
  readonly match_conditions: readonly MatchCondition[]
  readonly enrichments?: readonly FindAllEnrichment[] | null
  readonly generator?: FindAllGenerator
  readonly match_limit?: number | null
}

/** The body of `POST /v1beta/findall/ingest`. */
export interface IngestRequest {
  /** The entities to find, described in natural language. */
  readonly objective: string
}

/** The types of entities that a search can find. */
export const ENTITY_TYPES = ['people', 'companies'] as const

/** The body of `POST /v1beta/findall/entity-search`. */
export interface EntitySearchRequest {
  /** The kind of entity: `people` or `companies`. */
  readonly entity_type: (typeof ENTITY_TYPES)[number]
  /** The entities to find, in natural language. */
  readonly objective: string
  /** The maximum number of entities, 5 to 1,000. Default 100. */
  readonly match_limit?: number
}

/** An entity that a search found. */
export interface FoundEntity {
  readonly name: string
  readonly url: string
  readonly description: string
}

/** The response of `POST /v1beta/findall/entity-search`, best entities first. */
export interface EntitySearchResponse {
  readonly entity_set_id: string
  readonly entities: readonly FoundEntity[]
}

/** The body of `POST /v1beta/findall/runs`. */
export interface FindAllRequest {
  readonly objective: string
  readonly entity_type: string
  readonly match_conditions: readonly MatchCondition[]
  readonly generator: FindAllGenerator
  /** The maximum number of matches, 5 to 1,000. */
  readonly match_limit: number
  /** Entities that are not candidates. */
  readonly exclude_list?: readonly { readonly name: string; readonly url: string }[]
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The memory scope in which the run is kept, of at most 512 characters. Absent or null: the personal memory. */
  readonly memory_scope_key?: string | null
  readonly webhook?: WebhookTarget
}

/** The body of `POST /v1beta/findall/runs/{findall_id}/extend`. */
export interface ExtendRequest {
  /** How many matches more, at least 1. */
  readonly additional_match_limit: number
}

/** Every reason for which a run ends. A service may add others. */
export const TERMINATION_REASONS = [
  'low_match_rate',
  'match_limit_met',
  'candidates_exhausted',
  'user_cancelled',
  'error_occurred',
  'timeout',
  'insufficient_funds',
] as const

/** The state of a FindAll run. */
export interface FindAllRunStatus {
  readonly status: RunStatus
  readonly is_active: boolean
  readonly metrics: {
    readonly generated_candidates_count: number
    readonly matched_candidates_count: number
  }
  /** Null while it is active. */
  readonly termination_reason: (typeof TERMINATION_REASONS)[number] | (string & {}) | null
}

/** A search for entities that match conditions. */
export interface FindAllRun {
  readonly findall_id: string
  readonly generator: FindAllGenerator
  readonly status: FindAllRunStatus
  readonly metadata?: Readonly<Record<string, unknown>> | null
  readonly created_at?: string | null
  readonly modified_at?: string | null
}

/** The finding about a candidate, for a condition or an enrichment. */
export interface CandidateOutput {
  readonly value: unknown
  readonly type: 'match_condition' | 'enrichment' | (string & {})
  /** Whether the candidate meets the condition. Only for a condition. */
  readonly is_matched?: boolean | null
}

/** An entity that may match. */
export interface FindAllCandidate {
  readonly candidate_id: string
  readonly name: string
  readonly url: string
  readonly description?: string | null
  readonly match_status: 'generated' | 'matched' | 'unmatched' | 'discarded'
  /** The outputs, by the name of the condition or of the enrichment's field. */
  readonly output?: Readonly<Record<string, CandidateOutput>> | null
  readonly basis?: readonly FieldBasis[] | null
  /** The calls of the tool servers of its enrichments (§2.3), in the order of the enrichments. */
  readonly mcp_tool_calls?: readonly McpToolCall[] | null
}

/** A run with its candidates at the time of the request. */
export interface FindAllResult {
  readonly run: FindAllRun
  readonly candidates: readonly FindAllCandidate[]
  /** The position in the stream of events up to which the candidates are complete; absent or null for its beginning. */
  readonly last_event_id?: string | null
}

/** The query of `GET /v1beta/findall/runs/{findall_id}/events`. */
export interface FindAllEventsQuery {
  /** Resume after this event. */
  readonly last_event_id?: string
  /** Seconds after which the service closes the stream. */
  readonly timeout?: number
}

/** A message of a FindAll run's stream or webhook. */
interface FindAllMessage<Type extends string, Data> {
  readonly type: Type
  /** Absent from webhooks. */
  readonly event_id?: string
  readonly timestamp: string
  readonly data: Data
}

/** The state of a run changed, or is repeated, which happens every 10 s. */
export type FindAllStatusEvent = FindAllMessage<
  'findall.status' | 'findall.run.completed' | 'findall.run.cancelled' | 'findall.run.failed',
  FindAllRun
>

/** Every change of a candidate. */
export const CANDIDATE_CHANGES = [
  'findall.candidate.generated',
  'findall.candidate.matched',
  'findall.candidate.unmatched',
  'findall.candidate.discarded',
  'findall.candidate.enriched',
] as const

/** A candidate changed. */
export type FindAllCandidateEvent = FindAllMessage<(typeof CANDIDATE_CHANGES)[number], FindAllCandidate>

/** The target of the run changed: the run was extended or enriched. */
export type FindAllSchemaEvent = FindAllMessage<'findall.schema.updated', FindAllSchema>

/** Every type of a FindAll run's webhooks. */
export const FIND_ALL_WEBHOOKS = [
  'findall.candidate.generated',
  'findall.candidate.matched',
  'findall.candidate.unmatched',
  'findall.candidate.enriched',
  'findall.run.completed',
  'findall.run.cancelled',
  'findall.run.failed',
] as const
