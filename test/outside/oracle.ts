import { failsAtTimes } from './journal.ts'
import type { EntryLine, Line } from './journal.ts'

/**
 * By how much the time of the log may differ from the real one, in ms. Jumps of a few seconds are taken as they are, and the time for which a log that
 * was moved had been closed counts once it is confirmed.
 */
const TOLERANCE = 100_000

/** A row of the effects. */
export interface EffectRow {
  readonly source: string
  readonly n: number
  readonly generation: number
}

/** What a round has seen. */
export interface Evidence {
  /** When each event of each source was there, by its number, in Unix ms. */
  readonly emitted: ReadonlyMap<string, readonly number[]>
  /** The journal of each process, in the order of their starts. */
  readonly journals: readonly (readonly Line[])[]
  /** The journal of the process that read all in the end. */
  readonly audit: readonly Line[]
  /** The names of consumers and of readers whose position is elsewhere. */
  readonly consumers: readonly string[]
  readonly readers: readonly string[]
  /** Undefined where there is no consumer with effects. */
  readonly effects: readonly EffectRow[] | undefined
  /** The least number of each source from which the effects of a generation may be done again; undefined for any. */
  readonly rewoundTo: ReadonlyMap<number, ReadonlyMap<string, number> | undefined>
  readonly maxAge: number | undefined
  /** Whether the log also deletes by size. */
  readonly isSmall: boolean
}

/** What contradicts the promises of the log, as sentences. */
export function findings(evidence: Evidence): string[] {
  return [
    ...ofConsumers(evidence),
    ...evidence.readers.flatMap((reader) => [...ofReader(reader, evidence)]),
    ...ofWatch(evidence),
    ...ofEffects(evidence),
    ...ofAudit(evidence),
    ...ofTimes(evidence),
  ]
}

/** What has not been seen yet, by which role. */
export function missingOf({
  emitted,
  journals,
  consumers,
  readers,
  effects,
}: Omit<Evidence, 'audit'>): string[] {
  const lines = journals.flat()
  const missing: string[] = []
  const expect = (role: string, seen: (source: string, last: number) => boolean) => {
    for (const [monitor, { length }] of emitted) {
      if (length > 0 && !seen(`/v1/monitors/${monitor}`, length - 1))
        missing.push(`${role} ${monitor} ${length - 1}`)
    }
  }
  for (const role of [...consumers, ...readers]) {
    const last = new Map(entriesOf(role, lines).map(({ source, n, at }) => [`${source} ${n}`, at]))
    expect(role, (source, n) => last.has(`${source} ${n}`))
    const latest = Math.max(...last.values())
    const hasTicked = lines.some((line) => line.kind === 'tick' && line.role === role && line.at > latest)
    if (readers.includes(role) && !hasTicked) missing.push(`${role}: a tick after the last entry`)
    const hasFired = (source: string) =>
      lines.some(
        (line) => line.kind === 'timer' && line.source === source && line.at >= (last.get(source) ?? 0),
      )
    if (role === 'count') expect('timer', hasFired)
  }
  const done = new Set(effects?.map(({ source, n }) => `${source} ${n}`))
  const hasAll = (source: string, last: number) =>
    Array.from({ length: last + 1 }, (_, n) => done.has(`${source} ${n}`)).every(Boolean)
  if (effects !== undefined) expect('effects', hasAll)
  return missing
}

/** The entries of a role. */
function entriesOf(role: string, lines: readonly Line[]): EntryLine[] {
  return lines.filter((line): line is EntryLine => line.kind === 'entry' && line.role === role)
}

/** Each entry at least once, the entries of a source in order, and no gap. */
function* ofConsumers({ consumers, journals, emitted }: Evidence): Iterable<string> {
  for (const role of consumers) {
    const gaps = journals.flat().filter((line) => line.kind === 'gap' && line.role === role)
    if (gaps.length > 0) yield `${role} has ${gaps.length} gaps: what it needs was deleted`
    const bySource = Map.groupBy(entriesOf(role, journals.flat()), ({ source }) => source)
    for (const [source, times] of emitted) {
      const seen = bySource.get(`/v1/monitors/${source}`) ?? []
      const first = firstTimes(seen)
      const missing = [...times.keys()].filter((n) => !first.has(n))
      if (missing.length > 0)
        yield `${role} misses ${missing.length} of ${times.length} entries of ${source}: ${missing.slice(0, 5)}`
      for (const [n, at] of first) {
        const before = first.get(n - 1)
        if (before !== undefined && before > at) yield `${role} has ${source} ${n} before ${n - 1}`
      }
    }
  }
}

function firstTimes(seen: readonly EntryLine[]): Map<number, number> {
  const first = new Map<number, number>()
  for (const { n, at } of seen) first.set(n, Math.min(at, first.get(n) ?? Infinity))
  return first
}

/** Without a gap, a reader goes on where it was, and has no entry twice within a process. */
function* ofReader(reader: string, { journals }: Evidence): Iterable<string> {
  const next = new Map<string, number>()
  for (const lines of journals) {
    const here = new Set<string>()
    let recorded = 0
    for (const line of lines) {
      if (!('role' in line) || line.role !== reader) continue
      if (line.kind === 'begun' || line.kind === 'gap') next.clear()
      if (line.kind === 'begun') here.clear()
      if (line.kind === 'begun') recorded = 0
      if ('recorded' in line) {
        if (line.recorded < recorded) yield `${reader}: recorded goes back by ${recorded - line.recorded} ms`
        ;({ recorded } = line)
      }
      if (line.kind !== 'entry') continue
      const { source, n } = line
      const expected = next.get(source)
      const isFirst = !here.has(source)
      here.add(source)
      next.set(source, n + 1)
      if (expected === undefined || n === expected || (isFirst && n < expected)) continue
      yield `${reader} got ${source} ${n} in the place of ${expected}, without a gap or an error`
    }
  }
}

/** The numbers of a log never leave out a reader that they had before. */
function* ofWatch({ journals }: Evidence): Iterable<string> {
  const missing = new Set<string>()
  for (const lines of journals) {
    const seen = new Set<string>()
    for (const { names } of lines.filter((line) => line.kind === 'readers')) {
      for (const name of seen) if (!names.includes(name)) missing.add(name)
      for (const name of names) seen.add(name)
    }
  }
  if (missing.size > 0) yield `the numbers of the log have left out ${[...missing].join(', ')}`
}

/**
 * Each effect once in a generation, in order and without a hole; again only from the place to which it was rewound. Those of dead letters
 * come when they come.
 */
function* ofEffects({ effects, emitted, rewoundTo }: Evidence): Iterable<string> {
  if (effects === undefined) return
  for (const [monitor, { length }] of emitted) {
    let next = 0
    let generation = 0
    const source = `/v1/monitors/${monitor}`
    const rows = effects.filter((row) => row.source === source)
    for (const row of rows.filter(({ n }) => !failsAtTimes(n))) {
      const isRewound = row.generation !== generation
      const least = rewoundTo.get(row.generation)?.get(source) ?? 0
      if (isRewound && row.n < least)
        yield `the effect of ${source} ${row.n} was done again, before the place of the log, ${least}`
      generation = row.generation
      if (row.n > next) yield `effects of ${source} ${next} to ${row.n - 1} were not done`
      if (row.n < next && !isRewound) yield `the effect of ${source} ${row.n} was done twice`
      next = row.n + 1
      if (failsAtTimes(next)) next += 1
    }
    if (next < length) yield `effects of ${source} ${next} to ${length - 1} were not done`
    const letters = rows.filter(({ n }) => failsAtTimes(n))
    const once = new Set(letters.map((row) => `${row.n} in generation ${row.generation}`))
    if (once.size < letters.length)
      yield `${letters.length - once.size} dead letters of ${source} were handled twice`
    for (let n = 0; n < length; n++) {
      if (failsAtTimes(n) && !letters.some((row) => row.n === n))
        yield `the dead letter ${source} ${n} was not handled`
    }
  }
}

/** The whole log in the end: each event once and in order, but for those that retention may have deleted; states of all. */
function* ofAudit({ audit, journals, emitted, maxAge, isSmall }: Evidence): Iterable<string> {
  if (audit.length === 0) return
  const entries = entriesOf('audit', audit)
  const newest = Math.max(0, ...audit.map((line) => ('recorded' in line ? line.recorded : 0)))
  const bySource = Map.groupBy(entries, ({ source }) => source)
  for (const [monitor, times] of emitted) {
    const source = `/v1/monitors/${monitor}`
    const found = bySource.get(source) ?? []
    const first = found[0]?.n ?? times.length
    for (const [index, { n, revision }] of found.entries()) {
      if (n !== first + index) yield `the log has ${source} ${n} in the place of ${first + index}`
      if (revision !== 1) yield `${source} ${n} was recorded again, as revision ${revision}`
    }
    if (first + found.length !== times.length && found.length > 0)
      yield `the log ends with ${source} ${first + found.length - 1} of ${times.length}`
    if (first > 0 && maxAge === undefined && !isSmall)
      yield `${first} entries of ${source} were deleted without retention`
    if (maxAge === undefined || isSmall) continue
    const early = journals
      .flat()
      .filter((line) => line.kind === 'entry' && line.source === source && line.n < first)
      .filter((line) => 'recorded' in line && line.recorded > newest - maxAge)
    if (early.length > 0) yield `${early.length} entries of ${source} were deleted before their age`
  }
  const states = audit.filter((line) => line.kind === 'state')
  for (const [monitor, times] of emitted) {
    const state = states.find(({ source }) => source === `/v1/monitors/${monitor}`)
    if (times.length === 0 || (state?.next === times.length && state.faults === 0)) continue
    yield `the state of ${monitor} is ${JSON.stringify(state)} after ${times.length} entries`
  }
}

/** No entry is of a time at which it cannot have been recorded. */
function* ofTimes({ journals, audit, emitted }: Evidence): Iterable<string> {
  const off = new Map<string, number>()
  for (const line of [...journals.flat(), ...audit]) {
    if (line.kind !== 'entry' && line.kind !== 'tick') continue
    const { recorded, at, role } = line
    const emittedAt = line.kind === 'entry' ? emitted.get(line.source.split('/').at(-1) ?? '')?.[line.n] : 0
    const error = Math.max(recorded - at, (emittedAt ?? 0) - recorded)
    if (error > TOLERANCE) off.set(role, Math.max(error, off.get(role) ?? 0))
  }
  for (const [role, error] of off) yield `${role} has entries recorded at a time that is wrong by ${error} ms`
}
