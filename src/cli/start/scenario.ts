import { createClient } from 'rivulet'
import type { Diagnostic, Monitor, ResearchClient, ResearchEvent } from 'rivulet'
import { iterate } from 'rivulet/operators'
import type { ServiceRecords } from 'rivulet/service'
import { filter, firstValueFrom, map, merge, share, Subject, takeUntil, tap } from 'rxjs'
import type { Observable } from 'rxjs'
import { knownPackages } from '../installed.ts'
import type { Logger } from '../log.ts'
import { openWebhookEndpoint } from '../webhook-endpoint.ts'
import { openFieldNotes } from './field-notes.ts'
import type { FieldNote } from './field-notes.ts'
import { Ledger, reportedEvents } from './ledger.ts'
import type { Summary } from './ledger.ts'
import type { Narrator } from './narrator.ts'
import { createFieldNotesMonitor, QUERY, researchPackages } from './research.ts'
import { DELIVERIES, openFaultyService } from './service.ts'

/** Settings of the demonstration. */
export interface ScenarioOptions {
  /** Folders to serve. Default: the documents of the installed packages. */
  readonly docs?: readonly string[] | undefined
  readonly narrator: Narrator
  readonly log: Logger
  /** Aborts it, with the signal's reason as its error. */
  readonly signal: AbortSignal
}

/** Something to print. */
type Step =
  | { readonly event: ResearchEvent }
  | { readonly diagnostic: Diagnostic }
  | { readonly note: FieldNote }

/**
 * The demonstration: a service over real documents that breaks its streams and repeats its webhooks, and a client that
 * searches, researches packages, watches a folder, and receives all events as one stream, each once.
 */
export async function runScenario({ docs, narrator, log, signal }: ScenarioOptions): Promise<Summary> {
  await using fieldNotes = await openFieldNotes()
  await using service = await openFaultyService(docs, fieldNotes.folder, log)
  await using endpoint = await openWebhookEndpoint(service.webhookSecret)
  const ledger = new Ledger()
  endpoint.responses.subscribe(() => ledger.webhook())

  const url = await service.listen()
  const documents = service.corpus.size
  await narrator.service({ url, documents })

  const client = createClient({ baseUrl: url, apiKey: service.apiKey, logger: log })
  const answer = await firstValueFrom(client.search({ search_queries: [QUERY] }, { signal }))
  await narrator.search(QUERY, answer)

  const packages = await knownPackages()
  const monitor = await createFieldNotesMonitor(client, endpoint.url, signal)
  const groupId = await researchPackages(client, packages, endpoint.url, signal)
  await narrator.watching({ packages, monitor })

  // The demonstrated pipeline. The taps only count.
  const deliveries = endpoint.receiver.deliveries.pipe(tap(() => ledger.delivery()))
  const events = client
    .watch({ monitors: [monitor.monitor_id], taskGroups: [groupId], webhooks: { deliveries }, signal })
    .pipe(
      tap((event) => ledger.event(event)),
      share(),
    )
  const notes = new Subject<FieldNote>()
  const done = new Subject<void>()
  const steps = merge(
    events.pipe(map((event) => ({ event }))),
    client.diagnostics.pipe(
      tap((diagnostic) => ledger.diagnostic(diagnostic)),
      map((diagnostic) => ({ diagnostic })),
    ),
    notes.pipe(map((note) => ({ note }))),
  ).pipe(takeUntil(done))

  const direct = async () => {
    for (const note of fieldNotes.notes) {
      const reported = firstValueFrom(events.pipe(filter((event) => reports(event, note))))
      // Sequentially, as documents arrive over a day.
      await Promise.all([reported, addNote(client, monitor, note, notes, signal)])
    }
    const isComplete = () => {
      const records = service.records()
      return ledger.missing(records) === 0 && ledger.webhooks >= DELIVERIES * announcements(records)
    }
    if (!isComplete()) await firstValueFrom(merge(events, endpoint.responses).pipe(filter(isComplete)))
    // This emits the waiting deliveries, so that a duplicate among them is counted.
    endpoint.receiver.close()
  }
  const printing = print(steps, narrator)
  direct().then(
    () => done.next(),
    (error: unknown) => done.error(error),
  )
  await printing

  const summary = ledger.summary(service.records(), { documents, search_results: answer.results.length })
  await narrator.summary(summary)
  return summary
}

/** Adds a document and triggers the monitor, whose next scheduled execution is in an hour. */
async function addNote(
  client: ResearchClient,
  monitor: Monitor,
  note: FieldNote,
  notes: Subject<FieldNote>,
  signal: AbortSignal,
): Promise<void> {
  await note.add()
  notes.next(note)
  await firstValueFrom(client.monitors.trigger(monitor.monitor_id, { signal }))
}

async function print(steps: Observable<Step>, narrator: Narrator): Promise<void> {
  for await (const step of iterate(steps)) {
    if ('event' in step) await narrator.event(step.event)
    else if ('note' in step) await narrator.note(step.note)
    else await narrator.diagnostic(step.diagnostic)
  }
}

/** Whether the event is the monitor's report of the document. */
function reports(event: ResearchEvent, note: FieldNote): boolean {
  if (event.type !== 'monitor.event_stream') return false
  const { basis } = event.data.output
  return basis.some(({ citations = [] }) => citations.some(({ url }) => url === note.url))
}

/** The number of events that the service announces by webhook: each run, and each execution that found something. */
function announcements(records: ServiceRecords): number {
  const executions = reportedEvents(records).map(
    ({ event }) => 'event_group_id' in event && event.event_group_id,
  )
  return records.runs.length + new Set(executions).size
}
