import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openLog } from 'rivulet/log'
import type { EventLog, LogJob } from 'rivulet/log'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

/** What happens to the consumer in a turn. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant('append' as const), count: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 8 }) }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('kill' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('stop' as const) }) },
)

const scenario = fc.record({
  partitions: fc.integer({ min: 1, max: 3 }),
  concurrency: fc.integer({ min: 1, max: 5 }),
  maxUnacknowledged: fc.integer({ min: 1, max: 9 }),
  isFar: fc.boolean(),
  /** How many turns each handler takes. */
  delays: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 7 }),
  /** Which writes of the store crash, before or after their effect. */
  crashes: fc.array(fc.nat({ max: 60 }), { maxLength: 4 }),
  steps: fc.array(step, { maxLength: 40 }),
})

/** Resolves when the log is closed, also where its store has crashed. */
const closed = (log: EventLog) => log.close().catch(() => {})

describe('a consumer that is killed, stopped, and whose store crashes', () => {
  it('handles every entry, and none again that was saved as acknowledged', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ partitions, isFar, delays, crashes, steps, ...options }) => {
        let writes = 0
        const faults = (_write: string, phase: 'before' | 'after') => {
          writes += 1
          if (crashes.includes(writes)) throw new Error(`crashed ${phase} the effect`)
        }
        const latency = isFar ? () => turn() : async () => {}
        const root = simulatedStore({ partitions })
        const handled = new Map<string, number>()
        let next = 0
        let life: { readonly store: SimulatedStore; readonly log: EventLog; readonly job: LogJob } | undefined

        const killed: SimulatedStore[] = []
        // Also what they claim after their end.
        const loseClaims = () => killed.forEach((store) => store.loseClaims())

        const live = async () => {
          loseClaims()
          const store = root.connect({ latency, faults })
          const log = await openLog(store)
          const job = log.consume('c', options, async ({ id }) => {
            for (let left = delays[Number(id) % delays.length] ?? 0; left > 0; left--) await turn()
            // No handler of a killed process ends.
            if (killed.includes(store)) return new Promise(() => {})
            handled.set(id, (handled.get(id) ?? 0) + 1)
          })
          return { store, log, job }
        }
        for (const each of steps) {
          // A process that crashed is started again.
          life ??= await live()
          const { store, log, job } = life
          const failed = job.done.then(
            () => false,
            () => true,
          )
          if (each.does === 'append') {
            await append(
              root,
              Array.from({ length: each.count }, () => change(String((next += 1)), `m${next % 4}`)),
            )
          } else if (each.does === 'wait') {
            for (let turns = 0; turns < each.turns; turns++) await turn()
          } else {
            // The writes of a killed one that are on their way may still have their effect.
            if (each.does === 'kill') killed.push(store)
            else
              await job.stop().then(
                () => closed(log),
                () => closed(log),
              )
            life = undefined
          }
          if (life !== undefined && (await Promise.race([failed, turn(false)]))) {
            await closed(log)
            life = undefined
          }
        }
        if (life !== undefined) await closed(life.log)

        for (let turns = 0; turns < 30; turns++) await turn()
        loseClaims()
        const last = await openLog(root.connect())
        const again: string[] = []
        const job = last.consume('c', {}, ({ id }) => void again.push(id))
        for (let turns = 0; turns < 30; turns++) await turn()
        await job.stop()
        await last.close()
        const lost = Array.from({ length: next }, (_, n) => String(n + 1)).filter(
          (id) => !handled.has(id) && !again.includes(id),
        )
        expect(lost).toEqual([])
        expect(new Set(again).size).toBe(again.length)
      }),
      { numRuns: Number(process.env['RUNS'] ?? 150) },
    )
  })
})
