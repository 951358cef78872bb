import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { from, lastValueFrom } from 'rxjs'
import { openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { Entry, EventLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { deliver } from 'rivulet/operators'
import { expectCount } from '../expect-count.ts'
import { detection, fillLog } from '../filled-log.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { opened } from '../nats/recording.ts'
import { alternately, perSecond } from '../rounds.ts'

const ENTRIES = 200_000
/** Of those, for a handler that waits. */
const DELIVERED = 8_000
const CONCURRENCY = 16
/** For the consumers that read while it is recorded. */
const RECORDED = 30_000

/**
 * - `consume`: entries of 400 bytes per second from an SQLite log through `log.consume` with a synchronous handler, against a bare
 *   `SELECT` of the same rows with `JSON.parse`.
 * - `consume-deliver`: entries per second through `log.consume` at concurrency 16 with a handler of 1 ms, against `deliver` of the
 *   same entries from memory.
 * - `consume-ten`: events per second that are recorded into a new SQLite log and consumed by ten consumers of the same process, against one.
 */
export const measure: Measure = async (folder) => {
  const file = join(folder, 'log.db')
  await fillLog(file, ENTRIES, (number) => detection(number, `monitor_${number % 5}`))
  await using log = await openLog(sqliteStore(file))
  const start = await log.positionAt('start')
  const entries: Entry[] = []
  for (let position = start; entries.length < DELIVERED;) {
    const page = await log.read(position, { limit: 1_000 })
    entries.push(...page.entries)
    ;({ position } = page)
  }

  const { ratio, ...details } = await alternately(
    () => perSecond(ENTRIES, () => consumed(log, ENTRIES, () => {}, {})),
    () => perSecond(ENTRIES, () => expectCount(selected(file), ENTRIES, 'selected entries')),
    { rounds: 5, warmUp: 1 },
  )
  const options = { concurrency: CONCURRENCY }
  const delivered = from(entries.slice(0, DELIVERED)).pipe(deliver(() => sleep(1), options))
  const delivery = await alternately(
    () => perSecond(DELIVERED, () => consumed(log, DELIVERED, () => sleep(1), options)),
    () => perSecond(DELIVERED, () => lastValueFrom(delivered)),
    { rounds: 5, warmUp: 1 },
  )
  const ten = await alternately(
    () => recordedAndConsumed(join(folder, 'ten'), 10),
    () => recordedAndConsumed(join(folder, 'one'), 1),
    { rounds: 5, warmUp: 1 },
  )
  return [
    result('consume-ten', ten.ratio, { atLeast: 0.4 }, { ...ten, unit: 'entries/s' }),
    result('consume', ratio, { atLeast: 0.7 }, { ...details, unit: 'entries/s' }),
    result('consume-deliver', delivery.ratio, { atLeast: 0.95 }, { ...delivery, unit: 'entries/s' }),
  ]
}

let consumers = 0

/** Consumes as many entries with a new consumer. */
async function consumed(
  log: EventLog,
  total: number,
  handler: () => void | Promise<void>,
  options: { readonly concurrency?: number },
): Promise<void> {
  let left = total
  const end = Promise.withResolvers<void>()
  const job = log.consume(`bench ${(consumers += 1)}`, options, () => {
    left -= 1
    if (left === 0) end.resolve()
    return handler()
  })
  await end.promise
  await job.stop()
}

/** Events per second until each of the consumers has handled all of them. */
async function recordedAndConsumed(name: string, readers: number): Promise<number> {
  await using log = await openLog(sqliteStore(`${name}-${(consumers += 1)}.db`))
  const events = Array.from({ length: RECORDED }, (_, number) => detection(number, `monitor_${number % 5}`))
  const recording = await opened(log, [...new Set(events.map(({ source }) => source))])
  return await perSecond(RECORDED, async () => {
    const consuming = Array.from({ length: readers }, () => consumed(log, RECORDED, () => {}, {}))
    await recording.record(events)
    await Promise.all(consuming)
    await recording.close()
  })
}

function selected(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true })
  let count = 0
  for (const { event } of database
    .prepare('SELECT position, event FROM rivulet_entry ORDER BY position')
    .iterate()) {
    const parsed: ResearchEvent = JSON.parse(String(event))
    if (parsed.id !== '') count += 1
  }
  database.close()
  return count
}
