import type { Diagnostic, Monitor, ResearchEvent, SearchResponse } from 'rivulet'
import type { Output } from '../output.ts'
import type { FieldNote } from './field-notes.ts'
import type { Summary } from './ledger.ts'

/** Prints the demonstration, step by step. */
export interface Narrator {
  /** The service listens. */
  service(service: { readonly url: string; readonly documents: number }): Promise<void>
  /** The dashboard of the log is served. */
  dashboard(dashboard: { readonly url: string }): Promise<void>
  search(query: string, answer: SearchResponse): Promise<void>
  /** The runs are added and the monitor is created. The stream starts. */
  watching(watched: { readonly packages: readonly string[]; readonly monitor: Monitor }): Promise<void>
  event(event: ResearchEvent): Promise<void>
  /** A document was added to the monitored folder. */
  note(note: FieldNote): Promise<void>
  diagnostic(diagnostic: Diagnostic): Promise<void>
  summary(summary: Summary): Promise<void>
}

/** Prints NDJSON: events unchanged, and anything else as an object with one field named after its kind. The summary is last. */
export function jsonNarrator(output: Output): Narrator {
  return {
    service: (service) => output.value({ service }),
    dashboard: (dashboard) => output.value({ dashboard }),
    search: (query, answer) => output.value({ search: { query, ...answer } }),
    watching: (watching) => output.value({ watching }),
    event: (event) => output.value(event),
    note: ({ title, url }) => output.value({ document_added: { title, url } }),
    async diagnostic(diagnostic) {
      if (diagnostic.kind === 'duplicate') {
        const { id, source, type, via } = diagnostic.event
        await output.value({ duplicate: { id, source, type, via } })
      }
      if (diagnostic.kind === 'reconnect') {
        const { source, attempt, delay, cause } = diagnostic
        const error = cause instanceof Error ? cause.message : null
        await output.value({ reconnect: { source, attempt, delay, error } })
      }
    },
    summary: (summary) => output.value({ summary }),
  }
}
