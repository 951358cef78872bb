import { ENTITY_TYPES, FIND_ALL_GENERATORS, FIND_ALL_WEBHOOKS } from '../find-all.ts'
import type {
  EntitySearchRequest,
  ExtendRequest,
  FindAllEnrichment,
  FindAllEventsQuery,
  FindAllRequest,
  IngestRequest,
} from '../find-all.ts'
import * as s from './kinds.ts'
import { memoryScope } from './memory.ts'
import { toolServers } from './tasks.ts'

const matchLimit = s.integer(5, 1_000)

/** The body of `POST /v1beta/findall/ingest`; beyond the interface document, as the others of this file. */
export const ingestRequest = s.object<IngestRequest>({ objective: s.query }, {})

/** The body of `POST /v1beta/findall/entity-search`. */
export const entitySearchRequest = s.object<EntitySearchRequest>(
  { entity_type: s.oneOf(ENTITY_TYPES), objective: s.query },
  { match_limit: matchLimit },
)

/** The body of `POST /v1beta/findall/runs`. */
export const findAllRequest = s.object<FindAllRequest>(
  {
    objective: s.query,
    entity_type: s.text('name'),
    match_conditions: s.list(s.object({ name: s.text('name'), description: s.query }, {}), 'conditions', 1),
    generator: s.oneOf(FIND_ALL_GENERATORS),
    match_limit: matchLimit,
  },
  {
    exclude_list: s.list(s.object({ name: s.anyText('name'), url: s.anyText('url') }, {}), 'exclusions'),
    metadata: s.json('metadata'),
    memory_scope_key: memoryScope,
    webhook: s.object(
      {
        url: s.webUrl,
        event_types: s.withDefault(s.list(s.openOneOf(FIND_ALL_WEBHOOKS), 'choices'), FIND_ALL_WEBHOOKS),
      },
      {},
    ),
  },
)

/** The body of `POST /v1beta/findall/runs/{findall_id}/extend`. */
export const extendRequest = s.object<ExtendRequest>({ additional_match_limit: s.integer(1) }, {})

/** The body of `POST /v1beta/findall/runs/{findall_id}/enrich`. */
export const enrichRequest = s.object<FindAllEnrichment>(
  {
    output_schema: s.object(
      { type: s.withDefault(s.oneOf(['json']), 'json'), json_schema: s.json('schema') },
      {},
    ),
  },
  { processor: s.text('name'), mcp_servers: toolServers },
)

/** The query of `GET /v1beta/findall/runs/{findall_id}/events`. An empty `last_event_id` is the beginning of the stream. */
export const findAllEventsQuery = s.options<FindAllEventsQuery>({
  last_event_id: s.anyText(),
  timeout: s.seconds,
})
