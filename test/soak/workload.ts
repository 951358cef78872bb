import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import type { Research } from './research.ts'

/** Of 10 runs, one posts a webhook as well. */
const WEBHOOK_SHARE = 10
/** Documents that the monitors are to find at once. */
const NOTES_AT_ONCE = 5
/** Runs that are added to a group at once, in turn with the other groups. */
const RUNS_AT_ONCE = 100

/** How much is asked of the service. */
export interface WorkloadOptions {
  readonly apiKey: string
  readonly events: number
  /** Number of groups and of monitors. */
  readonly groups: number
  readonly monitors: number
  /** Which part of the events is that of the monitors. */
  readonly monitorShare: number
  /** Where webhooks are sent, in turn. */
  readonly urls: readonly string[]
  /** How many of the monitors send webhooks as well. */
  readonly announced: number
}

/** What is asked of the service, so that there are events: groups of many runs, and monitors that find notes. */
export class Workload {
  readonly groups: readonly string[]
  readonly monitors: readonly string[]
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
    { events, notes }: { readonly events: number; readonly notes: number },
    { groups, monitors }: { readonly groups: readonly string[]; readonly monitors: readonly string[] },
  ) {
    this.#research = research
    this.#client = client
    this.#events = events
    this.#notes = notes
    this.groups = groups
    this.monitors = monitors
  }

  /** Requests `events` events, some of which are sent as webhooks too. */
  static async begin(research: Research, options: WorkloadOptions): Promise<Workload> {
    const { apiKey, events, urls, announced } = options
    const client = createClient({ baseUrl: research.url, apiKey, quotas: false })
    const notes = Math.floor((events * options.monitorShare) / options.monitors)
    const monitors: string[] = []
    for (let number = 0; number < options.monitors; number++) {
      const monitor = client.monitors.create({
        type: 'event_stream',
        frequency: '30d',
        // It looks at more matches than there are notes.
        processor: 'core',
        settings: { query: 'spring tide' },
        ...(number < announced && { webhook: { url: inTurn(urls, number), event_types: MONITOR_WEBHOOKS } }),
      })
      monitors.push((await firstValueFrom(monitor)).monitor_id)
    }
    const groups: string[] = []
    for (let number = 0; number < options.groups; number++) {
      groups.push((await firstValueFrom(client.taskGroups.create())).taskgroup_id)
    }
    const inputs = Array.from({ length: events - notes * monitors.length }, (_, number) => ({
      input: `question ${number}`,
      processor: 'base',
      ...(number % WEBHOOK_SHARE === 0 && {
        webhook: { url: inTurn(urls, number / WEBHOOK_SHARE), event_types: ['task_run.status'] },
      }),
    }))
    const atOnce = groups.length === 1 ? inputs.length : RUNS_AT_ONCE
    for (let from = 0; from < inputs.length; from += atOnce) {
      const group = inTurn(groups, from / atOnce)
      await lastValueFrom(client.taskGroups.addRuns(group, { inputs: inputs.slice(from, from + atOnce) }))
    }
    return new Workload(research, client, { events, notes }, { groups, monitors })
  }

  /** Whether all has been asked for. */
  get isComplete(): boolean {
    return this.#found === this.#notes
  }

  /** Writes as many notes as are due when so many events were handled, and has the monitors look for them now and then. */
  async goOn(handled: number): Promise<void> {
    const due = Math.min(this.#notes, (handled / this.#events) * this.#notes + NOTES_AT_ONCE)
    for (; this.#written < due; this.#written++) await this.#research.note()
    const isDue = this.#written - this.#found >= NOTES_AT_ONCE || this.#written === this.#notes
    if (this.isComplete || !isDue || this.#research.isBarred) return
    for (const monitor of this.monitors) await firstValueFrom(this.#client.monitors.trigger(monitor))
    this.#found = this.#written
  }
}

const MONITOR_WEBHOOKS = ['monitor.event.detected', 'monitor.execution.completed', 'monitor.execution.failed']

function inTurn(texts: readonly string[], number: number): string {
  const text = texts[number % texts.length]
  if (text === undefined) throw new RangeError('there is none')
  return text
}
