import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { from, lastValueFrom, toArray } from 'rxjs'
import { expect, it } from 'vitest'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { Entry, MemoryStore } from 'rivulet/log'
import { inMemory } from 'rivulet/streams'
import type { ProcessError, ProcessFunctions } from 'rivulet/streams'
import { append } from '../log/append.ts'
import { readAll } from '../log/conformance/fixture.ts'
import type { Tally } from '../log/process/interpreter.ts'
import { appended, randomProcess, timeEvent } from '../log/process/scenario.ts'
import { change } from '../operators/events.ts'

const START = Date.parse('2026-01-01T00:00:00Z')

const given = fc.record({
  lateness: fc.constantFrom(0, 5, 20),
  timeToLive: fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined }),
  /** Every so many entries, a function throws. */
  failing: fc.integer({ min: 2, max: 30 }),
  entries: fc.array(appended, { maxLength: 40 }),
})

it(
  'gives the output, the ids and the failures of the same process over a log',
  { timeout: 60_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(given, async ({ lateness, timeToLive, failing, entries }) => {
        const plain = randomProcess(lateness, timeToLive)
        const functions: ProcessFunctions<Tally> = {
          key: (entry) => plain.key(entryOf(entry)),
          init: () => ({ seen: 0, trace: 0 }),
          event: (state, entry, context) => {
            plain.event(state, entryOf(entry), context)
            if (state.trace % failing === 1) throw new Error(`cannot go on at ${state.trace}`)
          },
          timer: (state, due, context, name, data) => {
            if (due % failing === 1) throw new Error(`cannot go on at ${due}`)
            plain.timer(state, due, context, name, data)
          },
          lateness,
          ...(timeToLive !== undefined && { timeToLive }),
          onError: 'dead-letter',
        }
        const { store, recorded } = await recordedLog(entries)
        const log = await openLog(store)
        log.process('p', { ...functions, version: 1 })
        while ((await store.reader('process:p'))?.cursor !== (await store.positionAt('end'))) await turn()
        const deadLetters = new Map<string | undefined, string>()
        for await (const { entry, error } of log.deadLetters({ process: 'p' }).list()) {
          deadLetters.set(entry?.position, error.message)
        }
        const expected = (await readAll(store)).filter(({ cause }) => cause !== undefined)
        await log.close()

        // A log keeps one dead letter for an entry, the last one.
        const failures = new Map<string | undefined, string>()
        const onDeadLetter = ({ message, entry }: ProcessError) => failures.set(entry?.position, message)
        const output = await lastValueFrom(
          from(recorded).pipe(inMemory('p', functions, { onDeadLetter }), toArray()),
        )
        expect(output).toEqual(expected.map(eventOf))
        expect(failures).toEqual(deadLetters)
      }),
      { numRuns: Number(process.env['RUNS'] ?? 60) },
    )
  },
)

/** A log with these entries. */
async function recordedLog(
  entries: readonly (typeof appended extends fc.Arbitrary<infer T> ? T : never)[],
): Promise<{ readonly store: MemoryStore; readonly recorded: readonly Entry[] }> {
  let now = START
  const store = memoryStore({ clock: () => now })
  for (const [number, each] of entries.entries()) {
    const { monitor, delay, age, program } = each
    now += delay
    const time = new Date(now - age).toISOString()
    const event: ResearchEvent = timeEvent(each, now) ?? {
      ...change(`${number}:${program}`, `m${monitor}`),
      time,
    }
    await append(store, [event])
  }
  return { store, recorded: await readAll(store) }
}

/** The functions read no position. */
function entryOf(entry: Omit<Entry, 'position'>): Entry {
  return { position: '', ...entry } as Entry
}

/** What a log knows of an entry is not part of the event. */
function eventOf({ position: _p, recorded: _r, revision: _n, backfill: _b, ...event }: Entry): unknown {
  return event
}
