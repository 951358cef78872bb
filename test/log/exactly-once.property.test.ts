import { setImmediate as turn } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { Entry, EventLog, LogJob } from 'rivulet/log'
import { exactlyOnce } from 'rivulet/log/sqlite'
import { bareRun, change, fullRun } from '../operators/events.ts'
import { append } from './append.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

/** What an attempt at an effect does. Those after the last one of a plan apply it. */
const attempt = fc.constantFrom(
  'apply',
  'throw',
  'refuse',
  'violate',
  'commit',
  'commit and throw',
  'rollback',
  'unprepared',
)

/** What happens in a turn. */
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constant('append' as const), count: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constantFrom('kill', 'overtake', 'redeliver') }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('stop' as const) }) },
)

const scenario = fc.record({
  partitions: fc.integer({ min: 1, max: 2 }),
  isKeyed: fc.boolean(),
  isPrepared: fc.boolean(),
  isFar: fc.boolean(),
  maxUnacknowledged: fc.integer({ min: 1, max: 9 }),
  /** For each entry, by its number. */
  plans: fc.array(fc.array(attempt, { maxLength: 4 }), { minLength: 1, maxLength: 6 }),
  /** Before or after which statements and commits of the effects' database a process dies, and which writes of the log. */
  crashes: fc.array(fc.nat({ max: 400 }), { maxLength: 5 }),
  logCrashes: fc.array(fc.nat({ max: 60 }), { maxLength: 3 }),
  steps: fc.array(step, { maxLength: 25 }),
})

/** What a process fails with once it is dead. */
class Died extends Error {}

/** A process with the consumer. */
interface Life {
  readonly store: SimulatedStore
  readonly log: EventLog
  readonly job: LogJob
  /** Nothing that it does has an effect from then on. */
  readonly kill: () => void
  isOver: boolean
}

/** The connection of the effects. It lasts longer than a process, and what a dead one does to it is refused. */
class SharedDatabase extends DatabaseSync {
  /** Called before and after each statement of the process that begins. */
  step = () => {}

  override prepare(sql: string): StatementSync {
    const statement = super.prepare(sql)
    const observed = this.step
    for (const method of ['run', 'get', 'all'] as const) {
      const call: (...values: never[]) => unknown = statement[method]
      const value = (...values: never[]): unknown => {
        observed()
        const result: unknown = Reflect.apply(call, statement, values)
        observed()
        return result
      }
      Object.defineProperty(statement, method, { value })
    }
    return statement
  }

  /** What the test itself reads. */
  all(sql: string) {
    return super.prepare(sql).all()
  }

  /** As the next process finds it. */
  lose(): void {
    if (this.isTransaction) this.exec('ROLLBACK')
  }
}

/** After how many turns without an end the test fails. */
const MAX_TURNS = 30_000

const SCHEMA = `
  PRAGMA foreign_keys = ON;
  CREATE TABLE account (id TEXT PRIMARY KEY);
  CREATE TABLE booking (account TEXT NOT NULL REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED);
  CREATE TABLE effect (source TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, number INTEGER PRIMARY KEY AUTOINCREMENT);
`

const nameOf = ({ source, id, revision }: { source?: unknown; id?: unknown; revision?: unknown }) =>
  JSON.stringify([source, id, revision])

/** Everything that an iterable has. */
async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const value of values) list.push(value)
  return list
}

/** Ends the consumer. Whether everything is saved. */
const stopped = ({ job }: Life) =>
  job.stop().then(
    () => true,
    () => false,
  )

async function entriesOf(log: EventLog): Promise<readonly Entry[]> {
  const { entries } = await log.read(await log.positionAt('start'), { limit: 10_000 })
  return entries
}

describe('a consumer of exactlyOnce that is killed, overtaken, and whose effects fail', () => {
  it(
    'has one effect or one dead letter of each entry, in order within a key',
    { timeout: 60_000 },
    async () => {
      await fc.assert(fc.asyncProperty(scenario, run), { numRuns: Number(process.env['RUNS'] ?? 60) })
    },
  )
})

async function run(given: typeof scenario extends fc.Arbitrary<infer T> ? T : never): Promise<void> {
  const { partitions, isKeyed, isPrepared, isFar, maxUnacknowledged, plans, steps } = given
  const crashes = new Set(given.crashes)
  const logCrashes = new Set(given.logCrashes)
  const root = simulatedStore({ partitions })
  const audit = await openLog(root)
  const database = new SharedDatabase(':memory:')
  database.exec(SCHEMA)
  const attempts = new Map<string, number>()
  let statements = 0
  let writes = 0
  let appended = 0

  const nextAttempt = (entry: Entry) => {
    const number = attempts.get(nameOf(entry)) ?? 0
    attempts.set(nameOf(entry), number + 1)
    return plans[Number(entry.id.replaceAll(/\D/g, '')) % plans.length]?.[number] ?? 'apply'
  }

  const earlier: Life[] = []
  const live = async (): Promise<Life> => {
    // Also what they have claimed since.
    for (const each of earlier) each.store.loseClaims()
    let isDead = false
    const kill = () => {
      isDead = true
      database.lose()
      store.loseClaims()
    }
    const die = () => {
      kill()
      throw new Died('the process has died')
    }
    const store = root.connect({
      latency: isFar ? () => turn() : async () => {},
      faults() {
        if (isDead || logCrashes.has((writes += 1))) die()
      },
    })
    database.step = () => {
      if (isDead || crashes.has((statements += 1))) die()
    }
    const insert = database.prepare('INSERT INTO effect (source, id, revision) VALUES (?, ?, ?)')
    const violate = database.prepare("INSERT INTO booking VALUES ('missing')")
    const effect = (entry: Entry, does = nextAttempt(entry)) => {
      if (isDead) die()
      insert.run(entry.source, entry.id, entry.revision)
      if (does === 'throw' || does === 'unprepared') throw new Error('not yet')
      if (does === 'refuse') throw Object.assign(new Error('never'), { retryable: false })
      if (does === 'violate') violate.run()
      if (does.startsWith('commit')) database.exec('COMMIT')
      if (does === 'commit and throw') throw new Error('after its commit')
      if (does === 'rollback') database.exec('ROLLBACK')
    }
    const prepare = async (entry: Entry) => {
      const does = nextAttempt(entry)
      for (let turns = Number(entry.position.length + appended) % 3; turns > 0; turns--) await turn()
      if (does === 'unprepared') throw new Error('cannot be prepared')
      return does
    }
    const log = await openLog(store)
    const job = log.consume(
      'ledger',
      {
        maxUnacknowledged,
        retries: 1,
        initialDelay: 0,
        maxDelay: 0,
        deadLetters: 'log',
        ...(isKeyed && { key: ({ source }: Entry) => source }),
      },
      isPrepared
        ? exactlyOnce(database, { prepare, effect })
        : exactlyOnce(database, { effect: (entry: Entry) => effect(entry) }),
    )
    const life: Life = { store, log, job, kill, isOver: false }
    const over = () => {
      life.isOver = true
    }
    job.done.then(over, over)
    return life
  }

  const end = async ({ log, store }: Life) => {
    store.loseClaims()
    await log.close().catch(() => {})
  }

  let life: Life | undefined
  for (const each of steps) {
    if (life?.isOver === true) {
      await end(life)
      life = undefined
    }
    life ??= await live()
    if (each.does === 'append') {
      const events = Array.from({ length: each.count }, (): ResearchEvent => {
        appended += 1
        const kind = appended % 5
        // A run with its output after the same run without is its next revision.
        if (kind === 3) return bareRun(`run ${appended}`)
        return kind === 4 ? fullRun(`run ${appended - 1}`) : change(`${appended}`, `m${appended % 3}`)
      })
      await append(root, events)
    } else if (each.does === 'wait') for (let turns = 0; turns < each.turns; turns++) await turn()
    else if (each.does === 'redeliver') await audit.deadLetters('ledger').redeliver('all')
    else if (each.does === 'stop') {
      await stopped(life)
      await end(life)
      life = undefined
    } else {
      if (each.does === 'kill') life.kill()
      // One that is overtaken goes on, and does not know it.
      life.store.loseClaims()
      earlier.push(life)
      life = undefined
    }
  }

  crashes.clear()
  logCrashes.clear()
  const entries = await entriesOf(audit)
  const effects = () => database.all('SELECT * FROM effect ORDER BY number').map(nameOf)
  const letters = () => all(audit.deadLetters('ledger').list())
  const isComplete = async () => {
    if (entries.length === 0) return true
    const dead = await letters()
    if (dead.some(({ isRedelivered }) => isRedelivered)) return false
    const done = new Set([...effects(), ...dead.map(({ entry }) => nameOf(entry))])
    return entries.every((entry) => done.has(nameOf(entry)))
  }
  for (let turns = 0, isDone = false; !isDone; turns++) {
    life ??= await live()
    if (!life.isOver) await turn()
    isDone = (life.isOver || (await isComplete())) && (await stopped(life)) && (await isComplete())
    if (isDone || life.isOver) {
      await end(life)
      life = undefined
    }
    if (turns === MAX_TURNS) throw new Error(`not handled: ${JSON.stringify([effects(), await letters()])}`)
  }
  for (const each of earlier) await end(each)

  const found = effects()
  const dead = (await letters()).map(({ entry }) => nameOf(entry))
  expect([...found, ...dead].toSorted()).toEqual(entries.map(nameOf).toSorted())
  const isOrdered = isKeyed && !steps.some(({ does }) => does === 'redeliver')
  const sourceOf = new Map(entries.map((entry) => [nameOf(entry), entry.source]))
  const bySource = (names: readonly string[]) =>
    isOrdered ? Object.groupBy(names, (name) => sourceOf.get(name) ?? '') : {}
  const handled = entries.map(nameOf).filter((name) => found.includes(name))
  expect(bySource(found)).toEqual(bySource(handled))
  await audit.close()
  database.close()
}
