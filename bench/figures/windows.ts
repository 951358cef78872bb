import { deepStrictEqual } from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { join as joinPath } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { filter, from as fromList } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { eventTime, openLog } from 'rivulet/log'
import type { EventLog, LogJob } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import {
  aggregate,
  count,
  define,
  from,
  hopping,
  inMemory,
  join,
  keyBy,
  map,
  session,
  sum,
  tumbling,
  where,
} from 'rivulet/streams'
import type { Definition, ResultEvent, Windows } from 'rivulet/streams'
import { tickEvent } from '../../src/protocol/log-event.ts'
import { fixedByHand, pairsByHand, sessionsByHand } from '../by-hand/windows.ts'
import type { PairByHand, WindowByHand } from '../by-hand/windows.ts'
import { result } from '../figure.ts'
import { detection, fillLog } from '../filled-log.ts'
import type { Measure, Result } from '../figure.ts'
import { alternately, perProcessorSecond, perSecond } from '../rounds.ts'

const EVENTS = 50_000
const KEYS = 1_000
/** Time between two events, in ms. */
const STEP = 10
/** Number of events between two ticks. */
const TICK = 100
const START = Date.UTC(2026, 0, 1)

const MINUTE = 60_000

/**
 * - `windows-tumbling`, `windows-hopping`, `windows-session`: events per second through a count and a sum of windows of a minute in memory, with
 *   1,000 keys and a tick for each 100 events, against a bare loop with a `Map` that computes the same. Hopping: each event is in 6 windows.
 * - `join`: the same for pairs of events of two kinds within 5 s.
 * - `windows-log`: entries per second through `log.process(definition)` over SQLite, against `log.process` with the same state by hand.
 */
export const measure: Measure = async (folder) => {
  const entries = entriesOf(EVENTS)
  return [
    await windows('windows-tumbling', entries, tumbling('1m'), () =>
      fixedByHand(entries, MINUTE, MINUTE, valueOf),
    ),
    await windows('windows-hopping', entries, hopping('1m', '10s'), () =>
      fixedByHand(entries, MINUTE, MINUTE / 6, valueOf),
    ),
    await windows('windows-session', entries, session('15s'), () => sessionsByHand(entries, 15_000, valueOf)),
    await joins(entries),
    await durable(folder),
  ]
}

function valueOf({ id }: Pick<ResearchEvent, 'id'>): number {
  return id.length
}

/** Events of many keys, some ms late, with their ticks. */
function entriesOf(events: number): readonly ResearchEvent[] {
  const entries: ResearchEvent[] = []
  for (let n = 0; n < events; n++) {
    const at = START + n * STEP
    if (n % TICK === 0) entries.push(tickEvent(n, at, { through: at - 1_000, complete: true }))
    // Keys come in bursts, so that there are sessions.
    const key = (Math.floor(n / 20_000) * 7 + ((n * 31) % KEYS)) % KEYS
    const time = new Date(at).toISOString()
    entries.push({ ...detection(n, `monitor_${key}`), time, received: time })
  }
  const end = START + events * STEP + 10 * MINUTE
  return [...entries, tickEvent(events, end, { through: end, complete: true })]
}

const counted = (windowsOf: Windows) =>
  define(
    'bench',
    { version: 1 },
    from('monitor.event_stream').pipe(
      keyBy(({ source }) => source),
      aggregate('values', windowsOf, { count: count(), sum: sum(valueOf) }),
    ),
  )

/** Compares the rows of a definition in memory with those of a loop by hand, and how long both take. */
async function compared<Data, Row extends readonly (string | number)[]>(
  name: string,
  entries: readonly ResearchEvent[],
  definition: Definition<Data>,
  rowOf: (result: ResultEvent<Data>) => Row,
  byHand: () => readonly Row[],
) {
  let ours: Row[] = []
  let theirs: readonly Row[] = []
  const mine = () => {
    ours = []
    const run = fromList(entries).pipe(
      inMemory(definition),
      filter((event): event is ResultEvent<Data> => event.type !== 'stage.dropped'),
    )
    return perProcessorSecond(EVENTS, () => run.subscribe((event) => ours.push(rowOf(event))))
  }
  const other = () => perProcessorSecond(EVENTS, () => void (theirs = byHand()))
  const { ratio, ...details } = await alternately(mine, other, { rounds: 5, warmUp: 1 })
  deepStrictEqual(sorted(ours), sorted(theirs))
  return result(name, ratio, undefined, { ...details, results: ours.length, unit: 'events/s' })
}

function sorted<Row extends readonly (string | number)[]>(rows: readonly Row[]): readonly string[] {
  return rows.map((row) => row.join(' ')).toSorted()
}

const windows = (
  name: string,
  entries: readonly ResearchEvent[],
  windowsOf: Windows,
  byHand: () => readonly WindowByHand[],
) =>
  compared(
    name,
    entries,
    counted(windowsOf),
    ({ data: { key, start, values } }): WindowByHand => [key, Date.parse(start), values.count, values.sum],
    byHand,
  )

const isLeft = ({ id }: Pick<ResearchEvent, 'id'>) => id.endsWith('0') || id.endsWith('5')

function joins(entries: readonly ResearchEvent[]): Promise<Result> {
  const side = (isWanted: boolean) =>
    from('monitor.event_stream').pipe(
      where((event) => isLeft(event) === isWanted),
      map(({ source, id }) => ({ source: source.slice(0, -1), id })),
      keyBy(({ source }) => source),
    )
  const short = entries.map((entry) => ({ ...entry, source: entry.source.slice(0, -1) }))
  return compared(
    'join',
    entries,
    define('bench', { version: 1 }, side(true).pipe(join('pairs', side(false), { within: '5s' }))),
    ({ data: { left, right } }): PairByHand => [left.id, right.id],
    () => pairsByHand(short, 5_000, isLeft),
  )
}

const STORED = 50_000
const NAME = 'windows'

async function durable(folder: string): Promise<Result> {
  const filled = joinPath(folder, 'filled.db')
  const entries = entriesOf(STORED).slice(0, STORED)
  await fillLog(filled, STORED, (n) => entries[n] ?? detection(n, 'm'))
  let runs = 0
  const run = (start: (log: EventLog) => LogJob) => async () => {
    runs += 1
    const file = joinPath(folder, `${runs}.db`)
    copyFileSync(filled, file)
    const log = await openLog(sqliteStore(file))
    const rate = await perSecond(STORED, async () => {
      const job = start(log)
      for (let isDone = false; !isDone;) {
        await setTimeout(5)
        const [reader] = (await log.stats()).readers
        isDone = reader?.lag.entries === 0
      }
      await job.stop()
    })
    await log.close()
    return rate
  }
  const ours = run((log) =>
    log.process(
      define(
        NAME,
        { version: 1 },
        from('monitor.event_stream').pipe(
          keyBy(({ source }) => source),
          aggregate('values', tumbling('1m'), { count: count(), sum: sum(valueOf) }),
        ),
      ),
    ),
  )
  const theirs = run((log) =>
    log.process(NAME, {
      version: 1,
      types: ['monitor.event_stream'],
      key: (entry) => JSON.stringify([entry.source, Math.floor(eventTime(entry) / MINUTE) * MINUTE]),
      init: () => ({ count: 0, sum: 0 }),
      event(state, entry, context) {
        const end = Number(JSON.parse(context.key)[1]) + MINUTE
        if (end <= context.now('event')) return
        context.set({ count: state.count + 1, sum: state.sum + valueOf(entry) })
        if (state.count === 0) context.timer('close', end, { clock: 'event' })
      },
      timer(state, due, context) {
        const [key] = JSON.parse(context.key)
        context.append({ type: 'unknown', data: { key, end: due, ...state } })
        context.set(null)
      },
    }),
  )
  const { ratio, ...details } = await alternately(ours, theirs, { rounds: 5, warmUp: 1 })
  return result('windows-log', ratio, { atLeast: 0.9 }, { ...details, unit: 'entries/s' })
}
