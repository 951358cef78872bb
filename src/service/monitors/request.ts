import type { CreateMonitorRequest, MonitorProcessor } from '../../protocol/monitor.ts'
import { createMonitorRequest } from '../../protocol/requests/monitors.ts'
import { MAX_TERMS, queryTerms } from '../corpus/match.ts'
import { bodySchema } from '../http/request-schema.ts'
import { schemaFaults } from './schema-fields.ts'

/** The request that a monitor was created with. */
export type MonitorRequest = Extract<CreateMonitorRequest, { readonly type: 'event_stream' }> & {
  readonly processor: MonitorProcessor
}

/** The body of `POST /v1/monitors` (§2.1), as far as this service implements it; beyond the interface document. */
export const createMonitorBody = bodySchema(createMonitorRequest).superRefine((request, context) => {
  const refuse = (path: string[], message: string) =>
    context.addIssue({ code: 'custom', path, message, input: request })
  // The route refuses snapshot monitors, since a refinement cannot narrow the type.
  if (context.issues.length > 0 || request.type !== 'event_stream') return
  const { query, output_schema } = request.settings
  const terms = queryTerms(query).length
  if (terms === 0) refuse(['settings', 'query'], 'Expected words to search for')
  const tooMany = `Expected at most ${MAX_TERMS} different words, as a match has all of them`
  if (terms > MAX_TERMS) refuse(['settings', 'query'], tooMany)
  const faults = output_schema === undefined ? [] : schemaFaults(output_schema.json_schema)
  for (const { field, reason } of faults) {
    const path = ['settings', 'output_schema', 'json_schema']
    refuse(field === undefined ? path : [...path, 'properties', field], reason)
  }
})
