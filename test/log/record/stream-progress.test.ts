import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { StreamItem } from '../../../src/sources/shapes/stream-item.ts'
import { Gate } from '../../../src/protocol/gate.ts'
import { Pauses } from '../../../src/log/record/pauses.ts'
import type { Pause } from '../../../src/log/record/pauses.ts'
import { RecordingProgress } from '../../../src/log/record/recording-progress.ts'
import { StreamProgress } from '../../../src/log/record/stream-progress.ts'
import { change } from '../../operators/events.ts'
import { TestTime } from './recording-log.ts'

const stream = { name: 'groups/g/runs', source: '/v1/tasks/groups/g' }
const item = (kind: 'reached' | 'alive' | 'polling' | 'caughtUp'): StreamItem => ({ kind, stream })
const lost: StreamItem = { kind: 'lost', stream, error: new Error('refused') }
const event = (at: number): StreamItem => {
  const time = new Date(at).toISOString()
  return { kind: 'event', stream, event: { ...change('1'), time, received: time }, isNew: true }
}

/** The recording began. */
const begun: Pause = { end: 0, duration: Infinity }

describe('the progress of a connection', () => {
  /** A connection of a recording, with its last pause. */
  const connection = () => {
    const progress = new StreamProgress(false)
    return {
      took: (each: StreamItem, now: number, pause = begun) => progress.took(each, now, pause),
      look: (now: number, pause = begun) => {
        progress.look(now, pause)
        return progress.through
      },
    }
  }

  it('is when it was opened, once it has brought no event for 5 s', () => {
    const { took, look } = connection()
    took(item('reached'), 10_000)
    took(event(3_000), 10_500)
    took(item('alive'), 15_000)
    expect(look(15_400)).toBe(-Infinity)
    expect(look(15_500)).toBe(10_000)
  })

  it('is not known by a pause within what is caught up', () => {
    const { took, look } = connection()
    took(item('reached'), 310_000)
    for (const now of [310_500, 314_500, 318_500]) {
      took(event(now - 300_000), now)
      expect(look(now + 3_500)).toBe(-Infinity)
    }
  })

  it('is not known by a silence in which the process read nothing', () => {
    const { took, look } = connection()
    took(item('reached'), 10_000)
    const pause = { end: 59_900, duration: 49_000 }
    expect(look(60_000, pause)).toBe(-Infinity)
    expect(look(64_900, pause)).toBe(59_900)
  })

  it('follows what it brings once it has caught up, a second behind the arrival before', () => {
    const { took, look } = connection()
    took(item('reached'), 10_000)
    // A stream that is never silent has caught up at an event that happened after it was opened.
    took(event(9_900), 10_100)
    took(event(10_200), 10_300)
    expect(look(10_300)).toBe(10_000)
    took(event(20_000), 20_100)
    took(item('alive'), 35_100)
    expect(look(35_100)).toBe(19_100)
    took(item('alive'), 50_100)
    expect(look(50_100)).toBe(34_100)
  })

  it('stands still while the connection is lost, and until the next one has caught up', () => {
    const { took, look } = connection()
    took(item('reached'), 10_000)
    look(15_000)
    took(lost, 20_000)
    expect(look(300_000)).toBe(10_000)
    took(item('reached'), 300_000)
    took(event(30_000), 300_100)
    took(event(40_000), 304_000)
    expect(look(308_900)).toBe(10_000)
    expect(look(309_000)).toBe(300_000)
  })

  it('stands still after a pause of the process, until it has caught up with what came meanwhile', () => {
    const { took, look } = connection()
    took(item('reached'), 10_000)
    expect(look(15_000)).toBe(10_000)
    const pause = { end: 615_000, duration: 600_000 }
    // The socket survives a suspension of 10 minutes, and has what came during it.
    took(item('alive'), 615_000, pause)
    took(event(20_000), 615_000, pause)
    took(event(30_000), 616_000, pause)
    expect(look(616_000, pause)).toBe(10_000)
    took(event(615_500), 616_100, pause)
    expect(look(616_100, pause)).toBe(615_000)
  })

  it('has caught up after a short pause once it was silent for as long, for a second at least', () => {
    const { took, look } = connection()
    took(item('reached'), 10_000)
    expect(look(15_000)).toBe(10_000)
    const short = { end: 20_000, duration: 20 }
    expect(look(20_900, short)).toBe(10_000)
    expect(look(21_000, short)).toBe(20_000)
    const longer = { end: 30_000, duration: 3_000 }
    expect(look(32_900, longer)).toBe(20_000)
    // What came in both pauses may not be read yet.
    const next = { end: 32_950, duration: 20 }
    expect(look(35_900, next)).toBe(20_000)
    expect(look(35_950, next)).toBe(32_950)
  })
})

describe('the progress of a poll', () => {
  it('is its start, once it has ended', () => {
    const progress = new StreamProgress(true)
    progress.took(item('polling'), 10_000, begun)
    progress.took(item('reached'), 10_100, begun)
    progress.took(event(9_000), 10_100, begun)
    progress.look(90_000, begun)
    expect(progress.through).toBe(-Infinity)
    progress.took(item('caughtUp'), 95_000, begun)
    expect(progress.through).toBe(10_000)
  })
})

describe('the progress of many streams', () => {
  const pauses = () => new Pauses(new Gate(), new VirtualTimeScheduler())

  const many = (count: number, ended: number) => {
    const progress = new RecordingProgress(pauses(), () => true, 60_000)
    for (let n = 0; n < count; n++) {
      const name = `monitors/m${n}`
      progress.join({ name: name, source: '', isPolled: true })
      const of = { name, source: '' }
      progress.took({ kind: 'polling', stream: of }, 1_000 + n)
      if (n < ended) progress.took({ kind: 'caughtUp', stream: of }, 5_000)
    }
    return progress.look(9_000)
  }

  it.each([
    [99, 98, -Infinity],
    [99, 99, 1_000],
    [100, 99, 1_000],
    [1_000, 989, -Infinity],
    [1_000, 990, 1_000],
  ])('of %i, of which %i have ended their poll, is %d', (count, ended, expected) => {
    expect(many(count, ended)).toBe(expected)
  })

  it('never goes back, also when a stream joins that is far behind', () => {
    const progress = new RecordingProgress(pauses(), () => true, 60_000)
    progress.resume(5_000)
    progress.join({ name: 'monitors/m', source: '', isPolled: true })
    expect(progress.look(9_000)).toBe(5_000)
    progress.leave('monitors/m')
    expect(progress.look(10_000)).toBe(10_000)
    progress.join({ name: 'monitors/n', source: '', isPolled: true })
    expect(progress.look(11_000)).toBe(10_000)
  })

  it('counts no silence while the gate of the recording is closed, or the process is suspended', () => {
    const gate = new Gate()
    const time = new TestTime()
    const pausing = new Pauses(gate, time)
    pausing.run(new AbortController().signal)
    const progress = new RecordingProgress(pausing, () => true, 60_000)
    progress.join({ name: stream.name, source: '', isPolled: false })
    progress.took(item('reached'), 0)
    const after = (duration: number) => {
      time.advance(duration)
      return progress.look(time.now())
    }
    gate.close()
    expect(after(6_000)).toBe(-Infinity)
    gate.open()
    expect(after(4_000)).toBe(-Infinity)
    time.suspend(60_000)
    expect(after(0)).toBe(-Infinity)
    expect(after(4_900)).toBe(-Infinity)
    expect(after(250)).toBe(70_000)
  })

  it('keeps pace with a gate that is closed for a moment, again and again', () => {
    const gate = new Gate()
    const time = new TestTime()
    const pausing = new Pauses(gate, time)
    pausing.run(new AbortController().signal)
    const progress = new RecordingProgress(pausing, () => true, 60_000)
    progress.join({ name: stream.name, source: '', isPolled: false })
    progress.took(item('reached'), 0)
    time.advance(5_000)
    progress.look(time.now())
    for (let n = 0; n < 10; n++) {
      gate.close()
      time.advance(20)
      gate.open()
      time.advance(1_980)
      progress.look(time.now())
    }
    expect(time.now() - progress.look(time.now())).toBeLessThan(2_000)
  })

  it.each(['an event', 'a beat'])(
    'has to catch up again after a suspension, that %s shows first',
    (first) => {
      const time = new TestTime()
      const suspended = new Pauses(new Gate(), time)
      suspended.run(new AbortController().signal)
      const progress = new RecordingProgress(suspended, () => true, 60_000)
      progress.join({ name: stream.name, source: '', isPolled: false })
      progress.took(item('reached'), 0)
      time.advance(6_000)
      expect(progress.look(time.now())).toBe(0)
      time.suspend(600_000)
      time.advance(first === 'a beat' ? 250 : 0)
      for (const at of [7_000, 8_000]) progress.took(event(at), time.now())
      time.advance(1_000)
      expect(progress.look(time.now())).toBe(0)
      time.advance(5_000)
      expect(progress.look(time.now())).toBeGreaterThanOrEqual(606_000)
    },
  )

  it('goes on soon after the wall clock was set back', () => {
    const time = new TestTime()
    const pausing = new Pauses(new Gate(), time)
    pausing.run(new AbortController().signal)
    time.advance(3_600_000)
    time.suspend(-3_000_000)
    expect(pausing.last(time.now())).toEqual({ end: 600_000, duration: Infinity })
    time.advance(5_000)
    expect(pausing.last(time.now())).toEqual({ end: 600_000, duration: Infinity })
  })
})
