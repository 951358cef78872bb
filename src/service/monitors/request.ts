import * as z from 'zod'
import {
  DEFAULT_PAGE_LIMIT,
  MAX_METADATA_KEY,
  MAX_METADATA_VALUE,
  MAX_PAGE_LIMIT,
  parseFrequency,
} from '../../protocol/limits.ts'
import { MOST_TERMS, queryTerms } from '../corpus/match.ts'
import {
  jsonSchema,
  list,
  MAX_CHOICES,
  MAX_ENTRIES,
  MAX_NAME_CHARACTERS,
  MAX_QUERY_CHARACTERS,
  record,
  limitedText,
} from '../http/request-limits.ts'
import { flag, httpUrl, location, optional, sourcePolicy } from '../http/validation.ts'
import { schemaFaults } from './schema-fields.ts'

/** What a monitor's webhook can be told of (§6.2; the last two beyond the interface document). */
const MONITOR_WEBHOOK_TYPES = [
  'monitor.event.detected',
  'monitor.execution.completed',
  'monitor.execution.failed',
] as const

/** Monitors a page, at the most; beyond the interface document. */
const MAX_MONITORS_LIMIT = 10_000
/** Monitors a page when none is asked for; beyond the interface document. */
const DEFAULT_MONITORS_LIMIT = 100

const outputSchema = z.object({
  type: z.literal('json'),
  json_schema: jsonSchema.superRefine((schema, context) => {
    for (const { field, reason } of schemaFaults(schema)) {
      const path = field === undefined ? [] : ['properties', field]
      context.addIssue({ code: 'custom', path, message: reason })
    }
  }),
})

const settings = z.object({
  query: limitedText(MAX_QUERY_CHARACTERS)
    .refine((query) => queryTerms(query).length > 0, 'Expected words to search for')
    .refine(
      (query) => queryTerms(query).length <= MOST_TERMS,
      `Expected at most ${MOST_TERMS} different words, as a match has all of them`,
    ),
  output_schema: optional(outputSchema),
  include_backfill: optional(z.boolean()),
  advanced_settings: optional(
    z.object({ source_policy: optional(sourcePolicy), location: optional(location) }),
  ),
})

const webhook = z.object({
  url: httpUrl,
  event_types: list(z.enum(MONITOR_WEBHOOK_TYPES), MAX_CHOICES).refine(
    ({ length }) => length > 0,
    'Expected at least one event type',
  ),
})

const metadata = record(
  z.string().max(MAX_METADATA_KEY, `Expected a key of at most ${MAX_METADATA_KEY} characters`),
  z.string().max(MAX_METADATA_VALUE, `Expected at most ${MAX_METADATA_VALUE} characters`),
  MAX_ENTRIES,
)

/** The body of `POST /v1/monitors`: its fields as in §2.1, the call itself beyond the interface document. */
export const createMonitorBody = z.object({
  type: z.literal('event_stream', {
    error: ({ input }) =>
      input === 'snapshot' ? 'Monitors of type snapshot are not served yet' : 'Expected event_stream',
  }),
  frequency: z
    .string()
    .refine((text) => parseFrequency(text) !== undefined, 'Expected 1h to 30d, such as 12h, 7d or 2w'),
  processor: z
    .enum(['lite', 'base', 'core'])
    .nullish()
    .transform((value) => value ?? 'lite'),
  settings,
  webhook: optional(webhook),
  metadata: optional(metadata),
})

/** What a monitor was created with. */
export type MonitorRequest = z.output<typeof createMonitorBody>

/** The paging parameters of `GET /v1/monitors/{monitor_id}/events` (§4.1). */
export const eventsPaging = z.object({
  cursor: z.string().optional(),
  limit: pageLimit(MAX_PAGE_LIMIT, DEFAULT_PAGE_LIMIT),
})

/** The other parameters of `GET /v1/monitors/{monitor_id}/events` (§4.1). */
export const eventsFilter = z.object({
  event_group_id: limitedText(MAX_NAME_CHARACTERS, 1).optional(),
  include_completions: flag(false),
})

/** The paging parameters of `GET /v1/monitors`; beyond the interface document. */
export const monitorsPaging = z.object({
  cursor: z.string().optional(),
  limit: pageLimit(MAX_MONITORS_LIMIT, DEFAULT_MONITORS_LIMIT),
})

/** The filters of `GET /v1/monitors`, each of which may be repeated; beyond the interface document. */
export const MONITOR_FILTERS = {
  type: ['event_stream', 'snapshot'],
  status: ['active', 'cancelled'],
} as const

function pageLimit(max: number, byDefault: number) {
  const message = `Expected an integer from 1 to ${max}`
  return z
    .string()
    .regex(/^\d+$/, message)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= max, message)
    .default(byDefault)
}
