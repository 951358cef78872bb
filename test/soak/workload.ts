import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import type { Research } from './research.ts'

/** Of 20 events, one is the monitor's. */
const MONITOR_SHARE = 20
/** Of 10 runs, one posts a webhook as well. */
const WEBHOOK_SHARE = 10
/** Documents that the monitor is to find at once. */
const NOTES_AT_ONCE = 5

/** What is asked of the service, so that there are events: a group of many runs, and a monitor that finds notes. */
export class Workload {
  readonly group: string
  readonly monitor: string
  readonly #research: Research
  readonly #client: ResearchClient
  readonly #events: number
  /** Notes to be written. */
  readonly #notes: number
  #written = 0
  #found = 0

  private constructor(
    research: Research,
    client: ResearchClient,
    events: number,
    { group, monitor }: { readonly group: string; readonly monitor: string },
  ) {
    this.#research = research
    this.#client = client
    this.#events = events
    this.#notes = notesOf(events)
    this.group = group
    this.monitor = monitor
  }

  /** Requests `events` events, some of which are sent to `url` as webhooks too. */
  static async begin(
    research: Research,
    { apiKey, events, url }: { readonly apiKey: string; readonly events: number; readonly url: string },
  ): Promise<Workload> {
    const client = createClient({ baseUrl: research.url, apiKey, quotas: false })
    const monitor = client.monitors.create({
      type: 'event_stream',
      frequency: '30d',
      // It looks at more matches than there are notes.
      processor: 'core',
      settings: { query: 'spring tide' },
      webhook: {
        url,
        event_types: ['monitor.event.detected', 'monitor.execution.completed', 'monitor.execution.failed'],
      },
    })
    const { monitor_id } = await firstValueFrom(monitor)
    const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
    const inputs = Array.from({ length: events - notesOf(events) }, (_, number) => ({
      input: `question ${number}`,
      processor: 'base',
      ...(number % WEBHOOK_SHARE === 0 && { webhook: { url, event_types: ['task_run.status'] } }),
    }))
    await lastValueFrom(client.taskGroups.addRuns(taskgroup_id, { inputs }))
    return new Workload(research, client, events, { group: taskgroup_id, monitor: monitor_id })
  }

  /** Whether all has been asked for. */
  get isComplete(): boolean {
    return this.#found === this.#notes
  }

  /** Writes as many notes as are due when so many events were handled, and has the monitor look for them now and then. */
  async goOn(handled: number): Promise<void> {
    const due = Math.min(this.#notes, (handled / this.#events) * this.#notes + NOTES_AT_ONCE)
    for (; this.#written < due; this.#written++) await this.#research.note()
    const isDue = this.#written - this.#found >= NOTES_AT_ONCE || this.#written === this.#notes
    if (this.isComplete || !isDue || this.#research.isBarred) return
    await firstValueFrom(this.#client.monitors.trigger(this.monitor))
    this.#found = this.#written
  }
}

function notesOf(events: number): number {
  return Math.floor(events / MONITOR_SHARE)
}
