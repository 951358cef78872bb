import {
  FIND_ALL_GENERATORS,
  TERMINATION_REASONS,
  type CandidateOutput,
  type EntitySearchResponse,
  type FindAllCandidate,
  type FindAllCandidateEvent,
  type FindAllResult,
  type FindAllRun,
  type FindAllRunStatus,
  type FindAllSchema,
  type FindAllSchemaEvent,
  type FindAllStatusEvent,
  type FoundEntity,
  type MatchCondition,
} from '../../../protocol/find-all.ts'
import { enrichRequest } from '../../../protocol/requests/find-all.ts'
import type { ErrorEvent } from '../../../protocol/task-group.ts'
import { RUN_STATUSES } from '../../../protocol/task.ts'
import * as s from './kinds.ts'
import { fieldBasis, toolCall } from './outputs.ts'
import { errorEvent } from './tasks.ts'

/* All of this file is beyond the interface document. */

/** The target of a run and its conditions. */
export const findAllSchema = s.component(
  'FindAllSchema',
  s.object<FindAllSchema>(
    {
      objective: s.text,
      entity_type: s.text,
      match_conditions: s.list(s.object<MatchCondition>({ name: s.text, description: s.text }, {})),
    },
    {
      enrichments: s.orNull(s.list(s.requested('FindAllEnrichment', enrichRequest))),
      generator: s.oneOf(FIND_ALL_GENERATORS),
      match_limit: s.orNull(s.count),
    },
  ),
)

/** The response of `POST /v1beta/findall/entity-search`. */
export const entitySearchResponse = s.component(
  'EntitySearchResponse',
  s.object<EntitySearchResponse>(
    {
      entity_set_id: s.id,
      entities: s.list(s.object<FoundEntity>({ name: s.text, url: s.url, description: s.text }, {})),
    },
    {},
  ),
)

/** A run. */
export const findAllRun = s.component(
  'FindAllRun',
  s.object<FindAllRun>(
    {
      findall_id: s.id,
      generator: s.oneOf(FIND_ALL_GENERATORS),
      status: s.object<FindAllRunStatus>(
        {
          status: s.oneOf(RUN_STATUSES),
          is_active: s.flag,
          metrics: s.object<FindAllRunStatus['metrics']>(
            { generated_candidates_count: s.count, matched_candidates_count: s.count },
            {},
          ),
          termination_reason: s.orNull(s.openOneOf<string>(TERMINATION_REASONS)),
        },
        {},
      ),
    },
    {
      metadata: s.orNull(s.json),
      created_at: s.orNull(s.timestamp),
      modified_at: s.orNull(s.timestamp),
    },
  ),
)

const candidateFields = {
  required: {
    candidate_id: s.id,
    name: s.text,
    url: s.url,
    match_status: s.oneOf(['generated', 'matched', 'unmatched', 'discarded']),
  },
  optional: {
    description: s.orNull(s.text),
    output: s.orNull(
      s.record(
        s.object<CandidateOutput>(
          { value: s.unknown, type: s.openOneOf<string>(['match_condition', 'enrichment']) },
          { is_matched: s.orNull(s.flag) },
        ),
      ),
    ),
    basis: s.orNull(s.list(fieldBasis)),
    mcp_tool_calls: s.orNull(s.list(toolCall)),
  },
}

/** A candidate. */
const candidate = s.component(
  'FindAllCandidate',
  s.object<FindAllCandidate>(candidateFields.required, candidateFields.optional),
)

/** A run with its candidates. */
export const findAllResult = s.component(
  'FindAllResult',
  s.object<FindAllResult>(
    { run: findAllRun, candidates: s.list(candidate) },
    { last_event_id: s.orNull(s.id) },
  ),
)

type StatusMessage = FindAllStatusEvent & { readonly type: 'findall.status' }
type StreamEvent = StatusMessage | FindAllCandidateEvent | FindAllSchemaEvent | ErrorEvent

const candidateEvent = s.component(
  'FindAllCandidateEvent',
  s.object<FindAllCandidateEvent>(
    {
      type: s.oneOf([
        'findall.candidate.generated',
        'findall.candidate.matched',
        'findall.candidate.unmatched',
        'findall.candidate.discarded',
        'findall.candidate.enriched',
      ]),
      timestamp: s.timestamp,
      data: candidate,
    },
    { event_id: s.id },
  ),
)

/** A message in the stream of a run. */
export const findAllStreamEvent = s.component(
  'FindAllStreamEvent',
  s.variants<StreamEvent, 'type'>({
    'findall.status': s.component(
      'FindAllStatusEvent',
      s.object<StatusMessage>(
        { type: s.oneOf(['findall.status']), timestamp: s.timestamp, data: findAllRun },
        { event_id: s.id },
      ),
    ),
    'findall.candidate.generated': candidateEvent,
    'findall.candidate.matched': candidateEvent,
    'findall.candidate.unmatched': candidateEvent,
    'findall.candidate.discarded': candidateEvent,
    'findall.candidate.enriched': candidateEvent,
    'findall.schema.updated': s.component(
      'FindAllSchemaEvent',
      s.object<FindAllSchemaEvent>(
        { type: s.oneOf(['findall.schema.updated']), timestamp: s.timestamp, data: findAllSchema },
        { event_id: s.id },
      ),
    ),
    error: errorEvent,
  }),
)

interface Webhook<Type extends string, Data> {
  readonly type: Type
  readonly timestamp: string
  readonly data: Data
}

const announcedCandidate = s.component(
  'AnnouncedFindAllCandidate',
  s.object<FindAllCandidate & { readonly findall_id: string }>(
    { ...candidateFields.required, findall_id: s.id },
    candidateFields.optional,
  ),
)

function webhook<Type extends string, Data>(
  type: Type,
  data: s.AnswerSchema<Data>,
): s.AnswerSchema<Webhook<Type, Data>> {
  return s.object<Webhook<Type, Data>>({ type: s.oneOf([type]), timestamp: s.timestamp, data }, {})
}

/** The webhooks of a run. */
export const findAllWebhooks = {
  'findall.candidate.generated': webhook('findall.candidate.generated', announcedCandidate),
  'findall.candidate.matched': webhook('findall.candidate.matched', announcedCandidate),
  'findall.candidate.unmatched': webhook('findall.candidate.unmatched', announcedCandidate),
  'findall.candidate.enriched': webhook('findall.candidate.enriched', announcedCandidate),
  'findall.run.completed': webhook('findall.run.completed', findAllRun),
  'findall.run.cancelled': webhook('findall.run.cancelled', findAllRun),
  'findall.run.failed': webhook('findall.run.failed', findAllRun),
}
