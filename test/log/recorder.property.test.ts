import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Recorder } from '../../src/log/record/recorder.ts'
import { change } from '../operators/events.ts'
import { readAll } from './conformance/fixture.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { StoreWrite } from '../../src/log/memory/store.ts'

const STREAMS = ['a', 'b', 'c'] as const
const STREAM_NAMES = STREAMS.map((name) => `stream:${name}`)

/** What a recorder gets from its sources within one life. */
interface Life {
  /** Bursts: how many events each stream adds before the event loop goes on. */
  readonly bursts: readonly (readonly [stream: number, count: number])[]
  /** How many turns of the event loop each call of the store takes, in turn. */
  readonly latencies: readonly number[]
  /** The append that crashes, and on which side of its effect. */
  readonly crash: { readonly append: number; readonly step: 'before' | 'after' } | undefined
}

const lives = fc.array(
  fc.record<Life>({
    bursts: fc.array(fc.tuple(fc.nat(STREAMS.length - 1), fc.integer({ min: 1, max: 400 })), {
      maxLength: 12,
    }),
    latencies: fc.array(fc.nat(4), { minLength: 1, maxLength: 8 }),
    crash: fc.option(fc.record({ append: fc.nat(4), step: fc.constantFrom('before', 'after') }), {
      nil: undefined,
    }),
  }),
  { minLength: 1, maxLength: 5 },
)

describe('a recorder that crashes', () => {
  it('records each event once and in order, whatever is added during appends and whenever it crashes', async () => {
    await fc.assert(
      fc.asyncProperty(lives, async (script) => {
        const root = simulatedStore()
        for (const life of script) await live(root, life)
        const positions = await root.streamPositions(STREAM_NAMES)
        const last = { bursts: STREAMS.map((_, n) => [n, 300] as const), latencies: [1], crash: undefined }
        await live(root, last)

        const entries = await readAll(root)
        for (const [n, name] of STREAMS.entries()) {
          const recorded = entries
            .filter(({ source }) => source.endsWith(`/${name}`))
            .map(({ id }) => Number(id))
          const count = Number(positions[n] ?? 0) + 300
          expect(recorded).toEqual(Array.from({ length: count }, (_, at) => at + 1))
        }
      }),
      { numRuns: 60 },
    )
  })
})

/** Runs a recorder over sources that resume where the log has them. */
async function live(
  root: ReturnType<typeof simulatedStore>,
  { bursts, latencies, crash }: Life,
): Promise<void> {
  let calls = 0
  let appends = 0
  const store = root.connect({
    latency: async () => {
      for (let left = latencies[calls++ % latencies.length] ?? 0; left > 0; left--) await turn()
    },
    faults(write: StoreWrite, step) {
      if (write !== 'append') return
      if (step === 'before') appends += 1
      if (crash !== undefined && appends > crash.append && step === crash.step) throw new Error('crash')
    },
  })
  const recorder = new Recorder(store, () => {})
  const streams = await Promise.all(STREAMS.map((name) => recorder.open(name)))
  const next = streams.map(({ position }) => Number(position ?? 0) + 1)
  for (const [stream, count] of bursts) {
    for (let left = count; left > 0; left--) {
      const at = next[stream] ?? 0
      next[stream] = at + 1
      streams[stream]?.add(
        { ...change(`${at}`), source: `/v1/monitors/${STREAMS[stream]}` },
        { text: () => `${at}` },
      )
    }
    await turn()
  }
  if (crash === undefined) await recorder.close()
  else await recorder.flushed()
  await store.close()
}
