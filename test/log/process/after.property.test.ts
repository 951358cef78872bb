import * as fc from 'fast-check'
import { memoryStore, openLog } from 'rivulet/log'
import type { EventLog, LogJob } from 'rivulet/log'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { append } from '../append.ts'
import { caughtUp, copying, counting, eventAt, lateIn, outputsOf, tickThrough, WINDOW } from './windows.ts'

const NAMES = ['one', 'two', 'counts', 'sums'] as const

type Name = (typeof NAMES)[number]

const start: Readonly<Record<Name, (log: EventLog) => LogJob>> = {
  one: (log) => log.process('one', copying('/s', { lateness: 3_000 })),
  two: (log) => log.process('two', copying('/s')),
  counts: (log) => log.process('counts', counting('/processes/one', { after: ['one', 'two'] })),
  sums: (log) => log.process('sums', counting('/processes/counts', { after: ['counts'], lateness: WINDOW })),
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('event'), ahead: fc.nat(25) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('tick'), ahead: fc.nat(15) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('switch'), name: fc.constantFrom(...NAMES) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('turns'), turns: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen') }) },
)

it('counts the same windows, none of them late, however processes that feed each other are run, stopped and lag', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
      const store = memoryStore()
      let log = await openLog(store.connect())
      const running = new Map<Name, LogJob>()
      const stop = async (name: Name) => {
        await running.get(name)?.stop()
        running.delete(name)
      }
      const seconds: number[] = []
      let through = 0
      const add = async (second: number) => {
        // An identity is there once.
        if (seconds.includes(second)) return
        seconds.push(second)
        await append(store, [eventAt(second)])
      }
      for (const each of steps) {
        if ('turns' in each) for (let n = 0; n < each.turns; n++) await turn()
        else if ('name' in each) {
          if (running.has(each.name)) await stop(each.name)
          else running.set(each.name, start[each.name](log))
        } else if (!('ahead' in each)) {
          await log.close()
          running.clear()
          log = await openLog(store.connect())
        } else if (each.kind === 'event') await add(through + each.ahead)
        else {
          through += each.ahead
          await append(store, [tickThrough(through)])
        }
      }
      for (const name of NAMES) if (!running.has(name)) running.set(name, start[name](log))
      while ((await log.stats()).readers.length < NAMES.length) await turn()
      // Two ticks, since one may come before a process knows that another one comes after it.
      for (const end of [1_000, 2_000]) {
        await append(store, [tickThrough(through + end)])
        await caughtUp(log, ...NAMES)
      }
      const counts = windowsOf(seconds)
      expect(await outputsOf(log, 'counts')).toEqual(counts)
      const ends = counts.map(({ from }) => from + WINDOW / 1_000)
      expect(await outputsOf(log, 'sums')).toEqual(windowsOf(ends))
      expect([await lateIn(log, 'counts'), await lateIn(log, 'sums')]).toEqual([0, 0])
      await log.close()
    }),
    { numRuns: 40 },
  )
})

/** The windows of some seconds, and how many of them each has. */
function windowsOf(seconds: readonly number[]): readonly { readonly from: number; readonly count: number }[] {
  const length = WINDOW / 1_000
  const froms = seconds.map((second) => second - (second % length)).toSorted((a, b) => a - b)
  return [...new Set(froms)].map((from) => ({ from, count: froms.filter((each) => each === from).length }))
}
