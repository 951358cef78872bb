import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { LogClock } from '../../../src/protocol/event.ts'
import type { Entry, LogStore, Position } from '../../../src/log/store/contract.ts'
import { Recorder } from '../../../src/log/record/recorder.ts'
import { Retention } from '../../../src/log/event-log/retention.ts'
import { change } from '../../operators/events.ts'
import { append, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY

/** How much a time may differ that is the real one, in ms: the tests take their time. */
const SLACK = 5 * SECOND

/** The clocks of the machine, which go on in real time. They are real ones again after the test. */
export function machine() {
  const offsets = { wall: 0, monotonic: 0 }
  const [now, elapsed, ticks] = [Date.now, performance.now.bind(performance), process.hrtime.bigint]
  vi.spyOn(Date, 'now').mockImplementation(() => now() + offsets.wall)
  vi.spyOn(performance, 'now').mockImplementation(() => elapsed() + offsets.monotonic)
  vi.spyOn(process.hrtime, 'bigint').mockImplementation(
    () => ticks() + BigInt(offsets.monotonic) * 1_000_000n,
  )
  onTestFinished(() => void vi.restoreAllMocks())
  /** The real time. */
  let real = 0
  return {
    /** The time that it is, whatever the clocks say. */
    now: () => now() + real,
    /** Time passes. */
    pass(ms: number) {
      real += ms
      offsets.wall += ms
      offsets.monotonic += ms
    },
    /** The wall clock is set. */
    jump(ms: number) {
      offsets.wall += ms
    },
    /** The machine was off, and its monotonic clock begins anew. */
    restart(ms: number) {
      real += ms
      offsets.wall += ms
      offsets.monotonic -= Math.floor(performance.now())
    },
  }
}

/** The time of a log under wrong clocks. */
export function describeClock(name: string, open: Open): void {
  describe(`${name}: the wall clock`, () => {
    async function logOf() {
      const clocks = machine()
      const opened = await open(Date.now)
      const fence = await opened.log.claim('stream:s')
      let number = 0
      return {
        ...clocks,
        ...opened,
        /** Appends an entry, and returns how far its time is from the real one, in ms. */
        async add(): Promise<number> {
          number += 1
          await append(opened.log, fence, change(String(number)))
          const { newest } = await opened.log.retention.stats()
          return (newest ?? Number.NaN) - clocks.now()
        },
        states: async () => (await readAll(opened.log)).flatMap(stateOf),
      }
    }

    it.each([
      ['a minute', MINUTE],
      ['three hours', 3 * HOUR],
      ['a year', YEAR],
    ])('is not believed when it is ahead by %s for a moment', async (_, by) => {
      const { log, add, pass, jump, states } = await logOf()
      const retention = new Retention(log.retention, { maxAge: 30 * SECOND })
      await add()
      jump(by)
      for (let n = 0; n < 3; n++) {
        pass(SECOND)
        expect(Math.abs(await add())).toBeLessThan(SLACK)
        await retention.appended()
      }
      jump(-by)
      pass(SECOND)
      expect(Math.abs(await add())).toBeLessThan(SLACK)
      await retention.appended()
      expect(await states()).toEqual(['ahead', 'returned'])
      expect(await readAll(log)).toHaveLength(7)
    })

    it.each([
      ['a minute', MINUTE],
      ['three hours', 3 * HOUR],
      ['a year', YEAR],
    ])('does not stop the time when it is set back by %s', async (_, by) => {
      const { add, pass, jump, log, states } = await logOf()
      await add()
      jump(-by)
      for (let n = 0; n < 5; n++) {
        pass(11 * SECOND)
        expect(Math.abs(await add())).toBeLessThan(SLACK)
      }
      jump(by)
      pass(SECOND)
      expect(Math.abs(await add())).toBeLessThan(SLACK)
      expect(await states()).toEqual(['behind', 'returned'])
      const times = (await readAll(log)).map(({ recorded }) => recorded)
      expect(times).toEqual(times.toSorted((a, b) => a - b))
    })

    it('is believed at once when it is corrected by some seconds', async () => {
      const { add, pass, jump, states } = await logOf()
      await add()
      jump(4 * SECOND)
      expect(await add()).toBeGreaterThan(3 * SECOND)
      jump(-4 * SECOND)
      pass(10 * SECOND)
      expect(Math.abs(await add())).toBeLessThan(SLACK)
      expect(await states()).toEqual([])
    })

    it('is believed after hours in which nothing was appended', async () => {
      const { add, pass, states } = await logOf()
      await add()
      pass(9 * HOUR)
      expect(Math.abs(await add())).toBeLessThan(SLACK)
      expect(await states()).toEqual([])
    })

    it.each([
      ['ahead', HOUR],
      ['behind', -HOUR],
    ])('is reported by a recorder when a process has noticed first that it is %s', async (state, by) => {
      const { log, jump, pass, now } = await logOf()
      const changes: LogClock[] = []
      const { record, commit } = await recordingBeside(log, log, changes)
      await record()
      await commit()
      jump(by)
      for (const _ of ['notices', 'goes on']) {
        pass(SECOND)
        await commit()
        await record()
      }
      jump(-by)
      for (const _ of ['notices', 'goes on']) {
        pass(SECOND)
        await commit()
        await record()
      }
      expect(changes.map((each) => each.state)).toEqual([state, 'returned'])
      const [jumped, returned] = changes
      expect(Math.abs((jumped?.by ?? 0) - by)).toBeLessThan(SLACK)
      expect(Math.abs((jumped?.at ?? 0) - now())).toBeLessThan(SLACK)
      expect(Math.abs(returned?.by ?? Infinity)).toBeLessThan(SLACK)
    })

    it('of a reader does not change the age of what it reads', async () => {
      const { log, add, jump, pass, connect } = await logOf()
      await add()
      const second = await connect('second')
      await second.retention.stats()
      for (const by of [YEAR, -2 * YEAR]) {
        jump(by)
        pass(SECOND)
        const { now, newest } = await second.retention.stats()
        expect(now - (newest ?? 0)).toBeLessThan(SLACK)
        expect(now).toBeGreaterThanOrEqual(newest ?? Infinity)
      }
      expect(await log.retention.usage()).toMatchObject({ isTimeCertain: true })
    })
  })
}

/** A recorder over a log, and a process that appends to it, maybe from another open log. */
async function recordingBeside(log: LogStore, other: LogStore, changes: LogClock[]) {
  const onClock = (clock: LogClock) => void changes.push(clock)
  const recorder = new Recorder(log, () => {}, { onClock })
  onTestFinished(() => recorder.close())
  const stream = await recorder.open('recorded')
  const fence = await other.claim('process:p')
  const cursor = await log.positionAt('end')
  let committed: Position | null = null
  let number = 0
  return {
    async record() {
      stream.add(change(`recorded ${(number += 1)}`))
      await recorder.flushed()
    },
    async commit() {
      const entries = [newEntry(change(`appended ${(number += 1)}`))]
      await other.commit(fence, { expect: committed, cursor, acknowledged: [], entries })
      committed = cursor
    },
  }
}

function stateOf(entry: Entry): string[] {
  return entry.type === 'log.clock' ? [entry.data.state] : []
}

/** The same of a log that is on one machine, whose clock is the only one that it can ask. */
export function describeOwnClock(name: string, open: Open): void {
  describe(`${name}: the wall clock of one machine`, () => {
    it('is believed once it was ahead for ten minutes', async () => {
      const { jump, pass } = machine()
      const { log } = await open(Date.now)
      const fence = await log.claim('stream:s')
      await append(log, fence, change('1'))
      const retention = new Retention(log.retention, { maxAge: HOUR })
      jump(3 * HOUR)
      for (let minute = 0; minute <= 9; minute++) {
        await append(log, fence, change(`early ${minute}`))
        await retention.appended()
        pass(MINUTE)
      }
      const before = await log.retention.stats()
      // What was appended, and that the clock has jumped.
      expect(before).toMatchObject({ entries: 12 })
      expect(Date.now() - (before.newest ?? 0)).toBeGreaterThan(2 * HOUR)
      expect(await log.retention.usage()).toMatchObject({ isTimeCertain: false })
      pass(MINUTE)
      const { clock } = await append(log, fence, change('late'))
      expect(clock).toMatchObject({ state: 'accepted' })
      expect(await log.retention.usage()).toMatchObject({ isTimeCertain: true })
      const after = await log.retention.stats()
      expect(Date.now() - (after.newest ?? 0)).toBeLessThan(SLACK)
    })

    it('does not make old what was recorded before it was believed', async () => {
      const { jump, pass } = machine()
      const { log, connect } = await open(Date.now)
      const fence = await log.claim('stream:s')
      await append(log, fence, change('1'))
      pass(SECOND)
      jump(3 * HOUR)
      for (let minute = 0; minute <= 9; minute++) {
        await append(log, fence, change(`early ${minute}`))
        pass(MINUTE)
      }
      await append(log, fence, change('accepted'))
      await log.close()
      const second = await connect('second')
      const retention = new Retention(second.retention, { maxAge: HOUR })
      const ids = async () => {
        await retention.appended()
        const entries = await readAll(second)
        return entries.flatMap(({ id, type }) => (type === 'log.clock' ? [] : [id])).toSorted()
      }
      const early = Array.from({ length: 10 }, (_, minute) => `early ${minute}`)
      expect(await ids()).toEqual(['accepted', ...early])
      // Each is deleted when it is an hour old.
      pass(54.5 * MINUTE)
      const again = await second.claim('stream:s')
      await append(second, again, change('later'))
      expect(await ids()).toEqual(['accepted', ...early.slice(5), 'later'])
      pass(6 * MINUTE)
      await append(second, again, change('last'))
      expect(await ids()).toEqual(['last', 'later'])
    })

    it('is believed for what was ahead for ten minutes when it jumps again and again', async () => {
      const { jump, pass, now } = machine()
      const { log } = await open(Date.now)
      const fence = await log.claim('stream:s')
      let suspended = 0
      for (let cycle = 0; cycle < 10; cycle++) {
        for (let minute = 0; minute < 8; minute++) {
          pass(MINUTE)
          await append(log, fence, change(`${cycle} ${minute}`))
        }
        jump(2 * MINUTE)
        suspended += 2 * MINUTE
      }
      const { newest } = await log.retention.stats()
      // The last ones are not confirmed yet.
      expect(now() + suspended - (newest ?? 0)).toBeLessThan(7 * MINUTE)
    })

    it('is reported by a recorder when a process elsewhere has noticed first that it is ahead and believed', async () => {
      const { jump, pass } = machine()
      const { log, connect } = await open(Date.now)
      const changes: LogClock[] = []
      const { record, commit } = await recordingBeside(log, await connect('second'), changes)
      await record()
      jump(3 * HOUR)
      for (const minutes of [0, 5, 5, 1]) {
        pass(minutes * MINUTE)
        await commit()
        await record()
      }
      expect(changes).toMatchObject([{ state: 'ahead' }, { state: 'accepted' }])
      for (const { by } of changes) expect(Math.abs(by - 3 * HOUR)).toBeLessThan(SLACK)
    })

    it('is believed by a program that begins after hours in which nothing was appended', async () => {
      const { pass, now } = machine()
      const { log, connect } = await open(Date.now)
      await append(log, await log.claim('stream:s'), change('1'))
      pass(9 * HOUR)
      const second = await connect('second')
      await append(second, await second.claim('stream:t'), change('2'))
      const { newest } = await second.retention.stats()
      expect(Math.abs(now() - (newest ?? 0))).toBeLessThan(SLACK)
    })

    it('is believed after ten minutes when the machine was off', async () => {
      const { restart, pass, now } = machine()
      const { log, connect } = await open(Date.now)
      await append(log, await log.claim('stream:s'), change('1'))
      await log.close()
      restart(3 * HOUR)
      const second = await connect('second')
      const fence = await second.claim('stream:s')
      await append(second, fence, change('2'))
      const early = await second.retention.stats()
      expect(now() - (early.newest ?? 0)).toBeGreaterThan(2 * HOUR)
      pass(10 * MINUTE + SECOND)
      await append(second, fence, change('3'))
      const late = await second.retention.stats()
      expect(Math.abs(now() - (late.newest ?? 0))).toBeLessThan(SLACK)
    })
  })
}
