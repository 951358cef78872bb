import type { AlertData, AlertResolved, AlertUnknown } from '../../protocol/alert.ts'
import { isObject } from '../../protocol/json.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { pathPart } from './resource.ts'
import { DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** An alert. Its path is `[rule, labels]`, both as text. */
export interface AlertRow extends Omit<AlertData, 'episode'> {
  /** `unknown`: it does not fire, and it is not known whether its condition holds. */
  readonly state: 'firing' | 'resolved' | 'unknown'
  /** See {@link AlertData}; null for a state that is unknown. */
  readonly episode: string | null
  /** Why a resolved alert is over; null for other alerts. */
  readonly resolved: AlertResolved['reason'] | null
  /** Why it is not known whether the condition holds, also for an alert that fires; null if it is known. */
  readonly unknown: AlertUnknown['reason'] | null
  /** When the last change was recorded, in Unix ms. */
  readonly changed: number
  /** Set if a part was too long for the row. */
  readonly truncated?: true
}

const TYPES = ['alert.firing', 'alert.resolved', 'alert.unknown'] as const

type AlertEntry = EntryOf<(typeof TYPES)[number]>

/** The prefix of the sources of rules. The name follows it as it is. */
const RULES = '/rules/'

/** The most that is kept of an alert, in bytes. */
const MAX_ALERT = 65_536

/**
 * The alerts of rules over a log: which fire, which are over and which are unknown, by `[rule, labels]`. Pending alerts are not in it,
 * since they have no events: `ruleStatus` of `rivulet/rules` has them.
 *
 * @param options `timeToLive`: how long alerts that do not fire are kept, default 30 days. An alert that fires stays.
 */
export function alertsView({ timeToLive = 30 * DAY }: ViewAge = {}): View<AlertRow> {
  return view({
    version: 1,
    types: TYPES,
    timeToLive: (row: AlertRow) => (row.state === 'firing' ? undefined : timeToLive),
    key: ({ source, data }) => {
      if (!source.startsWith(RULES) || !isObject(data)) return undefined
      return [pathPart(source.slice(RULES.length)), labelsText(data.labels)]
    },
    source: ([rule]) => (rule === undefined ? undefined : RULES + rule),
    reduce: (row: AlertRow | undefined, entry): AlertRow => after(row, entry),
  })
}

function after(row: AlertRow | undefined, entry: AlertEntry): AlertRow {
  const changed = entry.recorded
  if (entry.type === 'alert.unknown') {
    const { reason: unknown, ...data } = entry.data
    if (row?.state === 'firing') return { ...row, unknown, changed }
    const none = { annotations: {}, value: null, events: [], episode: null, resolved: null }
    return shortened({ ...data, ...none, state: 'unknown', unknown, changed })
  }
  if (entry.type === 'alert.firing') {
    return shortened({ ...entry.data, state: 'firing', resolved: null, unknown: null, changed })
  }
  const { reason: resolved, ...data } = entry.data
  // The end of an earlier episode does not end this one.
  if (row?.state === 'firing' && row.since > data.since) return row
  return shortened({ ...data, state: 'resolved', resolved, unknown: null, changed })
}

function shortened(row: AlertRow): AlertRow {
  const nothing = { key: {}, labels: {}, annotations: {}, value: null, events: [], episode: null }
  const { value, isTruncated } = bounded(row, MAX_ALERT, undefined)
  if (value === undefined) return { ...row, alert: '', group: null, since: '', ...nothing, truncated: true }
  return isTruncated ? { ...value, truncated: true } : value
}

/** The labels as text, whatever their order. */
function labelsText(labels: unknown): string {
  const sorted = isObject(labels) ? Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)) : []
  const text = JSON.stringify(sorted)
  return pathPart(text)
}
