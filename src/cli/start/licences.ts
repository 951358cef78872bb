import type { Entry, EventLog, LogProcess } from 'rivulet/log'
import { filter, firstValueFrom, scan } from 'rxjs'

/** Names of licences, as answers have them in their sentences. */
const NAMES = /\b(MIT|Apache|ISC|BSD|MPL|GPL|Unlicense)\b/

/** The licence in the answer about a package, `other` for one of another name; undefined if there is none. */
export function licenceOf(entry: Entry): string | undefined {
  if (entry.type !== 'task_run.state' || entry.data.output?.type !== 'json') return undefined
  const { licence } = entry.data.output.content
  if (typeof licence !== 'string' || licence.trim() === '') return undefined
  return NAMES.exec(licence)?.[1] ?? 'other'
}

/** A process that counts the answers about packages by licence. */
export function countLicences(log: EventLog): LogProcess<number> {
  return log.process('licences', {
    version: 1,
    types: ['task_run.state'],
    key: licenceOf,
    init: () => 0,
    event: (count, _entry, context) => context.set(count + 1),
  })
}

/** The counts, once so many answers are counted. */
export function licencesOf(process: LogProcess<number>, answers: number): Promise<Record<string, number>> {
  const counts = process.changes().pipe(
    scan((all: Record<string, number>, { key, state }) => ({ ...all, [key]: state ?? 0 }), {}),
    filter((all) => Object.values(all).reduce((sum, count) => sum + count, 0) >= answers),
  )
  return answers === 0 ? Promise.resolve({}) : firstValueFrom(counts)
}
