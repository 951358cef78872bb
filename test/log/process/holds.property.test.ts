import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import type { ResearchEvent } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { Entry, LogJob } from 'rivulet/log'
import { expect, it } from 'vitest'
import { behindEvent, caughtUpEvent } from '../../../src/protocol/log-event.ts'
import { tickAt } from '../../support/ticks.ts'
import { append } from '../append.ts'
import { readAll } from '../conformance/fixture.ts'
import { interpret, outputText } from './interpreter.ts'
import type { PlainProcess } from './interpreter.ts'
import { caughtUp } from './windows.ts'

const sources = fc.constantFrom('/one', '/two', '/three')

/** What an event does to the timers of its key. */
interface Program {
  readonly key: string
  readonly timers: readonly { readonly name: string; readonly after: number }[]
  readonly cancelled: readonly string[]
}

const names = fc.constantFrom('a', 'b', 'c')

const program = fc.record<Program>({
  key: fc.constantFrom('x', 'y', '/three'),
  timers: fc.array(fc.record({ name: names, after: fc.integer({ min: -20, max: 20 }) }), { maxLength: 3 }),
  cancelled: fc.array(names, { maxLength: 1 }),
})

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('event' as const), source: sources, does: program }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('tick' as const), age: fc.nat(10) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('behind' as const),
      source: sources,
      age: fc.nat(20),
      hold: fc.constantFrom(8, 20, Infinity),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('caughtUp' as const), source: sources }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'restart' as const }) },
)

const plain: PlainProcess = {
  lateness: 3,
  timeToLive: undefined,
  key: ({ data, type }) => (type === 'unknown' ? (data as Program).key : undefined),
  event(_state, entry, context) {
    const { timers, cancelled } = entry.data as Program
    for (const name of cancelled) context.cancel(name)
    for (const { name, after } of timers) context.timer(name, entry.recorded + after, { clock: 'event' })
    context.append({ type: 'unknown', data: { now: context.now('event'), complete: context.complete } })
  },
  timer(_state, due, context, name) {
    const { key, complete } = context
    context.append({ type: 'unknown', data: { key, name, late: context.now('event') - due, complete } })
  },
}

it('fires the timers of a source that is behind as one plain run does, wherever it is stopped', async () => {
  let waited = 0
  const begin = 1_000_000
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      let now = begin
      const store = memoryStore({ clock: () => now })
      const log = await openLog(store)
      const start = (): LogJob =>
        log.process('p', { ...plain, version: 1, startAt: 'start', init: () => ({ seen: 0, trace: 0 }) })
      let job = start()
      for (const [n, each] of steps.entries()) {
        now += 3
        if (each.kind === 'restart') {
          await caughtUp(log, 'p')
          await job.stop()
          job = start()
        } else {
          await append(store, [eventOf(each, n, now)])
          await turn()
        }
      }
      now += 1_000
      await append(store, [tickAt(now)])
      await caughtUp(log, 'p')
      await job.stop()
      const entries = await readAll(store)
      const output = (entry: Entry) => (entry.cause?.process === 'p' ? [outputText(entry)] : [])
      const expected = interpret(entries, 'p', plain).output
      expect(entries.flatMap(output)).toEqual(expected)
      waited += expected.filter((text) => Number(/"late":(\d+)/.exec(text)?.[1] ?? 0) > 30).length
      await log.close()
    }),
    { numRuns: Number(process.env['RUNS'] ?? 100) },
  )
  expect(waited).toBeGreaterThan(10)
}, 60_000)

function eventOf(
  each: Exclude<typeof step extends fc.Arbitrary<infer T> ? T : never, { readonly kind: 'restart' }>,
  n: number,
  now: number,
): ResearchEvent {
  const time = new Date(now).toISOString()
  switch (each.kind) {
    case 'tick':
      return tickAt(now, now - each.age)
    case 'behind':
      return behindEvent(each.source, `${n}`, { through: now - each.age, until: now + each.hold }, now)
    case 'caughtUp':
      return caughtUpEvent(each.source, `${n}`, now, now)
    case 'event':
      return {
        id: `${n}`,
        source: each.source,
        type: 'unknown',
        time,
        data: each.does,
        received: time,
        via: 'poll',
      }
  }
}
