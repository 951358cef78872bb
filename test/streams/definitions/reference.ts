import type { StreamEntry } from 'rivulet/streams'

/** The windows of a stage, as plain data. Times are in ms. */
type PlainWindows =
  | { readonly kind: 'fixed'; readonly size: number; readonly every: number }
  | { readonly kind: 'session'; readonly gap: number }

/** A definition, as plain data. Its stages read events of the type `unknown` whose data is a {@link Reading}. */
export interface PlainDefinition {
  readonly name: string
  readonly lateness: number
  readonly backfill: 'ignore' | 'place'
  readonly stages: readonly { readonly name: string; readonly windows: PlainWindows }[]
}

/** What an event says. */
export interface Reading {
  /** The key; null skips the event. */
  readonly key: string | null
  /** Null for an event that has no number. */
  readonly number: number | null
}

/** The values of a window, see `definitionOf`. */
export interface PlainValues {
  readonly events: number
  readonly positive: number
  readonly sum: number
  readonly min: number | null
  readonly max: number | null
  readonly mean: number | null
  readonly different: number
  readonly last: number | null
  readonly all: readonly (number | null)[]
  /** The exact ones. */
  readonly median: number | null
  readonly p95: number | null
}

/** An event that a definition emits: the parts that its entries decide. */
export interface PlainOutput {
  readonly type: string
  readonly time: string | null
  readonly data: unknown
}

/** An event in its place. */
interface Placed {
  /** The place in the list of entries. */
  readonly index: number
  readonly at: number
  readonly reading: Reading
  readonly isByArrival: boolean
}

/** The times after an entry. */
interface Moment {
  readonly recorded: number
  readonly watermark: number
  readonly isComplete: boolean
}

/** An event that has no place, and the time that is reported. */
interface Lost {
  readonly index: number
  readonly start: number
  readonly end: number
}

/** How long dropped events are counted before they are reported, in ms of recorded time. */
const REPORTED_AFTER = 60_000

const DAY = 86_400_000

/**
 * All that a definition emits, computed from the whole list of entries: at each entry, and at last once no more entries come. Shares no code
 * with what it is a reference for.
 */
export function computed(
  definition: PlainDefinition,
  all: readonly StreamEntry[],
): readonly (readonly PlainOutput[])[] {
  const entries = all.filter(({ cause }) => cause?.process !== definition.name)
  const moments = momentsOf(entries, definition.lateness)
  const steps: PlainOutput[][] = [...entries.map(() => []), []]
  const emit = (index: number, type: string, at: number, data: unknown) =>
    steps[index]?.push({ type, time: textOf(at), data })

  for (const { name: stage, windows } of definition.stages) {
    const keyed = new Map<string, { placed: Placed[]; ofDays: Placed[] }>()
    for (const [index, entry] of entries.entries()) {
      const isSkipped = entry.revision > 1 || (entry.backfill && definition.backfill === 'ignore')
      if (entry.type !== 'unknown' || isSkipped) continue
      const reading = entry.data as Reading
      if (reading.key === null) continue
      const of = keyed.get(reading.key) ?? { placed: [], ofDays: [] }
      keyed.set(reading.key, of)
      const event = { index, at: timeOf(entry), reading, isByArrival: entry.time === null }
      const hasPlace = entry.time === null || entry.time.length !== 'YYYY-MM-DD'.length || hasDays(windows)
      if (hasPlace) of.placed.push(event)
      else of.ofDays.push(event)
    }
    for (const [key, { placed, ofDays }] of keyed) {
      const result = (index: number, start: number, end: number, members: readonly Placed[]) => {
        const byArrival = members.filter(({ isByArrival }) => isByArrival).length
        emit(index, 'window.result', end, {
          stage,
          key,
          start: textOf(start),
          end: textOf(end),
          complete: moments[Math.min(index, moments.length - 1)]?.isComplete ?? true,
          values: valuesOf(members),
          ...(byArrival > 0 && { byArrival }),
        })
      }
      const report = (reason: string, lost: readonly Lost[]) => {
        for (const { index, due, group } of reportsOf(lost, moments)) {
          const [start, end] = [
            Math.min(...group.map((each) => each.start)),
            Math.max(...group.map((each) => each.end)),
          ]
          emit(index, 'stage.dropped', due, {
            stage,
            key,
            start: textOf(start),
            end: textOf(end),
            reason,
            count: group.length,
          })
        }
      }
      report(
        'whole_day',
        ofDays.map(({ index, at }) => {
          const start = Math.floor(at / DAY) * DAY
          return { index, start, end: start + DAY }
        }),
      )
      if (windows.kind === 'session') report('late', sessionsOf(windows.gap, placed, moments, result))
      else for (const lost of windowsOf(windows, placed, moments, result)) report('late', lost)
    }
  }
  return steps
}

/** Computes windows of one length, and returns the late events of each. */
function windowsOf(
  { size, every }: { readonly size: number; readonly every: number },
  placed: readonly Placed[],
  moments: readonly Moment[],
  result: (index: number, start: number, end: number, members: readonly Placed[]) => void,
): readonly (readonly Lost[])[] {
  const starts = new Set<number>()
  for (const { at } of placed) {
    // The first one that ends after the event.
    for (let n = Math.floor((at - size) / every) + 1; n * every <= at; n += 1) starts.add(n * every)
  }
  return Array.from(starts, (start) => {
    const end = start + size
    const inside = placed.filter(({ at }) => at >= start && at < end)
    const isLate = ({ index }: Placed) => (moments[index]?.watermark ?? -Infinity) >= end
    const members = inside.filter((event) => !isLate(event))
    if (members.length > 0) result(indexOfEnd(end, moments), start, end, members)
    return inside.filter(isLate).map(({ index }) => ({ index, start, end }))
  })
}

/** Computes the sessions of a key, event by event in the order of arrival, and returns the late events. */
function sessionsOf(
  gap: number,
  placed: readonly Placed[],
  moments: readonly Moment[],
  result: (index: number, start: number, end: number, members: readonly Placed[]) => void,
): readonly Lost[] {
  interface Session {
    readonly members: readonly Placed[]
    readonly start: number
    readonly end: number
  }
  const lost: Lost[] = []
  const sessions: Session[] = []
  for (const event of placed) {
    const { index, at } = event
    const watermark = moments[index]?.watermark ?? -Infinity
    // One that has ended takes no more events. Within less than the gap of another one means that the windows overlap.
    const joined = sessions
      .filter(({ start, end }) => end > watermark && start < at + gap && at < end)
      .toSorted((a, b) => a.start - b.start)
    if (joined.length === 0 && at + gap <= watermark) {
      lost.push({ index, start: at, end: at + gap })
      continue
    }
    for (const session of joined) sessions.splice(sessions.indexOf(session), 1)
    sessions.push({
      members: [...joined.flatMap(({ members }) => members), event],
      start: Math.min(at, ...joined.map(({ start }) => start)),
      end: Math.max(at + gap, ...joined.map(({ end }) => end)),
    })
  }
  for (const { members, start, end } of sessions) result(indexOfEnd(end, moments), start, end, members)
  return lost
}

/** The entry at which a window ends; the number of entries if it ends after all of them. */
function indexOfEnd(end: number, moments: readonly Moment[]): number {
  const index = moments.findIndex(({ watermark }) => watermark >= end)
  return index === -1 ? moments.length : index
}

/** Lost events in the groups in which they are reported, and the entries before which they are. */
function reportsOf(lost: readonly Lost[], moments: readonly Moment[]) {
  const reports: { readonly index: number; readonly due: number; readonly group: Lost[] }[] = []
  for (const each of lost) {
    const last = reports.at(-1)
    if (last !== undefined && each.index < last.index) {
      last.group.push(each)
      continue
    }
    const due = (moments[each.index]?.recorded ?? 0) + REPORTED_AFTER
    const index = moments.findIndex(({ recorded }, n) => n > each.index && recorded >= due)
    reports.push({ index: index === -1 ? moments.length : index, due, group: [each] })
  }
  return reports
}

function momentsOf(entries: readonly StreamEntry[], lateness: number): readonly Moment[] {
  let [recorded, through, isComplete] = [-Infinity, -Infinity, true]
  return entries.map((entry) => {
    recorded = Math.max(recorded, entry.recorded)
    if (entry.type === 'log.tick') {
      const known = entry.data.through === null ? -Infinity : Date.parse(entry.data.through)
      through = Math.max(through, Math.min(known, recorded))
      isComplete = entry.data.complete
    }
    return { recorded, watermark: through - lateness, isComplete }
  })
}

/** The event time. */
function timeOf({ time, received, recorded }: StreamEntry): number {
  return Math.min(Date.parse(time ?? received), recorded)
}

function hasDays(windows: PlainWindows): boolean {
  return windows.kind === 'fixed' && [windows.size, windows.every].every((length) => length % DAY === 0)
}

function valuesOf(members: readonly Placed[]): PlainValues {
  const all = members.map(({ reading }) => reading.number)
  const numbers = all.filter((number) => number !== null)
  const ascending = numbers.toSorted((a, b) => a - b)
  const sum = numbers.reduce((total, number) => total + number, 0)
  const newest = Math.max(...members.map(({ at }) => at))
  const rank = (p: number) => ascending[Math.max(Math.ceil((p * ascending.length) / 100), 1) - 1] ?? null
  return {
    events: members.length,
    positive: numbers.filter((number) => number > 0).length,
    sum,
    min: ascending[0] ?? null,
    max: ascending.at(-1) ?? null,
    mean: numbers.length === 0 ? null : sum / numbers.length,
    different: new Set(numbers).size,
    last: members.findLast(({ at }) => at === newest)?.reading.number ?? null,
    all,
    median: rank(50),
    p95: rank(95),
  }
}

function textOf(at: number): string {
  return new Date(at).toISOString()
}
