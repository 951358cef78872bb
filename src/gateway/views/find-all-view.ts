import { isObject } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { findAllSource } from '../../protocol/find-all-event.ts'
import { CANDIDATE_CHANGES } from '../../protocol/find-all.ts'
import { typesOf } from '../../protocol/event-types.ts'
import type { FindAllRun, FindAllSchema } from '../../protocol/find-all.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { candidateOf, candidateRow } from './candidate-row.ts'
import type { CandidateEntry, CandidateRow } from './candidate-row.ts'
import { FIND_ALLS, laterRun } from './find-alls-view.ts'
import { isNotice, NOTICES, noticeRow } from './notice.ts'
import type { NoticeRow } from './notice.ts'
import { idOfSource, pathPart } from './resource.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** The FindAll run itself. Its path is `[findAll]`. */
interface FindAllRunRow {
  readonly kind: 'run'
  /** The last state of the run, with the counts of its candidates; null before the first one. */
  readonly run: FindAllRun | null
  /** The schema of the run, once it was extended or enriched; else null, since earlier events do not have it. */
  readonly schema: FindAllSchema | null
  /** Time of the last state, in RFC 3339; null if the service gave none. */
  readonly time: string | null
  /** When the last change was recorded, in Unix ms. */
  readonly updated: number
}

/** A row of {@link findAllView}, by `kind`. A notice has the path `[findAll, 'notice', id]`. */
export type FindAllRow = FindAllRunRow | CandidateRow | NoticeRow

const TYPES = [...typesOf('findall'), ...NOTICES] as const

/** The most that is kept of a run and of its schema, in bytes. */
const MAX_RUN = 32_768
const MAX_SCHEMA = 65_536

/**
 * One FindAll run: its state and counts, its candidates with their outputs and evidence, and the events that were missed, by the param
 * `findAll`.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function findAllView(options: ViewAge = {}): View<FindAllRow, 'findAll'> {
  const timeToLive = ageOf(options, 90 * DAY)
  return view({
    version: 1,
    types: TYPES,
    params: ['findAll'],
    timeToLive,
    key: pathOf,
    source: ([id = '']) => findAllSource(id),
    reduce: (row: FindAllRow | undefined, entry): FindAllRow | null => {
      if (isCandidate(entry)) {
        const before = row?.kind === 'candidate' ? row : undefined
        const candidate = candidateOf(entry)
        return candidate === undefined ? (before ?? null) : candidateRow(before, entry, candidate)
      }
      const { run, schema, time } = row?.kind === 'run' ? row : { run: null, schema: null, time: null }
      const updated = entry.recorded
      if (entry.type === 'findall.status') {
        return { kind: 'run', schema, ...laterRun({ run, time }, entry, MAX_RUN), updated }
      }
      if (entry.type === 'findall.schema.updated') {
        return { kind: 'run', run, time, schema: schemaOf(entry) ?? schema, updated }
      }
      return noticeRow(entry)
    },
  })
}

function schemaOf({ data }: EntryOf<'findall.schema.updated'>): FindAllSchema | undefined {
  const schema: unknown = isObject(data) ? data.data : undefined
  return isObject(schema) ? bounded(data.data, MAX_SCHEMA, undefined).value : undefined
}

function isCandidate(event: EntryOf<(typeof TYPES)[number]>): event is CandidateEntry {
  return CANDIDATE_CHANGES.some((change) => change === event.type)
}

function pathOf(entry: EntryOf<(typeof TYPES)[number]>): readonly string[] | undefined {
  const id = idOfSource(entry.source, FIND_ALLS)
  if (id === undefined) return undefined
  const part = pathPart(id)
  if (isCandidate(entry)) {
    const candidate = candidateOf(entry)
    return candidate && [part, 'candidate', pathPart(candidate.candidate_id)]
  }
  if (entry.type === 'findall.status' || entry.type === 'findall.schema.updated') return [part]
  const event: ResearchEvent = entry
  return isNotice(event) ? [part, 'notice', pathPart(event.id)] : undefined
}
