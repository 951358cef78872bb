import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions, checkTime } from '../../protocol/check.ts'
import { executionOf } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import { parseDuration } from '../../protocol/duration.ts'

/** How many events of a history were placed by what. */
export interface PlacedCounts {
  /** Number of events that are placed by their own time. */
  readonly time: number
  /** Number of events placed between the completions and errors beside them, or at the monitor's frequency from the nearest one. */
  readonly completion: number
  /** Number of events placed at the first moment of their `event_date`. */
  readonly date: number
  /** Number of events that are not placed. */
  readonly unplaced: number
}

/** The history of a monitor, with times. */
export interface PlacedHistory {
  /** Oldest first. `received` is the time at which an event was placed. */
  readonly events: readonly ResearchEvent[]
  readonly placed: PlacedCounts
  /** The present of the history, in Unix ms: no event is later. */
  readonly now: number
}

/** Settings of {@link placeHistory}. */
interface PlaceOptions {
  /** The monitor's `frequency`, such as `1h`. Default: the median time between its completions and errors. */
  readonly frequency?: string
  /**
   * No event is placed later, in Unix ms. Default: the present, or the time of the newest event that has one, if that is later:
   * the clock of a service may be ahead.
   */
  readonly now?: number
  /** Leaves out events before this time, in Unix ms. */
  readonly since?: number
}

/** The most events of a history, so that its size in memory is bounded. */
const MAX_EVENTS = 1_000_000

const EVENT_DATE = /^\d{4}(?:-\d{2}(?:-\d{2})?)?$/

/**
 * Gives the detections of a monitor a time, since its list has none. An execution that finds something has no completion: so its
 * detections are between the completions and errors beside them in the list, spread evenly, with the detections of one execution together.
 * With only one of them, they are placed at the monitor's frequency from it. Without any, they are at the first moment of their
 * `event_date`, and without that they are left out.
 *
 * @param newestFirst The list of a monitor with its completions, in the order of the service (§4.1).
 * @throws {ArgumentError} For more than 1,000,000 events, and for an invalid setting.
 */
export function placeHistory(
  newestFirst: Iterable<ResearchEvent>,
  options: PlaceOptions = {},
): PlacedHistory {
  checkOptions('options', options, ['frequency', 'now', 'since'])
  const { since = -Infinity, frequency } = options
  if (since !== -Infinity) checkTime('options.since', since)
  if (options.now !== undefined) checkTime('options.now', options.now)
  checkEvents(newestFirst)
  const events = [...newestFirst].toReversed()
  if (!events.every((event) => isObject(event)))
    throw new ArgumentError('newestFirst', 'an iterable of events', events)
  if (events.length > MAX_EVENTS)
    throw new ArgumentError('newestFirst', `at most ${MAX_EVENTS} events`, events.length)
  const timed = events.map(ownTime)
  const { now = Math.max(Date.now(), timed.findLast((time) => time !== undefined) ?? 0) } = options
  const interval = frequency === undefined ? medianInterval(timed) : parseDuration(frequency)
  if (frequency !== undefined && !interval)
    throw new ArgumentError('options.frequency', 'a time span such as 1h', frequency)
  const counts = { time: 0, completion: 0, date: 0, unplaced: 0 }
  const placed: { readonly event: ResearchEvent; readonly at: number }[] = []
  const place = (event: ResearchEvent, at: number, by: 'time' | 'completion' | 'date') => {
    const bounded = Math.min(at, now)
    if (bounded < since) return
    counts[by]++
    placed.push({ event: { ...event, received: rfc3339(bounded) }, at: bounded })
  }

  let before: number | undefined
  for (let index = 0; index < events.length;) {
    const [event, at] = [events[index], timed[index]]
    if (event === undefined) break
    if (at !== undefined) {
      place(event, at, 'time')
      before = at
      index++
      continue
    }
    let end = index
    while (end < events.length && timed[end] === undefined) end++
    const between = events.slice(index, end)
    const times = timesBetween(executionsOf(between), before, timed[end], interval)
    for (const [offset, each] of between.entries()) {
      const time = times?.[offset]
      const date = dateOf(each)
      if (time !== undefined) place(each, time, 'completion')
      else if (date !== undefined) place(each, date, 'date')
      else counts.unplaced++
    }
    index = end
  }
  return { events: placed.toSorted((a, b) => a.at - b.at).map(({ event }) => event), placed: counts, now }
}

function checkEvents(given: unknown): void {
  if (typeof given !== 'object' || given === null || !(Symbol.iterator in given))
    throw new ArgumentError('newestFirst', 'an iterable of events', given)
}

/** For each event, the number of its execution, from 0. */
function executionsOf(events: readonly ResearchEvent[]): readonly number[] {
  let number = -1
  let last: unknown
  return events.map(({ data, id }) => {
    const execution = executionOf(data)
    const group = typeof execution === 'string' ? execution : id
    if (number < 0 || group !== last) number++
    last = group
    return number
  })
}

function timesBetween(
  executions: readonly number[],
  before: number | undefined,
  after: number | undefined,
  interval: number | undefined,
): readonly number[] | undefined {
  const count = (executions.at(-1) ?? 0) + 1
  if (before !== undefined && after !== undefined) {
    const step = (after - before) / (count + 1)
    return executions.map((number) => Math.round(before + step * (number + 1)))
  }
  if (interval === undefined) return undefined
  if (before !== undefined) return executions.map((number) => before + interval * (number + 1))
  if (after !== undefined) return executions.map((number) => after - interval * (count - number))
  return undefined
}

function ownTime({ time }: ResearchEvent): number | undefined {
  const at = time === null ? Number.NaN : Date.parse(time)
  return Number.isNaN(at) ? undefined : at
}

function dateOf({ data }: ResearchEvent): number | undefined {
  const date = isObject(data) ? data['event_date'] : undefined
  if (typeof date !== 'string' || !EVENT_DATE.test(date)) return undefined
  const at = Date.parse(date)
  return Number.isNaN(at) ? undefined : at
}

/** The median time between executions that have one; undefined for fewer than two. */
function medianInterval(times: readonly (number | undefined)[]): number | undefined {
  const intervals: number[] = []
  for (const [index, time] of times.entries()) {
    const before = times[index - 1]
    if (time !== undefined && before !== undefined && time > before) intervals.push(time - before)
  }
  return intervals.toSorted((a, b) => a - b)[Math.floor(intervals.length / 2)]
}
