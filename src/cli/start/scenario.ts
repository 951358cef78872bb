import { createClient } from 'rivulet'
import type { Entry, LogJob } from 'rivulet'
import { filter, firstValueFrom, merge, Subject } from 'rxjs'
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
export async function runScenario({
  docs,
  narrator,
  log: logger,
  signal,
  stay,
}: ScenarioOptions): Promise<Summary> {
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

  const narration = new Narration()
  const diagnostics = client.diagnostics.subscribe((diagnostic) => {
    audit.diagnostic(diagnostic)
    narration.add(() => narrator.diagnostic(diagnostic))
  })
  log.observe({
    async append(_, proceed) {
      const appended = await proceed()
      audit.appended(appended)
      return appended
    },
  })

  // The demonstrated pipeline.
  const webhooks = endpoint.receiver
  const monitors = [monitor.monitor_id]
  const recording = log.record({ client, monitors, taskGroups: [groupId], webhooks })
  const printed = new Ledger()
  const handled = new Subject<Entry>()
  const printing = log.consume('story', { types: TYPES, concurrency: 1, retries: 0 }, async (entry) => {
    await narration.add(() => narrator.event(entry))
    printed.entry(entry)
    handled.next(entry)
  })
  let licensed = 0
  const auditing = log.consume('audit', { types: TYPES }, (entry) => {
    audit.entry(entry)
    if (licenceOf(entry) !== undefined) licensed += 1
    handled.next(entry)
  })
  const counting = countLicences(log)
  const ruling = runResearchRule(log)

  const direct = async () => {
    // Sequentially, as documents arrive over a day.
    for (const note of fieldNotes.notes) {
      const reported = firstValueFrom(handled.pipe(filter((entry) => reports(entry, note))))
      await note.add()
      await narration.add(() => narrator.note(note))
      // The monitor's next scheduled execution is in an hour.
      await firstValueFrom(client.monitors.trigger(monitor.monitor_id, { signal }))
      await reported
    }
    const isComplete = () => {
      const records = service.records()
      const isRead = [printed, audit].every((ledger) => ledger.missing(records) === 0)
      const isOver = [printed, audit].every(({ alerts }) => alerts.resolved > 0)
      return isRead && isOver && audit.webhooks >= DELIVERIES * announcements(records)
    }
    if (!isComplete()) await firstValueFrom(merge(handled, endpoint.responses).pipe(filter(isComplete)))
    await recording.stop()
    return licencesOf(counting, licensed)
  }
  const failure = failureOf([recording, printing, auditing, counting, ruling])
  const licences = await Promise.race([direct(), failure, narration.failed, aborted(signal)])

  const found = { documents, search_results: answer.results.length, licences }
  const summary = audit.summary(service.records(), found)
  await narrator.summary(summary)
  if (stay !== undefined) {
    // The summary is printed last.
    diagnostics.unsubscribe()
    await printing.stop()
    await log.remove({ consumer: 'story' })
    // Runs may still be added to the group.
    const going = log.record({ client, monitors, taskGroups: [{ id: groupId, until: 'closed' }], webhooks })
    await Promise.race([stay(summary), failureOf([going])])
    await going.stop()
  }
  return summary
}

/** Prints one step after the other, from several sources. */
class Narration {
  readonly #failed = Promise.withResolvers<never>()
  #last: Promise<void> = Promise.resolve()

  /** Rejects with the first step that fails. */
  get failed(): Promise<never> {
    return this.#failed.promise
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
