import type { Diagnostic, ResearchEvent } from 'rivulet'
import type { ServiceRecords } from 'rivulet/service'

/** The results of the demonstration. */
export interface Summary {
  readonly documents: number
  readonly search_results: number
  readonly runs_completed: number
  readonly runs_failed: number
  readonly monitor_events: number
  /** Requests to the webhook endpoint, including repeated ones. */
  readonly webhooks_received: number
  /** Dropped duplicates, of any transport. */
  readonly duplicates_dropped: number
  /** Reconnects after a failure. */
  readonly reconnects: number
  /** Events in the service's database that the subscriber did not receive. */
  readonly lost: number
  /** Duplicates that the subscriber received. */
  readonly doubled: number
}

/** Counts the events of a subscriber, to compare them with the service's own database. */
export class Ledger {
  readonly #runs = new Map<string, number>()
  readonly #monitorEvents = new Map<string, number>()
  #completed = 0
  #failed = 0
  #webhooks = 0
  #deliveries = 0
  #duplicates = 0
  #reconnects = 0

  /** The subscriber received an event. */
  event(event: ResearchEvent): void {
    if (event.type === 'monitor.event_stream') count(this.#monitorEvents, event.id)
    if (event.type !== 'task_run.state') return
    const { run } = event.data
    if (count(this.#runs, run.run_id) > 1) return
    if (run.status === 'completed') this.#completed += 1
    else this.#failed += 1
  }

  /** The client reported something. */
  diagnostic(diagnostic: Diagnostic): void {
    if (diagnostic.kind === 'duplicate') this.#duplicates += 1
    // A reconnect after a proper close is not a failure.
    if (diagnostic.kind === 'reconnect' && diagnostic.cause !== undefined) this.#reconnects += 1
  }

  /** The webhook endpoint answered a request. */
  webhook(): void {
    this.#webhooks += 1
  }

  /** The receiver emitted a delivery. */
  delivery(): void {
    this.#deliveries += 1
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
  summary(records: ServiceRecords, found: Pick<Summary, 'documents' | 'search_results'>): Summary {
    return {
      ...found,
      runs_completed: this.#completed,
      runs_failed: this.#failed,
      monitor_events: this.#monitorEvents.size,
      webhooks_received: this.#webhooks,
      // The receiver drops repeated deliveries, the client other duplicates.
      duplicates_dropped: this.#webhooks - this.#deliveries + this.#duplicates,
      reconnects: this.#reconnects,
      lost: this.missing(records),
      doubled: surplus(this.#runs) + surplus(this.#monitorEvents),
    }
  }
}

/** The changes that monitors reported. Completions are listed only on request. */
export function reportedEvents({ monitor_events }: ServiceRecords): ServiceRecords['monitor_events'] {
  return monitor_events.filter(({ event }) => event.event_type === 'event_stream')
}

function count(counts: Map<string, number>, id: string): number {
  const times = (counts.get(id) ?? 0) + 1
  counts.set(id, times)
  return times
}

function surplus(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, times) => sum + times - 1, 0)
}
