/**
 * Joins and tables, computed in the plainest way from the whole list of entries in their order. Shares no code with the package: it has neither
 * timers nor stored rows, and looks at all earlier events for each one.
 */
import type { StreamEntry } from 'rivulet/streams'

/** What a stream makes of an entry: nothing, or an item with its key. */
type Picked = (entry: StreamEntry) => { readonly key: string; readonly item: unknown } | undefined

export type PlainStage =
  | {
      readonly does: 'join'
      readonly name: string
      readonly isLeft: boolean
      readonly within: number
      readonly left: Picked
      readonly right: Picked
    }
  | { readonly does: 'table'; readonly name: string; readonly of: Picked }
  | { readonly does: 'enrich'; readonly name: string; readonly table: string; readonly of: Picked }

export interface PlainDefinition {
  readonly name: string
  readonly lateness: number
  readonly backfill: 'ignore' | 'place'
  readonly stages: readonly PlainStage[]
}

/** A result, with what must be the same in each run but its id. */
export interface PlainOutput {
  readonly type: string
  readonly time: string | null
  readonly data: unknown
  /** Source, id and revision of the entry because of which it is there, and when it was due if it had to wait. */
  readonly cause: readonly [source: string, id: string, revision: number, due: number | null]
}

export interface Computed {
  /** The outputs at each entry. */
  readonly steps: readonly (readonly PlainOutput[])[]
  /** The outputs once no more entries come. */
  readonly end: readonly PlainOutput[]
  /** The last items of each table, by their keys. */
  readonly tables: ReadonlyMap<string, ReadonlyMap<string, unknown>>
}

interface Happened {
  readonly side: 'left' | 'right'
  readonly key: string
  readonly at: number
  readonly item: unknown
  readonly entry: StreamEntry
  isAlone: boolean
}

interface Lost {
  readonly stage: string
  readonly key: string
  readonly reason: string
  readonly first: StreamEntry
  readonly due: number
  readonly times: [start: number, end: number][]
}

const iso = (at: number) => new Date(at).toISOString()

const causeOf = ({ source, id, revision }: StreamEntry, due: number | null = null) =>
  [source, id, revision, due] as const

/** When an event happened: no later than it was recorded. */
function timeOf({ time, received, recorded }: StreamEntry): number {
  const given = [time, received].map((text) => (text === null ? Number.NaN : Date.parse(text)))
  return Math.min(given.find((at) => !Number.isNaN(at)) ?? recorded, recorded)
}

const isDay = ({ time }: StreamEntry) => time !== null && time.length === 10 && time.split('-').length === 3

export function computed(
  { name, lateness, backfill, stages }: PlainDefinition,
  entries: readonly StreamEntry[],
): Computed {
  const tables = new Map<string, Map<string, { readonly at: number; readonly item: unknown }>>()
  const happened = new Map<string, Happened[]>()
  for (const stage of stages) {
    if (stage.does === 'table') tables.set(stage.name, new Map())
    if (stage.does === 'join') happened.set(stage.name, [])
  }
  let lost: Lost[] = []
  let watermark = -Infinity
  let recorded = -Infinity
  let complete = true

  const passed = (out: PlainOutput[]) => {
    for (const stage of stages) {
      if (stage.does !== 'join' || !stage.isLeft) continue
      for (const each of happened.get(stage.name) ?? []) {
        const due = each.at + stage.within + 1
        if (each.side !== 'left' || !each.isAlone || due > watermark) continue
        each.isAlone = false
        out.push({
          type: 'join.result',
          time: iso(due),
          data: {
            stage: stage.name,
            key: each.key,
            time: iso(each.at),
            left: each.item,
            right: null,
            complete,
          },
          cause: causeOf(each.entry, due),
        })
      }
    }
    for (const { stage, key, reason, first, due, times } of lost) {
      if (due > recorded) continue
      const [start, end] = [
        Math.min(...times.map(([from]) => from)),
        Math.max(...times.map(([, until]) => until)),
      ]
      out.push({
        type: 'stage.dropped',
        time: iso(due),
        data: { stage, key, start: iso(start), end: iso(end), reason, count: times.length },
        cause: causeOf(first, due),
      })
    }
    lost = lost.filter(({ due }) => due > recorded)
  }

  const lose = (stage: string, key: string, reason: string, entry: StreamEntry, time: [number, number]) => {
    const known = lost.find((each) => each.stage === stage && each.key === key && each.reason === reason)
    if (known !== undefined) known.times.push(time)
    else lost.push({ stage, key, reason, first: entry, due: recorded + 60_000, times: [time] })
  }

  const joined = (stage: PlainStage & { readonly does: 'join' }, entry: StreamEntry, out: PlainOutput[]) => {
    const known = happened.get(stage.name) ?? []
    const own: Happened[] = []
    for (const side of ['left', 'right'] as const) {
      const picked = stage[side](entry)
      if (picked === undefined) continue
      const { key, item } = picked
      const at = timeOf(entry)
      if (isDay(entry)) lose(stage.name, key, 'whole_day', entry, [at, at + 86_400_000])
      else if (at < watermark) lose(stage.name, key, 'late', entry, [at, at])
      else own.push({ side, key, at, item, entry, isAlone: true })
    }
    for (const each of own) {
      for (const other of known) {
        if (other.side === each.side || other.key !== each.key) continue
        if (Math.abs(other.at - each.at) > stage.within) continue
        each.isAlone = false
        other.isAlone = false
        const [left, right] = each.side === 'left' ? [each, other] : [other, each]
        out.push({
          type: 'join.result',
          time: entry.time,
          data: {
            stage: stage.name,
            key: each.key,
            time: iso(Math.max(each.at, other.at)),
            left: left.item,
            right: right.item,
            complete: true,
          },
          cause: causeOf(entry),
        })
      }
    }
    known.push(...own)
  }

  const take = (entry: StreamEntry): readonly PlainOutput[] => {
    const out: PlainOutput[] = []
    recorded = Math.max(recorded, entry.recorded)
    if (entry.type === 'log.tick') {
      const { through } = entry.data
      const until = through === null ? -Infinity : Math.min(Date.parse(through), recorded)
      watermark = Math.max(watermark, until - lateness)
      complete = entry.data.complete
    }
    passed(out)
    const isFirst = entry.revision === 1 && (!entry.backfill || backfill === 'place')
    for (const stage of stages) {
      if (stage.does === 'join') {
        if (isFirst) joined(stage, entry, out)
        continue
      }
      const picked = stage.of(entry)
      if (picked === undefined) continue
      const { key, item } = picked
      const at = timeOf(entry)
      if (stage.does === 'table') {
        const before = tables.get(stage.name)?.get(key)
        if (before === undefined || before.at <= at) tables.get(stage.name)?.set(key, { at, item })
      } else if (isFirst) {
        const right = tables.get(stage.table)?.get(key)?.item ?? null
        out.push({
          type: 'join.result',
          time: entry.time,
          data: { stage: stage.name, key, time: iso(at), left: item, right, complete: true },
          cause: causeOf(entry),
        })
      }
    }
    return out
  }

  // A process does not receive what it has appended.
  const steps = entries.map((entry) => (entry.cause?.process === name ? [] : take(entry)))
  const rows = new Map(
    Array.from(tables, ([table, items]) => [
      table,
      new Map(Array.from(items, ([key, { item }]) => [key, item])),
    ]),
  )
  const end: PlainOutput[] = []
  watermark = Infinity
  recorded = Infinity
  passed(end)
  return { steps, end, tables: rows }
}
