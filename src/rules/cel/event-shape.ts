import type { OwnEventData, ResearchEvent } from '../../protocol/event.ts'
import { EVENT_TYPES } from '../../protocol/event-types.ts'

/** The fields that an expression may use within a value: `any` is open, `value` has no fields, a list has the shape of its members. */
export type Shape = 'any' | 'value' | readonly [Shape] | { readonly [field: string]: Shape }

/**
 * The type that {@link DATA_SHAPES} must have, from the types of `src/protocol`. A test compares the two, so that no field is missing and
 * none is invented.
 */
export type DataShapes = { readonly [Type in keyof OwnEventData]: ShapeOf<OwnEventData[Type]> }

/** The shape of a TypeScript type. */
type ShapeOf<T> = unknown extends T ? 'any' : ShapeOfObject<Extract<Exclude<T, string>, object>>

type ShapeOfObject<T> = [T] extends [never]
  ? 'value'
  : [T] extends [Error]
    ? 'any'
    : [T] extends [readonly (infer Member)[]]
      ? readonly [ShapeOf<Member>]
      : string extends FieldOf<T>
        ? 'any'
        : { readonly [Field in FieldOf<T>]: ShapeOf<ValueOf<T, Field>> }

type FieldOf<T> = T extends unknown ? keyof T : never
type ValueOf<T, Field> = T extends unknown ? (Field extends keyof T ? T[Field] : never) : never

const CITATION = { url: 'value', title: 'value', excerpts: ['value'] } as const

const BASIS = [{ field: 'value', reasoning: 'value', citations: [CITATION], confidence: 'value' }] as const

const TOOL_CALLS = [
  {
    tool_call_id: 'value',
    server_name: 'value',
    tool_name: 'value',
    arguments: 'value',
    content: 'value',
    error: 'value',
  },
] as const

const OUTPUT = {
  type: 'value',
  content: 'any',
  basis: BASIS,
  mcp_tool_calls: TOOL_CALLS,
  beta_fields: 'any',
  output_schema: 'any',
} as const

const CHANGE = {
  event_type: 'value',
  event_id: 'value',
  event_group_id: 'value',
  event_date: 'value',
} as const

const WARNING = { type: 'value', message: 'value', detail: 'any' } as const

const SOURCE_POLICY = {
  include_domains: ['value'],
  exclude_domains: ['value'],
  after_date: 'value',
} as const

const WEBHOOK = { url: 'value', event_types: ['value'] } as const

const RUN = {
  run_id: 'value',
  status: 'value',
  is_active: 'value',
  warnings: [WARNING],
  error: { message: 'value', details: 'any', detail: 'any', ref_id: 'value' },
  processor: 'value',
  metadata: 'any',
  created_at: 'value',
  modified_at: 'value',
  taskgroup_id: 'value',
  interaction_id: 'value',
} as const

const TOOL_SERVER = {
  type: 'value',
  url: 'value',
  name: 'value',
  headers: 'any',
  allowed_tools: ['value'],
} as const

const INPUT = {
  input: 'any',
  processor: 'value',
  metadata: 'any',
  memory_scope_key: 'value',
  source_policy: SOURCE_POLICY,
  advanced_settings: { location: 'value' },
  task_spec: {
    output_schema: { type: 'value', json_schema: 'any', description: 'value' },
    input_schema: 'any',
  },
  previous_interaction_id: 'value',
  mcp_servers: [TOOL_SERVER],
  enable_events: 'value',
  webhook: WEBHOOK,
} as const

const CAUSE = { source: 'value', id: 'value', type: 'value', time: 'value' } as const

const ALERT = {
  alert: 'value',
  group: 'value',
  key: 'any',
  labels: 'any',
  annotations: 'any',
  value: 'value',
  complete: 'value',
  since: 'value',
  events: [CAUSE],
  episode: 'value',
} as const

const FIND_ALL_MESSAGE = { type: 'value', event_id: 'value', timestamp: 'value' } as const

const CANDIDATE = {
  ...FIND_ALL_MESSAGE,
  data: {
    candidate_id: 'value',
    name: 'value',
    url: 'value',
    description: 'value',
    match_status: 'value',
    output: 'any',
    basis: BASIS,
    mcp_tool_calls: TOOL_CALLS,
  },
} as const

/** The shape of `data` of each type of event. */
export const DATA_SHAPES = {
  'monitor.event_stream': { ...CHANGE, output: OUTPUT },
  'monitor.snapshot': { ...CHANGE, changed_output: OUTPUT, previous_output: OUTPUT },
  'monitor.completion': { event_type: 'value', timestamp: 'value', event_group_id: 'value' },
  'monitor.error': {
    event_type: 'value',
    error_message: 'value',
    timestamp: 'value',
    event_group_id: 'value',
  },
  'task_group.status': {
    type: 'value',
    event_id: 'value',
    status: {
      num_task_runs: 'value',
      task_run_status_counts: {
        queued: 'value',
        action_required: 'value',
        running: 'value',
        completed: 'value',
        failed: 'value',
        cancelling: 'value',
        cancelled: 'value',
      },
      is_active: 'value',
      status_message: 'value',
      modified_at: 'value',
    },
  },
  'task_run.state': { run: RUN, input: INPUT, output: OUTPUT },
  'task_run.progress_stats': {
    type: 'value',
    source_stats: {
      num_sources_considered: 'value',
      num_sources_read: 'value',
      sources_read_sample: ['value'],
    },
    progress_meter: 'value',
  },
  'task_run.progress_msg': { type: 'value', message: 'value', timestamp: 'value' },
  'findall.status': {
    ...FIND_ALL_MESSAGE,
    data: {
      findall_id: 'value',
      generator: 'value',
      status: {
        status: 'value',
        is_active: 'value',
        metrics: { generated_candidates_count: 'value', matched_candidates_count: 'value' },
        termination_reason: 'value',
      },
      metadata: 'any',
      created_at: 'value',
      modified_at: 'value',
    },
  },
  'findall.candidate.generated': CANDIDATE,
  'findall.candidate.matched': CANDIDATE,
  'findall.candidate.unmatched': CANDIDATE,
  'findall.candidate.discarded': CANDIDATE,
  'findall.candidate.enriched': CANDIDATE,
  'findall.schema.updated': {
    ...FIND_ALL_MESSAGE,
    data: {
      objective: 'value',
      entity_type: 'value',
      match_conditions: [{ name: 'value', description: 'value' }],
      enrichments: [
        {
          output_schema: { type: 'value', json_schema: 'any' },
          processor: 'value',
          mcp_servers: [TOOL_SERVER],
        },
      ],
      generator: 'value',
      match_limit: 'value',
    },
  },
  error: {
    type: 'value',
    event_id: 'value',
    error: { ref_id: 'value', message: 'value', detail: 'any' },
  },
  'stream.gap': { from: 'value', to: 'value', reason: 'value' },
  'stream.oversized': { limit: 'value' },
  'source.failed': { error: 'any' },
  'monitor.cancelled': {
    monitor_id: 'value',
    type: 'value',
    status: 'value',
    frequency: 'value',
    processor: 'value',
    created_at: 'value',
    last_run_at: 'value',
    webhook: WEBHOOK,
    metadata: 'any',
    settings: {
      query: 'any',
      output_schema: 'any',
      include_backfill: 'value',
      advanced_settings: { source_policy: SOURCE_POLICY, location: 'value' },
      task_run_id: 'value',
    },
    output: { latest_snapshot: OUTPUT },
  },
  'source.live': { lost: 'value' },
  'source.lost': { message: 'value' },
  'source.behind': { through: 'value', until: 'value' },
  'source.caught_up': { through: 'value' },
  'log.tick': { at: 'value', through: 'value', complete: 'value' },
  'log.progress': { through: 'value', complete: 'value', part: 'value' },
  'log.clock': { state: 'value', by: 'value', at: 'value' },
  'log.gap': { from: 'value', to: 'value' },
  'alert.pending': ALERT,
  'alert.inactive': ALERT,
  'alert.firing': ALERT,
  'alert.resolved': { ...ALERT, reason: 'value' },
  'alert.unknown': {
    alert: 'value',
    group: 'value',
    key: 'any',
    labels: 'any',
    reason: 'value',
    since: 'value',
  },
  'alert.known': { alert: 'value', group: 'value', key: 'any', labels: 'any' },
  'alert.late': {
    alert: 'value',
    group: 'value',
    key: 'any',
    labels: 'any',
    event: CAUSE,
    count: 'value',
    by: 'value',
    since: 'value',
  },
  'gateway.search': {
    sub: 'value',
    session: 'value',
    request: {
      search_queries: ['value'],
      objective: 'value',
      mode: 'value',
      advanced_settings: {
        max_results: 'value',
        source_policy: SOURCE_POLICY,
        location: 'value',
        excerpt_settings: { max_chars_per_result: 'value' },
        fetch_policy: { max_age_seconds: 'value', timeout_seconds: 'value', disable_cache_fallback: 'value' },
      },
      max_chars_total: 'value',
      session_id: 'value',
      client_model: 'value',
    },
    response: {
      results: [{ url: 'value', title: 'value', publish_date: 'value', excerpts: ['value'] }],
      warnings: [WARNING],
      search_id: 'value',
      session_id: 'value',
      usage: [{ name: 'value', count: 'value' }],
    },
    truncated: 'value',
  },
  'gateway.session': { sub: 'value', grant: 'value', exchange: 'value' },
  'gateway.revoked': { sub: 'value', grant: 'value', at: 'value' },
  'window.result': {
    stage: 'value',
    key: 'value',
    start: 'value',
    end: 'value',
    complete: 'value',
    values: 'any',
    byArrival: 'value',
  },
  'join.result': {
    stage: 'value',
    key: 'value',
    time: 'value',
    left: 'any',
    right: 'any',
    complete: 'value',
  },
  'stage.dropped': {
    stage: 'value',
    key: 'value',
    start: 'value',
    end: 'value',
    reason: 'value',
    count: 'value',
  },
  unknown: 'any',
} as const satisfies DataShapes

/** The fields of an event besides `data`. `backfill` and `revision` come from its entry in a log. */
export const ENVELOPE_FIELDS = {
  id: 'value',
  source: 'value',
  type: 'value',
  time: 'value',
  received: 'value',
  via: 'value',
  revision: 'value',
  backfill: 'value',
} as const satisfies Partial<Record<keyof ResearchEvent, 'value'> & Record<'revision' | 'backfill', 'value'>>

/** The shapes of `data` for these types; without types, the shapes for all but `unknown`. The shape for an application's own type is open. */
export function dataShapes(types: ReadonlySet<string> | undefined): readonly Shape[] {
  const known = new Map<string, Shape>(Object.entries(DATA_SHAPES))
  const wanted = types ?? EVENT_TYPES.filter((type) => type !== 'unknown')
  return Array.from(wanted, (type) => known.get(type) ?? 'any')
}
