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

/** How the demonstration is run. */
export interface ScenarioOptions {
  /** Folders to serve. Default: the documents of the installed packages. */
  readonly docs?: readonly string[] | undefined
  readonly narrator: Narrator
  readonly log: Logger
  /** Ends it, with the signal's reason as its error. */
  readonly signal: AbortSignal
}

/** Something to be told on the way. */
type Happening =
  | { readonly event: ResearchEvent }
  | { readonly diagnostic: Diagnostic }
  | { readonly note: FieldNote }

/**
 * The demonstration: a service over real documents that cuts its streams and repeats its webhooks, and a client that
 * searches, has packages researched, watches a folder, and gets all of it as one stream, each fact once.
 */
export async function runScenario({ docs, narrator, log, signal }: ScenarioOptions): Promise<Summary> {
  await using fieldNotes = await openFieldNotes()
  await using service = await openFaultyService(docs, fieldNotes.folder, log)
  await using endpoint = await openWebhookEndpoint(service.webhookSecret)
  const ledger = new Ledger()
  endpoint.answers.subscribe(() => ledger.webhook())

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

  // This is what it is all about. The taps only count.
  const deliveries = endpoint.receiver.deliveries.pipe(tap(() => ledger.delivery()))
  const events = client
    .watch({ monitors: [monitor.monitor_id], taskGroups: [groupId], webhooks: { deliveries }, signal })
    .pipe(
      tap((event) => ledger.event(event)),
      share(),
    )
  const notes = new Subject<FieldNote>()
  const over = new Subject<void>()
  const happenings = merge(
    events.pipe(map((event) => ({ event }))),
    client.diagnostics.pipe(
      tap((diagnostic) => ledger.diagnostic(diagnostic)),
      map((diagnostic) => ({ diagnostic })),
    ),
    notes.pipe(map((note) => ({ note }))),
  ).pipe(takeUntil(over))

  const direct = async () => {
    for (const note of fieldNotes.notes) {
      const reported = firstValueFrom(events.pipe(filter((event) => reports(event, note))))
      // One after the other, as documents come in over the day.
      await Promise.all([reported, addNote(client, monitor, note, notes, signal)])
    }
    const isComplete = () => {
      const records = service.records()
      return ledger.missing(records) === 0 && ledger.webhooks >= DELIVERIES * announcements(records)
    }
    if (!isComplete()) await firstValueFrom(merge(events, endpoint.answers).pipe(filter(isComplete)))
    // Whatever it still has goes through the stream now: were something told twice, it would show.
    endpoint.receiver.close()
  }
  const telling = tell(happenings, narrator)
  direct().then(
    () => over.next(),
    (error: unknown) => over.error(error),
  )
  await telling

  const summary = ledger.summary(service.records(), { documents, search_results: answer.results.length })
  await narrator.summary(summary)
  return summary
}

/** Adds a document and has the monitor look at once, for it would next look in an hour. */
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

async function tell(happenings: Observable<Happening>, narrator: Narrator): Promise<void> {
  for await (const happening of iterate(happenings)) {
    if ('event' in happening) await narrator.event(happening.event)
    else if ('note' in happening) await narrator.note(happening.note)
    else await narrator.diagnostic(happening.diagnostic)
  }
}

/** Whether an event is the monitor's word of the document. */
function reports(event: ResearchEvent, note: FieldNote): boolean {
  if (event.type !== 'monitor.event_stream') return false
  const { basis } = event.data.output
  return basis.some(({ citations = [] }) => citations.some(({ url }) => url === note.url))
}

/** How many facts the service announces by webhook: each run, and each execution that found something. */
function announcements(records: ServiceRecords): number {
  const executions = reportedEvents(records).map(
    ({ event }) => 'event_group_id' in event && event.event_group_id,
  )
  return records.runs.length + new Set(executions).size
}
