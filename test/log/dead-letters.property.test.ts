import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openLog } from 'rivulet/log'
import type { EventLog, LogJob } from 'rivulet/log'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

const STEPS = ['append', 'wait', 'wait', 'redeliver', 'remove', 'mend', 'kill', 'stop'] as const

const scenario = fc.record({
  partitions: fc.integer({ min: 1, max: 3 }),
  concurrency: fc.integer({ min: 1, max: 5 }),
  maxUnacknowledged: fc.integer({ min: 1, max: 9 }),
  isFar: fc.boolean(),
  /** Of each entry: whether its handler fails until it is mended. */
  failing: fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }),
  /** Which writes of the store crash, before or after their effect. */
  crashes: fc.array(fc.nat({ max: 60 }), { maxLength: 5 }),
  steps: fc.array(fc.record({ does: fc.constantFrom(...STEPS), count: fc.integer({ min: 1, max: 6 }) }), {
    maxLength: 40,
  }),
})

describe('dead letters of a consumer that is killed, stopped, and whose store crashes', () => {
  it('lose no entry: each is handled, removed on purpose, or there', { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ partitions, isFar, failing, crashes, steps, ...options }) => {
        let writes = 0
        const faults = (_write: string, phase: 'before' | 'after') => {
          writes += 1
          if (crashes.includes(writes)) throw new Error(`crashed ${phase} the effect`)
        }
        const latency = isFar ? () => turn() : async () => {}
        const root = simulatedStore({ partitions })
        const witness = await openLog(root)
        const removed = new Set<string>()
        const handled = new Set<string>()
        let mended = false
        let next = 0
        let life: { readonly store: SimulatedStore; readonly log: EventLog; readonly job: LogJob } | undefined
        const killed: SimulatedStore[] = []

        const letters = async () => {
          const all: string[] = []
          for await (const { entry } of witness.deadLetters('c').list()) all.push(entry.id)
          return all
        }
        const live = async () => {
          killed.forEach((store) => store.loseClaims())
          const store = root.connect({ latency, faults })
          const log = await openLog(store)
          const settings = { ...options, deadLetters: 'log', retries: 0 } as const
          const job = log.consume('c', settings, async ({ id }) => {
            await turn()
            // No handler of a killed process ends.
            if (killed.includes(store)) return new Promise(() => {})
            if (!mended && failing[Number(id) % failing.length] === true) throw new Error(`not ${id}`)
            handled.add(id)
          })
          job.done.catch(() => {})
          return { store, log, job }
        }
        for (const { does, count } of steps) {
          // A process that crashed is started again.
          life ??= await live()
          const { store, log, job } = life
          if (does === 'append') {
            const events = Array.from({ length: count }, () => change(String((next += 1)), `m${next % 4}`))
            await append(root, events)
          } else if (does === 'wait') {
            for (let turns = 0; turns < count; turns++) await turn()
          } else if (does === 'redeliver') {
            // From a process whose writes crash too.
            await log
              .deadLetters('c')
              .redeliver('all')
              .catch(() => {})
          } else if (does === 'remove') {
            const [first] = await letters()
            if (first !== undefined) {
              for await (const { entry } of witness.deadLetters('c').list()) {
                if (entry.id !== first) continue
                await witness.deadLetters('c').remove(entry.position)
                removed.add(first)
              }
            }
          } else if (does === 'mend') {
            mended = !mended
          } else {
            if (does === 'kill') killed.push(store)
            else await job.stop().catch(() => {})
            if (does === 'stop') await log.close().catch(() => {})
            life = undefined
          }
          const failed = job.done.then(
            () => false,
            () => true,
          )
          if (life !== undefined && (await Promise.race([failed, turn(false)]))) {
            await log.close().catch(() => {})
            life = undefined
          }
        }
        await life?.log.close().catch(() => {})

        for (let turns = 0; turns < 30; turns++) await turn()
        // A consumer without faults handles the rest, and what is handed out again.
        mended = true
        killed.forEach((store) => store.loseClaims())
        const last = await openLog(root.connect())
        const again: string[] = []
        const job = last.consume('c', {}, ({ id }) => void again.push(id))
        for (let turns = 0; turns < 30; turns++) await turn()
        const left = await letters()
        const all = Array.from({ length: next }, (_, n) => String(n + 1))
        const gone = all.filter(
          (id) => ![handled, removed, new Set(again), new Set(left)].some((set) => set.has(id)),
        )
        expect(gone).toEqual([])
        await last.deadLetters('c').redeliver('all')
        for (let turns = 0; turns < 60; turns++) await turn()
        expect(await letters()).toEqual([])
        expect(left.filter((id) => !again.includes(id))).toEqual([])
        expect(new Set(again).size).toBe(again.length)
        await job.stop()
        await last.close()
      }),
      { numRuns: Number(process.env['RUNS'] ?? 150) },
    )
  })
})
