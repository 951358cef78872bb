import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { concat, from as fromList, NEVER } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { LogInUseError, openLog } from 'rivulet/log'
import type { EventLog, LogJob } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import * as streams from 'rivulet/streams'
import { describe, expect, it } from 'vitest'
import { newEntry } from '../../../src/log/store/new-entry.ts'
import { tickEvent } from '../../../src/protocol/log-event.ts'
import {
  arrival,
  BEGIN,
  comparable,
  definition,
  definitionOf,
  eventOf,
  outputOf,
} from '../../streams/definitions/random-streams.ts'
import { computed } from '../../streams/definitions/reference.ts'
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
      /** Whether the last event comes again, as after a restart of a recording. */
      again: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ does: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 2, arbitrary: fc.constant({ does: 'kill' as const }) },
  { weight: 1, arbitrary: fc.constant({ does: 'stop' as const }) },
)

const scenario = fc.record({
  definition,
  /** Which writes of the store crash. */
  crashes: fc.array(fc.nat({ max: 50 }), { maxLength: 5 }),
  steps: fc.array(step, { maxLength: 24 }),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

/** A life of the process under test. */
interface Life {
  readonly log: EventLog
  readonly job: LogJob
  failure: unknown
}

/**
 * Runs a definition over a log whose processes crash, stop and are killed. Returns what it has appended, and what the reference computes from
 * the entries, with the ids of a run in memory.
 */
async function run(
  { definition: plain, crashes, steps }: Scenario,
  open: OpenWithFaults,
  /** From which life on it is shared, among several at a time. */
  sharedFrom = Infinity,
): Promise<{ readonly left: unknown; readonly expected: unknown }> {
  let now = BEGIN
  const underTest = open(() => now)
  let writes = 0
  const crashing = () => crashes.includes((writes += 1))
  const root = underTest.connect(() => false)
  const recorder = await root.claim('stream:test')
  const append = (event: ResearchEvent, isBackfill = false) =>
    root.append([{ fence: recorder, expect: null, entries: [newEntry(event, isBackfill)] }])
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
    const job = log.process(definitionOf(plain), { share: isShared })
    const life: Life = { log, job, failure: undefined }
    job.done.catch((error: unknown) => (life.failure = error))
    lives.push(life)
    return life
  }
  try {
    let number = 0
    let running: Life | undefined
    for (const [index, each] of steps.entries()) {
      running ??= await live(crashing)
      // It joins the one that runs, which may lose its claims.
      if (index % 4 === 3 && lives.length > sharedFrom) await live(crashing)
      if (each.does === 'append') {
        for (const given of each.arrivals) {
          now += given.delay
          await append(eventOf(given, (number += 1), now), given.kind === 'backfill')
        }
        const last = each.arrivals.at(-1)
        if (each.again && last !== undefined) await append(eventOf(last, number, now))
      } else if (each.does === 'wait') for (let n = 0; n < each.turns; n++) await turn()
      else {
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
    // All windows but days end, and what was dropped is reported.
    now += 120_000
    await append(tickEvent((number += 1), now, { through: now, complete: true }))
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
    const appended = entries.filter(({ cause }) => cause?.process === 'p')
    const reference = computed(plain, entries).slice(0, -1).flat()
    const { actual, expected } = comparable(appended.map(outputOf), reference)
    const inOneRun: string[] = []
    concat(fromList(entries), NEVER)
      .pipe(streams.inMemory(definitionOf(plain)))
      .subscribe(({ id }) => inOneRun.push(id))
      .unsubscribe()
    return {
      left: { outputs: actual, ids: appended.map(({ id }) => id).toSorted() },
      expected: { outputs: expected, ids: inOneRun.toSorted() },
    }
  } finally {
    await Promise.all(lives.map(({ log }) => log.close().catch(() => {})))
    await root.close()
    await underTest.remove()
  }
}

describe('a definition whose process is killed and stopped, and whose store crashes', () => {
  it('has appended what the reference computes, each once and with its id, in memory', async () => {
    const logs = fc.tuple(scenario, fc.integer({ min: 1, max: 3 }), fc.boolean())
    await fc.assert(
      fc.asyncProperty(logs, async ([steps, partitions, isFar]) => {
        const { left, expected } = await run(steps, inMemory(partitions, isFar))
        expect(left).toEqual(expected)
      }),
      runs(120),
    )
  })

  it('has appended that if it is shared, and if it was not at first', async () => {
    const logs = fc.tuple(scenario, fc.integer({ min: 2, max: 4 }), fc.boolean(), fc.nat({ max: 3 }))
    await fc.assert(
      fc.asyncProperty(logs, async ([steps, partitions, isFar, sharedFrom]) => {
        const { left, expected } = await run(steps, inMemory(partitions, isFar), sharedFrom)
        expect(left).toEqual(expected)
      }),
      runs(40),
    )
  })

  it('has appended that in an SQLite file', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (steps) => {
        const { left, expected } = await run(steps, inFile)
        expect(left).toEqual(expected)
      }),
      runs(15),
    )
  })
})
