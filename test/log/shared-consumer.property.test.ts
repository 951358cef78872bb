import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openLog } from 'rivulet/log'
import type { EventLog, LogJob } from 'rivulet/log'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

/** What happens to the members in a turn. `member` is modulo their number. */
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ does: fc.constant('append' as const), count: fc.integer({ min: 1, max: 12 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('join' as const) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('leave' as const), member: fc.nat({ max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('kill' as const), member: fc.nat({ max: 5 }) }) },
)

const scenario = fc.record({
  partitions: fc.integer({ min: 1, max: 6 }),
  concurrency: fc.integer({ min: 1, max: 6 }),
  maxUnacknowledged: fc.integer({ min: 1, max: 12 }),
  isFar: fc.boolean(),
  /** Entries that the consumer handles before it is shared, and at how many of its turns it is stopped. */
  alone: fc.option(fc.nat({ max: 12 }), { nil: undefined }),
  /** How many turns each handler takes. */
  delays: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 7 }),
  steps: fc.array(step, { maxLength: 40 }),
})

interface Member {
  readonly store: SimulatedStore
  readonly log: EventLog
  readonly job: LogJob
  isKilled: boolean
}

describe('a shared consumer whose members join, leave and are killed', () => {
  it(
    'handles every entry, none at two members at once, and each source in order',
    { timeout: 60_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(scenario, async ({ partitions, isFar, alone, delays, steps, ...options }) => {
          const root = simulatedStore({ partitions })
          const latency = isFar ? () => turn() : async () => {}
          /** How often each entry was handled, and the entries that handlers have, by members that live. */
          const handled = new Map<string, number>()
          const inHand = new Map<string, Member | 'alone'>()
          const begun = new Map<string, number>()
          const problems: string[] = []
          const members = new Set<Member>()
          let kills = 0
          const killed: SimulatedStore[] = []
          // Also what they claim after their end.
          const loseClaims = () => killed.forEach((store) => store.loseClaims())
          let next = 0

          const handlerOf =
            (who: () => Member | 'alone') =>
            async ({ id, source }: { readonly id: string; readonly source: string }) => {
              const member = who()
              const isKilled = () => member !== 'alone' && member.isKilled
              // Nothing of a killed process goes on.
              if (isKilled()) return new Promise(() => {})
              if (inHand.has(id)) problems.push(`${id} is handled by two`)
              // Without kills, each is handled once; with one, those that it had out come again, from the first of them on.
              if (kills === 0 && Number(id) <= (begun.get(source) ?? 0))
                problems.push(`${id} of ${source} is late`)
              begun.set(source, Number(id))
              inHand.set(id, member)
              for (let left = delays[Number(id) % delays.length] ?? 0; left > 0; left--) await turn()
              if (isKilled()) return new Promise(() => {})
              inHand.delete(id)
              handled.set(id, (handled.get(id) ?? 0) + 1)
              return undefined
            }
          const join = async () => {
            const store = root.connect({ latency })
            const log = await openLog(store)
            const job = log.consume(
              'c',
              { ...options, share: true },
              handlerOf(() => member),
            )
            const member: Member = { store, log, job, isKilled: false }
            job.done.catch((error: unknown) => {
              if (!member.isKilled) problems.push(String(error))
            })
            members.add(member)
          }
          const appendSome = (count: number) =>
            append(
              root,
              Array.from({ length: count }, () => change(String((next += 1)), `m${next % 9}`)),
            )
          const turns = async (count: number) => {
            for (let left = count; left > 0; left--) await turn()
          }
          const nth = (n: number) => Array.from(members)[n % Math.max(1, members.size)]

          if (alone !== undefined) {
            const log = await openLog(root.connect({ latency }))
            const job = log.consume(
              'c',
              options,
              handlerOf(() => 'alone'),
            )
            await appendSome(30)
            await turns(alone)
            // Some begin while it ends.
            const stopped = job.stop()
            await join()
            await stopped
            await log.close()
          }
          for (const each of steps) {
            if (each.does === 'append') await appendSome(each.count)
            else if (each.does === 'wait') await turns(each.turns)
            else if (each.does === 'join') await join()
            else {
              const member = nth(each.member)
              if (member === undefined) continue
              members.delete(member)
              if (each.does === 'leave') {
                // Others go on meanwhile.
                void member.job.stop().then(() => member.log.close())
              } else {
                member.isKilled = true
                kills += 1
                for (const [id, owner] of inHand) if (owner === member) inHand.delete(id)
                killed.push(member.store)
              }
            }
            loseClaims()
          }
          await join()
          const isDone = () => handled.size === next
          for (let left = 3_000; left > 0 && !isDone() && problems.length === 0; left--) {
            loseClaims()
            await turn()
          }
          await Promise.all(Array.from(members, ({ log }) => log.close()))
          await turns(5)
          loseClaims()
          expect(problems).toEqual([])
          expect(handled.size).toBe(next)
          const twice = Array.from(handled.values()).filter((count) => count > 1)
          expect(kills === 0 ? twice : []).toEqual([])
          // What a killed one could not save comes again, and nothing else is left.
          const last = await openLog(root.connect())
          const again: string[] = []
          const job = last.consume('c', { share: true }, ({ id }) => void again.push(id))
          await turns(20)
          await job.stop()
          await last.close()
          expect(new Set(again).size).toBe(again.length)
          expect(kills === 0 ? again : []).toEqual([])
        }),
        { numRuns: Number(process.env['RUNS'] ?? 150) },
      )
    },
  )
})
