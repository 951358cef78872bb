import { array, assert, asyncProperty, constantFrom, integer, nat, record } from 'fast-check'
import type { EventLog, LogJob } from 'rivulet/log'
import { expect, it } from 'vitest'
import { counting, HUNDRED, lateOf, readAll, WINDOW, windowsOf } from './held-windows.ts'
import { monitored } from './monitored.ts'
import { allEntriesOf, settled } from './recording-log.ts'

/** The monitors to which something happens. */
const BUSY = ['m0', 'm1', 'm2'] as const

/** Some seconds of a run. */
interface Slot {
  /** Which of {@link BUSY} complete, as bits. */
  readonly busy: number
  /** What happens to a monitor, to the recorder, or to the process. */
  readonly trouble: 'none' | 'away' | 'recorder' | 'process'
  readonly monitor: (typeof BUSY)[number]
  /** For how many slots. */
  readonly length: number
}

const slots = array(
  record<Slot>({
    busy: nat(7),
    trouble: constantFrom('none', 'away', 'away', 'recorder', 'process'),
    monitor: constantFrom(...BUSY),
    length: integer({ min: 1, max: 9 }),
  }),
  { minLength: 8, maxLength: 20 },
)

it('counts the same windows, none of them late, whichever stream is away and whatever is stopped', async () => {
  let passed = 0
  await assert(
    asyncProperty(slots, async (given) => {
      const at = await monitored()
      const { log, client, away, time, root } = at
      let isKilled: 'before' | 'after' | undefined
      // Another program records, which can be killed at its next append, before or after the log has it.
      const store = () =>
        root.connect({
          faults(write, step) {
            if (write === 'append' && step === isKilled) throw new Error('killed')
          },
        })
      const recorded = async () => {
        isKilled = undefined
        const own = await at.open(store())
        const job = own.log.record({ client, monitors: at.watched(...HUNDRED) })
        job.done.catch(() => {})
        return job
      }
      const processed = () => log.process('windows', counting)
      const jobs: { recorder: LogJob | undefined; process: LogJob | undefined } = {
        recorder: await recorded(),
        process: processed(),
      }
      const ends = new Map<Slot['trouble'], number>()
      const expected = new Map<string, number>()
      const mend = async (n: number) => {
        if (n >= (ends.get('away') ?? 0)) away.clear()
        if (n >= (ends.get('recorder') ?? 0)) jobs.recorder ??= await recorded()
        if (n >= (ends.get('process') ?? 0)) jobs.process ??= processed()
      }
      await at.pass(25)
      for (const [n, { busy, trouble, monitor, length }] of given.entries()) {
        await mend(n)
        if (n >= (ends.get(trouble) ?? 0)) {
          ends.set(trouble, n + length)
          if (trouble === 'away') away.add(monitor)
          if (trouble === 'recorder') {
            isKilled = length % 2 === 0 ? 'before' : 'after'
            await jobs.recorder?.stop().catch(() => {})
            jobs.recorder = undefined
          }
          if (trouble === 'process') {
            await jobs.process?.stop()
            jobs.process = undefined
          }
        }
        time.advance(137)
        const happening = BUSY.filter((_, bit) => (busy & (1 << bit)) !== 0)
        at.happens(...happening)
        for (const id of happening) {
          const key = `/v1/monitors/${id} ${Math.floor(time.now() / WINDOW)}`
          expected.set(key, (expected.get(key) ?? 0) + 1)
        }
        time.advance(7_863)
        await settled()
      }
      await mend(Infinity)
      await at.pass(120)
      await jobs.recorder?.stop()
      await readAll(log)
      await jobs.process?.stop()
      passed += await countBehind(log)
      const windows = windowsOf(await allEntriesOf(log))
      expect(new Map(windows.map(({ key, count }) => [key, count]))).toEqual(expected)
      expect(windows.every(({ complete }) => complete)).toBe(true)
      expect(windows).toHaveLength(expected.size)
      expect(await lateOf(log)).toBe(0)
    }),
    { numRuns: 6 },
  )
  expect(passed).toBeGreaterThan(2)
}, 180_000)

async function countBehind(log: EventLog): Promise<number> {
  return (await allEntriesOf(log)).filter(({ type }) => type === 'source.behind').length
}
