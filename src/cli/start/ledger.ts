import type { Diagnostic } from 'rivulet'
import type { Appended, Entry } from 'rivulet/log'
import type { ServiceRecords } from 'rivulet/service'

/** The results of the demonstration. */
export interface Summary {
  readonly documents: number
  readonly search_results: number
  readonly runs_completed: number
  readonly runs_failed: number
  readonly monitor_events: number
  /** Runs whose answer names a licence, by licence, as a process of the log has counted them. */
  readonly licences: Readonly<Record<string, number>>
  /** Alerts of the rule that fired, and that are over. */
  readonly alerts: { readonly firing: number; readonly resolved: number }
  /** Requests to the webhook endpoint, including repeated ones. */
  readonly webhooks_received: number
  /** Repeated webhooks, and events that the log skipped since it had them. */
  readonly duplicates_dropped: number
  /** Reconnects after a failure. */
  readonly reconnects: number
  /** Events in the service's database that the consumer did not receive. */
  readonly lost: number
  /** Duplicates that the consumer received. */
  readonly doubled: number
}

/** Counts the entries of a consumer, to compare them with the service's own database. */
export class Ledger {
  readonly #runs = new Map<string, number>()
  readonly #monitorEvents = new Map<string, number>()
  readonly #alerts = { firing: 0, resolved: 0 }
  #completed = 0
  #failed = 0
  #webhooks = 0
  #skipped = 0
  #reconnects = 0

  /** The consumer received an entry. */
  entry(entry: Entry): void {
    // A more complete copy is not a duplicate.
    if (entry.revision > 1) return
    if (entry.type === 'monitor.event_stream') count(this.#monitorEvents, entry.id)
    if (entry.type === 'alert.firing') this.#alerts.firing += 1
    if (entry.type === 'alert.resolved') this.#alerts.resolved += 1
    if (entry.type !== 'task_run.state') return
    const { run } = entry.data
    if (count(this.#runs, run.run_id) > 1) return
    if (run.status === 'completed') this.#completed += 1
    else this.#failed += 1
  }

  /** The client reported something. */
  diagnostic(diagnostic: Diagnostic): void {
    // A reconnect after a proper close is not a failure.
    if (diagnostic.kind === 'reconnect' && diagnostic.cause !== undefined) this.#reconnects += 1
  }

  /** The webhook endpoint answered a request. */
  webhook(): void {
    this.#webhooks += 1
  }

  /** Events were appended to the log. */
  appended({ duplicates }: Appended): void {
    this.#skipped += duplicates
  }

  get alerts(): Summary['alerts'] {
    return { ...this.#alerts }
  }

  get webhooks(): number {
    return this.#webhooks
  }

  /** The number of events in the service's database that have not arrived. */
  missing(records: ServiceRecords): number {
    const runs = records.runs.filter(({ run_id }) => !this.#runs.has(run_id))
    return runs.length + reportedEvents(records).filter(({ id }) => !this.#monitorEvents.has(id)).length
  }

  /** The results, compared with the service's database. */
  summary(
    records: ServiceRecords,
    found: Pick<Summary, 'documents' | 'search_results' | 'licences'>,
  ): Summary {
    const { documents, search_results, licences } = found
    return {
      documents,
      search_results,
      runs_completed: this.#completed,
      runs_failed: this.#failed,
      monitor_events: this.#monitorEvents.size,
      licences,
      alerts: this.alerts,
      webhooks_received: this.#webhooks,
      duplicates_dropped: Math.max(0, this.#webhooks - announcements(records)) + this.#skipped,
      reconnects: this.#reconnects,
      lost: this.missing(records),
      doubled: surplus(this.#runs) + surplus(this.#monitorEvents),
    }
  }
}

/** The changes that monitors reported. Completions are listed only on request. */
function reportedEvents({ monitor_events }: ServiceRecords): ServiceRecords['monitor_events'] {
  return monitor_events.filter(({ event }) => event.event_type === 'event_stream')
}

/** The number of events that the service announces by webhook: each run, and each execution that found something. */
export function announcements(records: ServiceRecords): number {
  const executions = reportedEvents(records).map(
    ({ event }) => 'event_group_id' in event && event.event_group_id,
  )
  return records.runs.length + new Set(executions).size
}

function count(counts: Map<string, number>, id: string): number {
  const times = (counts.get(id) ?? 0) + 1
  counts.set(id, times)
  return times
}

function surplus(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, times) => sum + times - 1, 0)
}
