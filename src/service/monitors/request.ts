import type { CreateMonitorRequest, MonitorProcessor } from '../../protocol/monitor.ts'
import { createMonitorRequest } from '../../protocol/requests/monitors.ts'
import { MAX_TERMS, queryTerms } from '../corpus/query-terms.ts'
import { bodySchema } from '../http/request-schema.ts'
import { schemaFaults } from './schema-faults.ts'

type RequestOf<Type> = Extract<CreateMonitorRequest, { readonly type: Type }> & {
  readonly processor: MonitorProcessor
}

/** The settings of a monitor of a search query (§2.1). */
export type EventStreamSettings = EventStreamRequest['settings']

/** The request that a monitor of a search query was created with, or was updated to. */
export type EventStreamRequest = RequestOf<'event_stream'>

/** The request of a monitor of a run's output. The settings are the ones in its answers: they have the run's input and schema. */
export type SnapshotRequest = RequestOf<'snapshot'>

/** The request that a monitor was created with, or was updated to. */
export type MonitorRequest = EventStreamRequest | SnapshotRequest

/** The body of `POST /v1/monitors` (§2.1); beyond the interface document. */
export const createMonitorBody = bodySchema(createMonitorRequest).superRefine((request, context) => {
  const refuse = (path: string[], message: string) =>
    context.addIssue({ code: 'custom', path, message, input: request })
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
