import { createResearchService } from 'rivulet/service'
import type { Fault, ResearchService } from 'rivulet/service'
import { installedDocuments } from '../installed.ts'
import { logServiceError } from '../log.ts'
import type { Logger } from '../log.ts'
import { FIELD_NOTES } from './field-notes.ts'

/** What the service does wrong, on purpose. */
const FAULTS: readonly Fault[] = [{ kind: 'cut', after: 3, times: 4 }, { kind: 'repeat' }]
/** How often each webhook therefore comes. */
export const DELIVERIES = 2
/** Runs at once: few, so that their results come as a stream and not as a heap. */
const CONCURRENCY = 2

/**
 * A service over the folders, by default the documents of the installed packages, and over the one of the field notes. It
 * cuts streams and repeats webhooks.
 */
export async function openFaultyService(
  docs: readonly string[] | undefined,
  fieldNotes: string,
  log: Logger,
): Promise<ResearchService> {
  const settings = {
    faults: FAULTS,
    concurrency: CONCURRENCY,
    onError: (error: unknown, ref_id?: string) => logServiceError(log, error, ref_id),
  }
  if (docs !== undefined) return createResearchService({ ...settings, docs: [...docs, fieldNotes] })
  const installed = await installedDocuments()
  return createResearchService({
    ...settings,
    docs: [...installed.docs, fieldNotes],
    include: (path) => path.startsWith(`${FIELD_NOTES}/`) || installed.include(path),
    enter: installed.enter,
  })
}
