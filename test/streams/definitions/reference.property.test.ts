import * as fc from 'fast-check'
import { from as fromList, lastValueFrom, toArray } from 'rxjs'
import { inMemory, testStream } from 'rivulet/streams'
import type { StreamEntry, TestEvent } from 'rivulet/streams'
import { expect, it } from 'vitest'
import {
  arrival,
  BEGIN,
  comparable,
  definition,
  definitionOf,
  entriesOf,
  eventOf,
  outputOf,
} from './random-streams.ts'
import { computed } from './reference.ts'

const runs = (count: number) => ({ numRuns: Number(process.env['RUNS'] ?? count) })

const streams = fc.record({ definition, arrivals: fc.array(arrival, { maxLength: 60 }) })

it('emits at each entry of a log what the reference computes from all of them', async () => {
  await fc.assert(
    fc.asyncProperty(streams, async ({ definition: plain, arrivals }) => {
      const entries = entriesOf(arrivals)
      const output = await lastValueFrom(fromList(entries).pipe(inMemory(definitionOf(plain)), toArray()))
      const { actual, expected } = comparable(output.map(outputOf), computed(plain, entries).flat())
      expect(actual).toEqual(expected)
      expect(new Set(output.map(({ id }) => id)).size).toBe(output.length)
    }),
    runs(1_000),
  )
})

it('emits at each step of a test what the reference computes, in the order of its times', () => {
  fc.assert(
    fc.property(streams, ({ definition: plain, arrivals }) => {
      const test = testStream(definitionOf(plain))
      const entries: StreamEntry[] = []
      let [now, recorded] = [BEGIN, BEGIN]
      const steps = arrivals.map((each, number) => {
        now += each.delay
        const event = eventOf(each, number, now)
        const rest = { revision: each.kind === 'revision' ? 2 : 1, backfill: each.kind === 'backfill' }
        // A tick comes when its time has come.
        recorded = Math.max(recorded, each.kind === 'tick' ? now - each.age : now)
        entries.push({ ...event, received: new Date(recorded).toISOString(), recorded, ...rest })
        if (event.type === 'log.tick') return test.tick(event.data.through ?? '', event.data.complete)
        const { type, data, time, source, id } = event
        return test.send({ type, data, time, source, id, recorded: now, ...rest } as TestEvent)
      })
      const all = [...steps, test.end()]
      const reference = computed(plain, entries)
      for (const [n, step] of all.entries()) {
        const { actual, expected } = comparable(step.map(outputOf), reference[n] ?? [])
        expect(actual).toEqual(expected)
      }
      for (const step of steps) {
        const times = step.map(({ time }) => time)
        expect(times).toEqual(times.toSorted())
      }
      expect(test.state.size).toBe(0)
    }),
    runs(1_000),
  )
})
