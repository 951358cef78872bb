import type { Alert } from '../../protocol/alert.ts'
import { typesOf } from '../../protocol/event-types.ts'
import { isObject } from '../../protocol/json.ts'
import type { EntryOf } from '../../log/consume/consumer-options.ts'
import { view } from '../view.ts'
import type { View } from '../view.ts'
import { bounded } from './bounded.ts'
import { pathPart } from './resource.ts'
import { ageOf, DAY } from './view-age.ts'
import type { ViewAge } from './view-age.ts'

/** An alert. Its path is `[rule, labels]`, both as text. */
export interface AlertRow extends Alert {
  /** When the last change was recorded, in Unix ms. */
  readonly changed: number
  /** The resolved alert that was there before one that is pending or unknown. It returns if that one does not fire. */
  readonly last?: AlertRow
  /** Set if a part was too long for the row. */
  readonly truncated?: true
}

const TYPES = typesOf('alert').filter((type) => type !== 'alert.late')

type AlertEntry = EntryOf<(typeof TYPES)[number]>

/** The prefix of the sources of rules. The name follows it as it is. */
const RULES = '/rules/'

/** The most that is kept of an alert, in bytes. */
const MAX_ALERT = 65_536

/**
 * The alerts of rules over a log: which are pending, fire, are over or are unknown, by `[rule, labels]`.
 *
 * @param options `timeToLive`: how long alerts that are over or unknown are kept, default 30 days. An alert that is pending or fires stays.
 */
export function alertsView(options: ViewAge = {}): View<AlertRow> {
  const timeToLive = ageOf(options, 30 * DAY)
  return view({
    version: 3,
    types: TYPES,
    timeToLive: (row: AlertRow) => (isActive(row) ? undefined : timeToLive),
    key: ({ source, data }) => {
      if (!source.startsWith(RULES) || !isObject(data)) return undefined
      return [pathPart(source.slice(RULES.length)), labelsText(data.labels)]
    },
    source: ([rule]) => (rule === undefined ? undefined : RULES + rule),
    reduce: (row: AlertRow | undefined, entry) => after(row, entry),
  })
}

function after(row: AlertRow | undefined, entry: AlertEntry): AlertRow | null {
  const changed = entry.recorded
  const none = { resolved: null, unknown: null, changed }
  const ended = row?.state === 'resolved' ? row : row?.last
  const last = ended && { last: ended }
  // The end of an earlier episode does not end this one.
  const isEarlier =
    row !== undefined && isActive(row) && 'since' in entry.data && row.since > entry.data.since
  switch (entry.type) {
    case 'alert.pending':
      if (row?.state === 'firing') return row
      return { ...shortened({ ...entry.data, ...none, state: 'pending' }), ...last }
    case 'alert.inactive':
      if (row?.state === 'pending' && !isEarlier) return row.last ?? null
      return row ?? null
    case 'alert.firing':
      return shortened({ ...entry.data, ...none, state: 'firing' })
    case 'alert.resolved': {
      const { reason: resolved, ...data } = entry.data
      return isEarlier ? row : shortened({ ...data, ...none, state: 'resolved', resolved })
    }
    case 'alert.unknown': {
      const { reason: unknown, ...data } = entry.data
      if (row?.state === 'firing') return { ...row, unknown, changed }
      const nothing = { annotations: {}, value: null, complete: false, events: [], episode: null }
      return { ...shortened({ ...data, ...nothing, ...none, state: 'unknown', unknown }), ...last }
    }
    case 'alert.known':
      if (row?.state === 'unknown') return row.last ?? null
      return row?.unknown ? { ...row, unknown: null, changed } : (row ?? null)
  }
}

function isActive({ state }: Pick<AlertRow, 'state'>): boolean {
  return state === 'pending' || state === 'firing'
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
