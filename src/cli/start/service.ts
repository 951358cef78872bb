import { createResearchService } from 'rivulet/service'
import type { Fault, ResearchService } from 'rivulet/service'
import { installedDocuments } from '../installed.ts'
import { logServiceError } from '../log.ts'
import type { Logger } from '../log.ts'
import { FIELD_NOTES } from './field-notes.ts'

/** The injected faults. */
const FAULTS: readonly Fault[] = [{ kind: 'cut', after: 3, times: 4 }, { kind: 'repeat' }]
/** How often each webhook is therefore delivered. */
export const DELIVERIES = 2
/** Concurrent runs: few, so that their results do not arrive all together. */
const CONCURRENCY = 2

/** A service over the folders (default: the documents of the installed packages) and the field notes, with faults. */
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
