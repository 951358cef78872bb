import { createClient } from 'rivulet'
import type { Entry, EventLog, LogJob, LogProcess, RecordOptions } from 'rivulet/log'
import type { ServiceRecords } from 'rivulet/service'
import { filter, firstValueFrom, merge, type Observable, Subject } from 'rxjs'
import { knownPackages } from '../installed.ts'
import { openDashboard } from '../dashboard-endpoint.ts'
import type { Logger } from '../log.ts'
import { openWebhookEndpoint } from '../webhook-endpoint.ts'
import { openFieldNotes } from './field-notes.ts'
import type { FieldNote } from './field-notes.ts'
import { announcements, Ledger } from './ledger.ts'
import type { Summary } from './ledger.ts'
import { countLicences, licenceOf, licencesOf } from './licences.ts'
import type { Narrator } from './narrator.ts'
import { createFieldNotesMonitor, QUERY, researchPackages } from './research.ts'
import { runResearchRule } from './research-rule.ts'
import { DELIVERIES, openFaultyService } from './service.ts'
import { openTemporaryLog } from './temporary-log.ts'

/** Settings of the demonstration. */
export interface ScenarioOptions {
  /** Folders to serve. Default: the documents of the installed packages. */
  readonly docs?: readonly string[] | undefined
  readonly narrator: Narrator
  readonly log: Logger
  /** Aborts it, with the signal's reason as its error. */
  readonly signal: AbortSignal
  /** Called when all is done. Everything stays open, and is recorded, until it resolves. Default: everything is closed. */
  readonly stay?: ((summary: Summary) => Promise<void>) | undefined
}

/** The entries that are printed and counted. */
const TYPES = [
  'task_run.state',
  'task_group.status',
  'monitor.event_stream',
  'monitor.error',
  'source.failed',
  'stream.gap',
  'alert.firing',
  'alert.resolved',
] as const

/**
 * The demonstration: a service over real documents that breaks its streams and repeats its webhooks, and a client that
 * searches, researches packages, watches a folder, and records all events into a log, each once. Two consumers, a process and an
 * alert rule read the log.
 */
export async function runScenario(options: ScenarioOptions): Promise<Summary> {
  const { docs, narrator, log: logger, signal, stay } = options
  await using fieldNotes = await openFieldNotes()
  await using service = await openFaultyService(docs, fieldNotes.folder, logger)
  await using file = await openTemporaryLog()
  const { log } = file
  await using endpoint = await openWebhookEndpoint(service.webhookSecret, { inbox: log.inbox })
  const audit = new Ledger()
  endpoint.responses.subscribe(() => audit.webhook())

  const url = await service.listen()
  const documents = service.corpus.size
  await narrator.service({ url, documents })

  const client = createClient({ baseUrl: url, apiKey: service.apiKey, logger })
  const find = (cited: string) => service.corpus.document(cited)
  await using dashboard = await openDashboard({ log, client, documents: find, logger })
  await narrator.dashboard({ url: dashboard.url })

  const answer = await firstValueFrom(client.search({ search_queries: [QUERY] }, { signal }))
  await narrator.search(QUERY, answer)

  const packages = await knownPackages()
  const monitor = await createFieldNotesMonitor(client, endpoint.url, signal)
  const groupId = await researchPackages(client, packages, endpoint.url, signal)
  await narrator.watching({ packages, monitor })

  const narration = new Narration(narrator)
  const diagnostics = client.diagnostics.subscribe((diagnostic) => {
    audit.diagnostic(diagnostic)
    narration.add(() => narrator.diagnostic(diagnostic))
  })
  const recorded = { client, monitors: [monitor.monitor_id], webhooks: endpoint.receiver }
  const pipeline = new Pipeline(log, { ...recorded, taskGroups: [groupId] }, audit, narration)
  const direct = async () => {
    const trigger = () => firstValueFrom(client.monitors.trigger(monitor.monitor_id, { signal }))
    for (const note of fieldNotes.notes) await addNote(note, pipeline, narration, trigger)
    await pipeline.until(() => service.records(), endpoint.responses)
    return pipeline.end()
  }
  const licences = await Promise.race([direct(), pipeline.failed, narration.failed, aborted(signal)])

  const found = { documents, search_results: answer.results.length, licences }
  const summary = audit.summary(service.records(), found)
  await narrator.summary(summary)
  if (stay !== undefined) {
    // The summary is printed last.
    diagnostics.unsubscribe()
    await pipeline.stopPrinting()
    // Runs may still be added to the group.
    const going = log.record({ ...recorded, taskGroups: [{ id: groupId, until: 'closed' }] })
    await Promise.race([stay(summary), failureOf([going])])
    await going.stop()
  }
  return summary
}

/** Adds a document to the folder, and resolves when its report was read. */
async function addNote(
  note: FieldNote,
  pipeline: Pipeline,
  narration: Narration,
  trigger: () => Promise<void>,
): Promise<void> {
  const reported = firstValueFrom(pipeline.handled.pipe(filter((entry) => reports(entry, note))))
  await note.add()
  await narration.note(note)
  // The monitor's next scheduled execution is in an hour.
  await trigger()
  await reported
}

/** The demonstrated pipeline: a log with a recording, two consumers, a process and an alert rule. */
class Pipeline {
  /** The entries that a consumer has handled. */
  readonly handled = new Subject<Entry>()
  /** Rejects with the first failure of a job. */
  readonly failed: Promise<never>
  readonly #log: EventLog
  readonly #audit: Ledger
  readonly #printed = new Ledger()
  readonly #recording: LogJob
  readonly #printing: LogJob
  readonly #counting: LogProcess<number>
  /** Number of answers that name a licence. */
  #licensed = 0

  constructor(log: EventLog, recorded: RecordOptions, audit: Ledger, narration: Narration) {
    this.#log = log
    this.#audit = audit
    log.observe({
      async append(_, proceed) {
        const appended = await proceed()
        audit.appended(appended)
        return appended
      },
    })
    this.#recording = log.record(recorded)
    this.#printing = log.consume('story', { types: TYPES, concurrency: 1, retries: 0 }, async (entry) => {
      await narration.event(entry)
      this.#printed.entry(entry)
      this.handled.next(entry)
    })
    const auditing = log.consume('audit', { types: TYPES }, (entry) => {
      audit.entry(entry)
      if (licenceOf(entry) !== undefined) this.#licensed += 1
      this.handled.next(entry)
    })
    this.#counting = countLicences(log)
    const ruling = runResearchRule(log)
    this.failed = failureOf([this.#recording, this.#printing, auditing, this.#counting, ruling])
  }

  /** Resolves when both consumers have read what the service has, and its webhooks have arrived. */
  async until(recordsOf: () => ServiceRecords, responses: Observable<unknown>): Promise<void> {
    const ledgers = [this.#printed, this.#audit]
    const isComplete = () => {
      const records = recordsOf()
      const isRead = ledgers.every((ledger) => ledger.missing(records) === 0)
      const isOver = ledgers.every(({ alerts }) => alerts.resolved > 0)
      return isRead && isOver && this.#audit.webhooks >= DELIVERIES * announcements(records)
    }
    if (!isComplete()) await firstValueFrom(merge(this.handled, responses).pipe(filter(isComplete)))
  }

  /** Ends the recording, and resolves with the counts of the process. */
  async end(): Promise<Record<string, number>> {
    await this.#recording.stop()
    return licencesOf(this.#counting, this.#licensed)
  }

  async stopPrinting(): Promise<void> {
    await this.#printing.stop()
    await this.#log.remove({ consumer: 'story' })
  }
}

/** Prints one step after the other, from several sources. */
class Narration {
  readonly #narrator: Narrator
  readonly #failed = Promise.withResolvers<never>()
  #last: Promise<void> = Promise.resolve()

  constructor(narrator: Narrator) {
    this.#narrator = narrator
  }

  /** Rejects with the first step that fails. */
  get failed(): Promise<never> {
    return this.#failed.promise
  }

  event(entry: Entry): Promise<void> {
    return this.add(() => this.#narrator.event(entry))
  }

  note(note: FieldNote): Promise<void> {
    return this.add(() => this.#narrator.note(note))
  }

  /** Resolves when the step is printed. */
  add(print: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(print)
    this.#last.catch(this.#failed.reject)
    return this.#last
  }
}

/** Rejects with the reason of the signal. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

/** Rejects with the first failure of a job. */
function failureOf(jobs: readonly LogJob[]): Promise<never> {
  return new Promise((_, reject) => {
    for (const { done } of jobs) done.catch(reject)
  })
}

/** Whether the entry is the monitor's report of the document. */
function reports(entry: Entry, note: FieldNote): boolean {
  if (entry.type !== 'monitor.event_stream') return false
  const { basis } = entry.data.output
  return basis.some(({ citations = [] }) => citations.some(({ url }) => url === note.url))
}
