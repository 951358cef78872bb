import { isObject } from '../../protocol/json.ts'
import { findAllSource } from '../../protocol/find-all-event.ts'
import { typesOf } from '../../protocol/event-types.ts'
import type { FindAllRun } from '../../protocol/find-all.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { isOlder } from './newer.ts'
import { idOfSource, pathPart, shownId } from './resource.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** A FindAll run. Its path is `[findAll]`, the param of `findAllView`. */
export interface FindAllsRow {
  /** The id of the run. */
  readonly findAll: string
  /** The last state of the run, with the counts of its candidates; null before the first one. */
  readonly run: FindAllRun | null
  /** The objective of the run, once it was extended or enriched; else null, since earlier events do not have it. */
  readonly objective: string | null
  /** Time of the last state, in RFC 3339; null if the service gave none. */
  readonly time: string | null
  /** When something of the run was last recorded, in Unix ms. */
  readonly updated: number
}

/** The prefix of the source of every FindAll run. */
export const FIND_ALLS = '/v1beta/findall/runs/'

/** The most that is kept of a run, in bytes. A page has all rows of this view. */
const MAX_RUN = 4_096

/** The most that is kept of an objective, in bytes. */
const MAX_OBJECTIVE = 2_048

/** The most that is kept of a time, in characters. */
const MAX_TIME = 64

/**
 * Each FindAll run of a log with its last state and the counts of its candidates, by `[findAll]`.
 *
 * @param options `timeToLive`: default 90 days.
 */
export function findAllsView(options: ViewAge = {}): View<FindAllsRow> {
  const timeToLive = ageOf(options, 90 * DAY)
  return view({
    version: 1,
    types: typesOf('findall'),
    timeToLive,
    key: ({ source }) => {
      const id = idOfSource(source, FIND_ALLS)
      return id === undefined ? undefined : [pathPart(id)]
    },
    source: ([id = '']) => findAllSource(id),
    reduce: (row: FindAllsRow | undefined, entry, [part = '']): FindAllsRow => {
      const findAll = row?.findAll ?? shownId(idOfSource(entry.source, FIND_ALLS) ?? part)
      const before = { run: row?.run ?? null, time: row?.time ?? null, objective: row?.objective ?? null }
      const updated = entry.recorded
      if (entry.type === 'findall.schema.updated') {
        return { findAll, ...before, objective: objectiveOf(entry) ?? before.objective, updated }
      }
      if (entry.type !== 'findall.status') return { findAll, ...before, updated }
      return { findAll, objective: before.objective, ...laterRun(before, entry, MAX_RUN), updated }
    },
  })
}

/** A run with the time of its state. */
export interface KnownRun {
  readonly run: FindAllRun | null
  readonly time: string | null
}

/** The later of a known state and an event's state: webhooks may be ahead of the stream. `maxBytes` is the maximum size that is kept. */
export function laterRun(
  { run, time }: KnownRun,
  { data, time: at }: EntryOf<'findall.status'>,
  maxBytes: number,
): KnownRun {
  const given: unknown = isObject(data) ? data.data : undefined
  if (!isRun(given) || isOlder(at, time)) return { run, time }
  const { findall_id, generator, status, created_at, modified_at } = given
  const rest = { findall_id, generator, status, created_at, modified_at }
  const kept = bounded(given, maxBytes, null).value ?? bounded(rest, maxBytes, null).value
  return {
    run: kept ?? run,
    time: at === null || at.length > MAX_TIME ? time : at,
  }
}

/** Whether the parts of a run that readers rely on are there. */
function isRun(given: unknown): given is FindAllRun {
  if (!isObject(given) || !isObject(given['status'])) return false
  const { status, metrics } = given['status']
  return typeof status === 'string' && isObject(metrics)
}

function objectiveOf({ data }: EntryOf<'findall.schema.updated'>): string | undefined {
  const schema: unknown = isObject(data) ? data.data : undefined
  const objective = isObject(schema) ? schema['objective'] : undefined
  return typeof objective === 'string' ? bounded(objective, MAX_OBJECTIVE, '').value : undefined
}
