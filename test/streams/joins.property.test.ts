import * as fc from 'fast-check'
import { from as fromList, lastValueFrom, toArray } from 'rxjs'
import { inMemory, testStream } from 'rivulet/streams'
import type { StreamEntry, TestEvent } from 'rivulet/streams'
import { expect, it } from 'vitest'
import { computed } from './joins-reference.ts'
import { arrival, BEGIN, definitionOf, eventOf, outputOf, plainOf, settings, sorted } from './random-joins.ts'
import type { Arrival, Settings } from './random-joins.ts'

const numRuns = Number(process.env['RUNS'] ?? 1_000)

const arrivals = fc.array(arrival, { maxLength: 40 })

/** The entries of a log to which the events were appended. A run has a second one if its output comes after it. */
function entriesOf(given: readonly Arrival[]): readonly StreamEntry[] {
  const known = new Map<string, number>()
  let now = BEGIN
  return given.flatMap((each, n) => {
    now += each.delay
    const event = eventOf(each, n, now)
    const name = `${event.source} ${event.id}`
    const saysMore = each.kind === 'output' ? 2 : 1
    if ((known.get(name) ?? 0) >= saysMore) return []
    const revision = known.has(name) ? 2 : 1
    known.set(name, saysMore)
    return [{ ...event, recorded: now, revision, backfill: each.kind === 'backfill' }]
  })
}

/** The entries as the test driver has them: each comes when it is received, and a tick when all has come. */
function inTest(entries: readonly StreamEntry[]): readonly StreamEntry[] {
  let recorded = 0
  return entries.map((entry) => {
    const at = entry.type === 'log.tick' ? Date.parse(entry.data.through ?? '') : entry.recorded
    recorded = Math.max(recorded, at)
    return { ...entry, recorded, received: new Date(recorded).toISOString() }
  })
}

function sent({ type, data, time, source, id, recorded, revision, backfill }: StreamEntry): TestEvent {
  return { type, data, time, source, id, recorded, revision, backfill } as TestEvent
}

const inOneRun = (given: Settings, entries: readonly StreamEntry[]) =>
  lastValueFrom(fromList(entries).pipe(inMemory(definitionOf(given).definition), toArray()))

it('gives the joins and tables of the whole list of entries, each at its entry', async () => {
  await fc.assert(
    fc.asyncProperty(settings, arrivals, async (given, arriving) => {
      const entries = inTest(entriesOf(arriving))
      const { steps, end, tables } = computed(plainOf(given), entries)
      const test = testStream(definitionOf(given).definition)
      const outputs = entries.map((entry) =>
        entry.type === 'log.tick'
          ? test.tick(entry.data.through ?? '', entry.data.complete)
          : test.send(sent(entry)),
      )
      expect(outputs.map((some) => sorted(some.map(outputOf)))).toEqual(steps.map(sorted))
      const rows = Array.from(test.state, ([key, row]) => [JSON.parse(key), Object(row).item] as const)
      const tableRows = rows.flatMap(([[stage, key], item]) => (stage === 'table' ? [[key, item]] : []))
      expect(new Map(tableRows.map(([key, item]) => [key, item]))).toEqual(tables.get('table'))
      expect(sorted(test.end().map(outputOf))).toEqual(sorted(end))
      expect(await inOneRun(given, entries)).toEqual(test.outputs)
    }),
    { numRuns },
  )
})

it('gives them over any stream of entries once it completes, each once', async () => {
  await fc.assert(
    fc.asyncProperty(settings, arrivals, async (given, arriving) => {
      const entries = entriesOf(arriving)
      const { steps, end } = computed(plainOf(given), entries)
      const outputs = await inOneRun(given, entries)
      expect(sorted(outputs.map(outputOf))).toEqual(sorted([...steps.flat(), ...end]))
      expect(new Set(outputs.map(({ id }) => id)).size).toBe(outputs.length)
    }),
    { numRuns },
  )
})
