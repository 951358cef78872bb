import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openLog } from 'rivulet/log'
import type { EventLog, LogJob } from 'rivulet/log'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'
import { change } from '../operators/events.ts'
import { append } from './append.ts'

/** What happens to the members in a turn. `member` is modulo their number. */
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ does: fc.constant('append' as const), count: fc.integer({ min: 1, max: 15 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ does: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 10 }) }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('join' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('leave' as const), member: fc.nat({ max: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('kill' as const), member: fc.nat({ max: 5 }) }) },
)

const scenario = fc.record({
  partitions: fc.integer({ min: 1, max: 4 }),
  concurrency: fc.integer({ min: 1, max: 4 }),
  size: fc.integer({ min: 1, max: 9 }),
  /** How many more entries than a batch has may be out. */
  more: fc.nat({ max: 12 }),
  wait: fc.constantFrom(0, 1, 60_000),
  retries: fc.nat({ max: 1 }),
  isKeyed: fc.boolean(),
  /** The entries whose handling fails for good: each whose id this divides; 0 for none. */
  bad: fc.constantFrom(0, 3, 7, 11),
  /** How many turns each handler takes. */
  delays: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 7 }),
  steps: fc.array(step, { maxLength: 30 }),
})

interface Member {
  readonly store: SimulatedStore
  readonly log: EventLog
  readonly job: LogJob
  isKilled: boolean
}

describe('a shared consumer with batches whose members join, leave and are killed', () => {
  it(
    'handles each entry or has a dead letter of it, has no others, and handles each key in order',
    { timeout: 120_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(scenario, async (given) => {
          const { partitions, concurrency, size, more, wait, retries, isKeyed, bad, delays, steps } = given
          const root = simulatedStore({ partitions })
          const handled = new Set<string>()
          const problems: string[] = []
          const members = new Set<Member>()
          const killed: SimulatedStore[] = []
          const loseClaims = () => killed.forEach((store) => store.loseClaims())
          const isBad = (id: string) => bad !== 0 && Number(id) % bad === 0
          let next = 0

          const join = async () => {
            const store = root.connect()
            const log = await openLog(store)
            /** The last entry of each source that this member has handled. */
            const last = new Map<string, number>()
            const key = ({ source }: { readonly source: string }) => source
            const job = log.consume(
              'c',
              {
                share: true,
                concurrency,
                retries,
                initialDelay: 0,
                deadLetters: 'log',
                maxUnacknowledged: size + more,
                batch: { size, wait, ...(isKeyed && { key }) },
              },
              async (entries) => {
                if (member.isKilled) return new Promise(() => {})
                const [first] = entries
                if (entries.length > size) problems.push(`${entries.length} entries in a batch`)
                if (isKeyed && entries.some(({ source }) => source !== first.source))
                  problems.push('two keys')
                for (let left = delays[Number(first.id) % delays.length] ?? 0; left > 0; left--) await turn()
                if (member.isKilled) return new Promise(() => {})
                if (entries.some(({ id }) => isBad(id))) throw new Error('boom')
                for (const { id, source } of entries) {
                  // After a part has come back to this member, it may begin anew.
                  if (isKeyed && Number(id) < (last.get(source) ?? 0) && !handled.has(id))
                    problems.push(`${id} is late`)
                  last.set(source, Number(id))
                  handled.add(id)
                }
                return undefined
              },
            )
            const member: Member = { store, log, job, isKilled: false }
            job.done.catch((error: unknown) => {
              if (!member.isKilled) problems.push(String(error))
            })
            members.add(member)
          }
          const turns = async (count: number) => {
            for (let left = count; left > 0; left--) await turn()
          }

          await join()
          for (const each of steps) {
            if (each.does === 'append') {
              await append(
                root,
                Array.from({ length: each.count }, () => change(String((next += 1)), `m${next % 5}`)),
              )
            } else if (each.does === 'wait') await turns(each.turns)
            else if (each.does === 'join') await join()
            else {
              const member = Array.from(members)[each.member % Math.max(1, members.size)]
              if (member === undefined) continue
              members.delete(member)
              if (each.does === 'leave') void member.job.stop().then(() => member.log.close())
              else {
                member.isKilled = true
                killed.push(member.store)
              }
            }
            loseClaims()
          }
          // No batch of the last entries is full.
          for (const { log } of members) await log.close()
          members.clear()
          loseClaims()
          const good = Array.from({ length: next }, (_, n) => String(n + 1)).filter((id) => !isBad(id))
          const finish = await openLog(root.connect())
          const job = finish.consume(
            'c',
            {
              share: true,
              deadLetters: 'log',
              retries: 0,
              batch: { size, wait: 0 },
              maxUnacknowledged: size,
            },
            (entries) => {
              if (entries.some(({ id }) => isBad(id))) throw new Error('boom')
              for (const { id } of entries) handled.add(id)
            },
          )
          const letters = finish.deadLetters('c')
          const isDone = async () =>
            handled.size === good.length && (await letters.count()) === next - good.length
          for (let left = 3_000; left > 0 && !(await isDone()); left--) {
            loseClaims()
            await turn()
          }
          await job.stop()
          const dead: string[] = []
          for await (const { entry } of letters.list()) dead.push(entry.id)
          const again: string[] = []
          const rest = finish.consume('c', { share: true }, ({ id }) => void again.push(id))
          await turns(20)
          await rest.stop()
          await finish.close()

          expect(problems).toEqual([])
          expect(Array.from(handled).toSorted()).toEqual(good.toSorted())
          expect(dead.filter((id) => !isBad(id))).toEqual([])
          expect(dead).toHaveLength(next - good.length)
          expect(again).toEqual([])
        }),
        { numRuns: Number(process.env['RUNS'] ?? 100) },
      )
    },
  )
})
