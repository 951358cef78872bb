import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { concat, from as fromList, NEVER } from 'rxjs'
import { LogInUseError, LogPositionError, openLog } from 'rivulet/log'
import type { EventLog, LogJob, NewEntry } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import * as streams from 'rivulet/streams'
import { describe, expect, it } from 'vitest'
import { newEntry } from '../../../src/log/store/new-entry.ts'
import { tickEvent } from '../../../src/protocol/log-event.ts'
import { computed } from '../../streams/joins-reference.ts'
import {
  arrival,
  BEGIN,
  definitionOf,
  eventOf,
  outputOf,
  plainOf,
  settings,
  sorted,
} from '../../streams/random-joins.ts'
import type { Item } from '../../streams/random-joins.ts'
import { readAll } from '../conformance/fixture.ts'
import { inFile, inMemory } from './faulty-logs.ts'
import type { OpenWithFaults } from './faulty-logs.ts'

const runs = (count: number) => ({ numRuns: Number(process.env['RUNS'] ?? count) })

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant('append' as const),
      arrivals: fc.array(arrival, { minLength: 1, maxLength: 12 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ does: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constantFrom('kill' as const, 'cut' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('stop' as const) }) },
)

const scenario = fc.record({
  given: settings,
  /** Which writes of the store crash. */
  crashes: fc.array(fc.nat({ max: 50 }), { maxLength: 5 }),
  steps: fc.array(step, { maxLength: 24 }),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

interface Life {
  readonly log: EventLog
  readonly job: LogJob
  failure: unknown
}

/**
 * Runs joins and a table over a log whose processes crash, stop and are killed. Returns what is left, and what the reference computes from the
 * entries, with the ids of a run in memory.
 *
 * @param sharedFrom From which life on it is shared, among several at a time.
 */
async function run(
  { given, crashes, steps }: Scenario,
  appendSize: number,
  open: OpenWithFaults,
  sharedFrom = Infinity,
) {
  let now = BEGIN
  const underTest = open(() => now)
  let writes = 0
  const crashing = () => crashes.includes((writes += 1))
  const root = underTest.connect(() => false)
  const recorder = await root.claim('stream:test')
  const append = (entries: readonly NewEntry[]) => root.append([{ fence: recorder, expect: null, entries }])
  const { definition, table } = definitionOf(given)
  const lives: Life[] = []
  const opened: LogStore[] = []
  const loseClaims = async (stores: readonly LogStore[]) => {
    for (const store of stores) await underTest.loseClaims(store)
  }
  const live = async (isDue: () => boolean, isShared = lives.length >= sharedFrom) => {
    await loseClaims(opened)
    let isOpen = false
    const store = underTest.connect(() => isOpen && isDue())
    opened.push(store)
    const log = await openLog(store)
    isOpen = true
    const life: Life = { log, job: log.process(definition, { share: isShared }), failure: undefined }
    life.job.done.catch((error: unknown) => (life.failure = error))
    lives.push(life)
    return life
  }

  // A reader that follows the table, and resumes after the change at which it was cut.
  const reader = await openLog(underTest.connect(() => false))
  const followed = new Map<string, Item>()
  let seenAt: string | undefined
  const follow = () =>
    reader
      .table(definition, table)
      .changes(seenAt)
      .subscribe({
        next({ key, item, position }) {
          followed.set(key, item)
          seenAt = position
        },
        error(error: unknown) {
          // It was divided: its positions are others.
          if (!(error instanceof LogPositionError) || sharedFrom === Infinity) throw error
          followed.clear()
          seenAt = undefined
          follower = follow()
        },
      })
  let follower = follow()

  try {
    let number = 0
    let running: Life | undefined
    for (const [index, each] of steps.entries()) {
      running ??= await live(crashing)
      // It joins the one that runs, which may lose its claims.
      if (index % 4 === 3 && lives.length > sharedFrom) await live(crashing)
      if (each.does === 'append') {
        let entries: NewEntry[] = []
        for (const next of each.arrivals) {
          now += next.delay
          entries.push(newEntry(eventOf(next, (number += 1), now), next.kind === 'backfill'))
          if (entries.length < appendSize) continue
          await append(entries)
          entries = []
        }
        if (entries.length > 0) await append(entries)
      } else if (each.does === 'wait') for (let n = 0; n < each.turns; n++) await turn()
      else if (each.does === 'cut') {
        follower.unsubscribe()
        follower = follow()
      } else {
        // The writes of a killed one that are on their way may still have their effect.
        if (each.does === 'stop') await running.log.close().catch(() => {})
        running = undefined
      }
      await turn()
      if (running?.failure !== undefined) {
        await running.log.close().catch(() => {})
        running = undefined
      }
    }
    // Nothing waits for partners any more, and what was dropped is reported.
    now += 120_000
    await append([newEntry(tickEvent((number += 1), now, { through: now, complete: true }))])
    let final = await live(() => false, sharedFrom < Infinity)
    const readers =
      sharedFrom === Infinity ? ['process:p'] : Array.from({ length: 8 }, (_, n) => `process.${n}:p`)
    const isDone = async () => {
      const end = await root.positionAt('end')
      const cursors = await Promise.all(readers.map(async (name) => (await root.reader(name))?.cursor))
      return cursors.every((cursor) => cursor === end)
    }
    for (let turns = 0; !(await isDone()); turns++) {
      if (turns > 100_000) throw new Error('the process does not come to the end')
      // A killed one has claimed the name at the last moment.
      if (final.failure instanceof LogInUseError) final = await live(() => false, sharedFrom < Infinity)
      else if (final.failure !== undefined) throw final.failure
      // Those that died hold what they have claimed at last.
      if (sharedFrom < Infinity) await loseClaims(opened.slice(0, -1))
      await turn()
    }
    const entries = await readAll(root)
    const reference = computed(plainOf(given), entries)
    const rows = reference.tables.get('table') ?? new Map<string, Item>()
    const isFollowed = () =>
      Array.from(rows).every(([key, item]) => JSON.stringify(followed.get(key)) === JSON.stringify(item))
    for (let turns = 0; !isFollowed(); turns++) {
      if (turns > 10_000) break
      await turn()
    }
    const state = reader.table(definition, table)
    const read = await Promise.all(
      Array.from(rows.keys(), async (key) => [key, await state.get(key)] as const),
    )
    const appended = entries.filter(({ cause }) => cause?.process === 'p')
    const inOneRun: { readonly id: string }[] = []
    concat(fromList(entries), NEVER)
      .pipe(streams.inMemory(definition))
      .subscribe((event) => inOneRun.push(event))
      .unsubscribe()
    return {
      left: {
        outputs: sorted(appended.map(outputOf)),
        ids: idsOf(appended, sharedFrom),
        read: new Map(read),
        followed,
        waiting: await waitingRows(reader),
      },
      expected: {
        outputs: sorted(reference.steps.flat()),
        ids: idsOf(inOneRun, sharedFrom),
        read: rows,
        followed: rows,
        waiting: [],
      },
    }
  } finally {
    follower.unsubscribe()
    await Promise.all(lives.map(({ log }) => log.close().catch(() => {})))
    await reader.close()
    await root.close()
    await underTest.remove()
  }
}

/** The ids in their order, which only the keys of a process that is not shared have among them. */
function idsOf(events: readonly { readonly id: string }[], sharedFrom: number): readonly string[] {
  const ids = events.map(({ id }) => id)
  return sharedFrom === Infinity ? ids : ids.toSorted()
}

/** The keys of rows that are no row of the table: a state that nothing needs any more. */
async function waitingRows(log: EventLog): Promise<readonly string[]> {
  const { state } = await log.state('p').snapshot()
  return [...state.keys()].filter((key) => !key.startsWith('["table"'))
}

describe('joins and a table whose process is killed and stopped, and whose store crashes', () => {
  it('has the results of the reference, each once and with its id, in memory', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, fc.boolean(), async (steps, isFar) => {
        const { left, expected } = await run(steps, 1, inMemory(1, isFar))
        expect(left).toEqual(expected)
      }),
      runs(60),
    )
  })

  it('has them if it is shared, and if it was not at first', async () => {
    const logs = fc.tuple(scenario, fc.integer({ min: 2, max: 4 }), fc.boolean(), fc.nat({ max: 3 }))
    await fc.assert(
      fc.asyncProperty(logs, async ([steps, partitions, isFar, sharedFrom]) => {
        const { left, expected } = await run(steps, 1, inMemory(partitions, isFar), sharedFrom)
        expect(left).toEqual(expected)
      }),
      runs(25),
    )
  })

  it('has them in an SQLite file', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (steps) => {
        const { left, expected } = await run(steps, 6, inFile)
        expect(left).toEqual(expected)
      }),
      runs(8),
    )
  })
})
