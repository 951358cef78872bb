import { deepStrictEqual } from 'node:assert/strict'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately } from '../rounds.ts'
import { startServer } from '../server.ts'
import type { BenchServer } from '../server.ts'

const SIZES = [
  { name: 'stream-by-hand-400b', events: 200_000, bytes: 400 },
  { name: 'stream-by-hand-10kb', events: 20_000, bytes: 10_000 },
]

/** What a reader of groups answers. */
interface Reading {
  readonly count: number
  /** Events per second of processor time. */
  readonly rate: number
  readonly events: readonly {
    readonly received: string
    readonly data: { readonly run: { readonly taskgroup_id: string } }
  }[]
}

/**
 * Events per second of processor time of two groups' runs, typed, merged and with `dedupe`, against the same result by hand
 * (`by-hand/group-streams.ts`), over connections that fail. Each side has a process of its own: in one process, the two share the
 * compiled code of the parser, and the same code took up to 1.4 times as long for one side as for the other.
 */
export const measure: Measure = async () => {
  await using groups = await startServer('flaky-groups')
  await using ours = await startServer('group-reader', ['ours', groups.url])
  await using byHand = await startServer('group-reader', ['by-hand', groups.url])
  deepStrictEqual(await emitted(ours), await emitted(byHand))
  const results = []
  for (const { name, events, bytes } of SIZES) {
    const query = ['a', 'b'].map((letter) => `group=${events / 2}x${bytes}x${letter}`).join('&')
    const rate = (reader: BenchServer) => async () => {
      const reading = await read(reader, query)
      expectCount(reading.count, events)
      return reading.rate
    }
    const { ratio, ...details } = await alternately(rate(ours), rate(byHand), { rounds: 15 })
    results.push(result(name, ratio, { atLeast: 1.25 }, { ...details, unit: 'events/s' }))
  }
  return results
}

/** What a reader emits for two groups, in the order of each. Only the time of arrival differs between readers. */
async function emitted(reader: BenchServer): Promise<unknown> {
  const { events } = await read(reader, 'full&group=2000x400xa&group=2000x400xb')
  const comparable = events.map(({ received: _received, ...event }) => event)
  return Map.groupBy(comparable, ({ data }) => data.run.taskgroup_id)
}

async function read({ url }: BenchServer, query: string): Promise<Reading> {
  const response = await fetch(`${url}/?${query}`)
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as Reading
}
