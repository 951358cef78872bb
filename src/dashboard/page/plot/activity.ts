import type { ResearchEventType } from 'rivulet'
import type { ActivityRow } from '../rows.ts'

/** Families of event types, in the order in which a bar stacks them. */
export const FAMILIES = ['Monitors', 'Runs', 'Groups', 'Alerts', 'Sources', 'Other'] as const

/** A family of event types. */
type Family = (typeof FAMILIES)[number]

type FirstWord<Type extends string> = Type extends `${infer First}.${string}` ? First : Type

const FAMILY_OF: Readonly<Record<FirstWord<ResearchEventType>, Family>> = {
  monitor: 'Monitors',
  task_run: 'Runs',
  findall: 'Runs',
  task_group: 'Groups',
  alert: 'Alerts',
  source: 'Sources',
  stream: 'Sources',
  error: 'Sources',
  log: 'Other',
  gateway: 'Other',
  window: 'Other',
  join: 'Other',
  stage: 'Other',
  unknown: 'Other',
}

const BARS: ReadonlyMap<string, Family> = new Map(Object.entries(FAMILY_OF))

/** The bar of an event type. */
function barOf(type: string): Family {
  return BARS.get(type.split('.', 1)[0] ?? type) ?? 'Other'
}

/** The events recorded in one slice of time. */
export interface Slice {
  /** When it begins, in Unix ms. */
  readonly from: number
  readonly total: number
  readonly counts: Readonly<Record<Family, number>>
  /** Time between events and their recording, in ms; undefined if no event had a time. */
  readonly lag: { readonly mean: number; readonly max: number } | undefined
}

const MINUTE = 60_000

/**
 * The rows in slices of `minutes`, from the first one after `now − count · minutes` to the slice of `now`. Slices without events are there
 * too.
 */
export function slicesOf(
  rows: Iterable<ActivityRow>,
  now: number,
  minutes: number,
  count: number,
): readonly Slice[] {
  const size = minutes * MINUTE
  const end = Math.floor(now / size) * size + size
  const start = end - count * size
  const slices = Array.from({ length: count }, (_, index) => ({
    from: start + index * size,
    total: 0,
    counts: { Monitors: 0, Runs: 0, Groups: 0, Alerts: 0, Sources: 0, Other: 0 },
    lag: { count: 0, sum: 0, max: 0 },
  }))
  for (const { minute, types, lag } of rows) {
    const slice = slices[Math.floor((minute - start) / size)]
    if (slice === undefined) continue
    for (const [type, number] of Object.entries(types)) {
      slice.counts[barOf(type)] += number
      slice.total += number
    }
    slice.lag.count += lag.count
    slice.lag.sum += lag.sum
    slice.lag.max = Math.max(slice.lag.max, lag.max)
  }
  return slices.map(({ from, total, counts, lag }) => ({
    from,
    total,
    counts,
    lag: lag.count === 0 ? undefined : { mean: lag.sum / lag.count, max: lag.max },
  }))
}
