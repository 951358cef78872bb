import type { ResearchEventType, Via } from '../../protocol/event.ts'
import { familyOf } from '../../protocol/event-types.ts'
import type { EventFamily } from '../../protocol/event-types.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** How late events were recorded. */
interface ActivityLag {
  /** Number of events that have a time of the service, without the events of a first walk into the past. */
  readonly count: number
  /** Sum of the lags of all these events, in ms. */
  readonly sum: number
  /** Maximum lag, in ms. */
  readonly max: number
}

/** The numbers of entries and events in one minute, and their lag. Its path is `[minute]`, such as `2026-01-31T12:00Z`. */
export interface ActivityRow {
  /** When the minute began, in Unix ms. */
  readonly minute: number
  /** Number of entries, without ticks and entries of gateways. */
  readonly events: number
  /** Number of entries by type. */
  readonly types: Readonly<Partial<Record<ResearchEventType, number>>>
  /** The time from an event to its recording. */
  readonly lag: ActivityLag
}

const MINUTE = 60_000

/** Families that are no news of a source and no finding of a process. */
const IGNORED: ReadonlySet<string> = new Set<EventFamily>(['log', 'gateway'])

/** Ways of events that do not come from the service, and have no lag. */
const UNDELAYED: ReadonlySet<Via> = new Set(['process', 'log', 'app'])

/** Maximum number of types in a row, since programs may have their own types. */
const MAX_TYPES = 100

/**
 * The number of entries recorded in each minute, by type, and their lag, by `[minute]`.
 *
 * @param options `timeToLive`: default 24 hours.
 */
export function activityView(options: ViewAge = {}): View<ActivityRow> {
  const timeToLive = ageOf(options, DAY)
  return view({
    version: 1,
    timeToLive,
    where: ({ type }) => !IGNORED.has(familyOf(type)),
    key: ({ recorded }) => [minuteText(recorded)],
    // Counts are of all sources, so only a grant of all sources may see them.
    reduce: (row: ActivityRow | undefined, { type, time, via, backfill, recorded }): ActivityRow => {
      const { minute, events, types, lag } = row ?? {
        minute: recorded - (recorded % MINUTE),
        events: 0,
        types: {},
        lag: { count: 0, sum: 0, max: 0 },
      }
      const isDelayed = !UNDELAYED.has(via) && !backfill && time !== null
      const at = isDelayed ? Date.parse(time) : Number.NaN
      return {
        minute,
        events: events + 1,
        types: counted(types, type),
        lag: Number.isNaN(at) ? lag : withLag(lag, Math.max(0, recorded - at)),
      }
    },
  })
}

function minuteText(at: number): string {
  return new Date(at).toISOString().replace(/:\d\d\.\d+Z$/, 'Z')
}

function withLag({ count, sum, max }: ActivityLag, lag: number): ActivityLag {
  return { count: count + 1, sum: sum + lag, max: Math.max(max, lag) }
}

/** A map, since a type may be called `__proto__`. */
function counted(types: ActivityRow['types'], type: string): ActivityRow['types'] {
  const counts = new Map<string, number>(Object.entries(types))
  const known = counts.has(type) || counts.size < MAX_TYPES ? type : 'unknown'
  counts.set(known, (counts.get(known) ?? 0) + 1)
  return Object.fromEntries(counts)
}
