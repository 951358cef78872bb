import { describe, expect, it } from 'vitest'
import type { StreamItem } from '../../../src/sources/shapes/stream-item.ts'
import { Gate } from '../../../src/protocol/gate.ts'
import { RecordingProgress } from '../../../src/log/record/recording-progress.ts'
import { StreamProgress } from '../../../src/log/record/stream-progress.ts'
import { change } from '../../operators/events.ts'

const stream = { name: 'groups/g/runs', source: '/v1/tasks/groups/g' }
const item = (kind: 'reached' | 'alive' | 'polling' | 'caughtUp'): StreamItem => ({ kind, stream })
const lost: StreamItem = { kind: 'lost', stream, error: new Error('refused') }
const event = (at: number): StreamItem => {
  const time = new Date(at).toISOString()
  return { kind: 'event', stream, event: { ...change('1'), time, received: time }, isNew: true }
}

describe('the progress of a connection', () => {
  it('is when it was opened, once it has brought nothing for a second', () => {
    const progress = new StreamProgress(false)
    progress.took(item('reached'), 10_000)
    progress.took(event(3_000), 10_500)
    progress.look(11_400, 0)
    expect(progress.through).toBe(-Infinity)
    progress.look(11_500, 0)
    expect(progress.through).toBe(10_000)
  })

  it('is not known by a silence in which the process read nothing', () => {
    const progress = new StreamProgress(false)
    progress.took(item('reached'), 10_000)
    progress.look(60_000, 59_900)
    expect(progress.through).toBe(-Infinity)
    progress.look(61_000, 59_900)
    expect(progress.through).toBe(10_000)
  })

  it('follows what it brings once it has caught up, a second behind the arrival before', () => {
    const progress = new StreamProgress(false)
    progress.took(item('reached'), 10_000)
    // A stream that is never silent has caught up at an event that happened after it was opened.
    progress.took(event(9_900), 10_100)
    progress.took(event(10_200), 10_300)
    expect(progress.through).toBe(10_000)
    progress.took(event(20_000), 20_100)
    progress.took(item('alive'), 35_100)
    expect(progress.through).toBe(19_100)
    progress.took(item('alive'), 50_100)
    expect(progress.through).toBe(34_100)
  })

  it('stands still while the connection is lost, and until the next one has caught up', () => {
    const progress = new StreamProgress(false)
    progress.took(item('reached'), 10_000)
    progress.look(11_000, 0)
    progress.took(lost, 20_000)
    progress.look(300_000, 0)
    expect(progress.through).toBe(10_000)
    progress.took(item('reached'), 300_000)
    progress.took(event(30_000), 300_100)
    progress.took(event(40_000), 300_900)
    progress.look(301_800, 0)
    expect(progress.through).toBe(10_000)
    progress.look(302_000, 0)
    expect(progress.through).toBe(300_000)
  })
})

describe('the progress of a poll', () => {
  it('is its start, once it has ended', () => {
    const progress = new StreamProgress(true)
    progress.took(item('polling'), 10_000)
    progress.took(item('reached'), 10_100)
    progress.took(event(9_000), 10_100)
    progress.look(90_000, 0)
    expect(progress.through).toBe(-Infinity)
    progress.took(item('caughtUp'), 95_000)
    expect(progress.through).toBe(10_000)
  })
})

describe('the progress of many streams', () => {
  const many = (count: number, ended: number) => {
    const progress = new RecordingProgress(new Gate(), () => 0, 60_000)
    for (let n = 0; n < count; n++) {
      const name = `monitors/m${n}`
      progress.join({ name: name, source: '', isPolled: true })
      const of = { name, source: '' }
      progress.took({ kind: 'polling', stream: of }, 1_000 + n)
      if (n < ended) progress.took({ kind: 'caughtUp', stream: of }, 5_000)
    }
    return progress.look(9_000, 10_000)
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
    const progress = new RecordingProgress(new Gate(), () => 0, 60_000)
    progress.resume(5_000)
    progress.join({ name: 'monitors/m', source: '', isPolled: true })
    expect(progress.look(9_000, 10_000)).toBe(5_000)
    progress.leave('monitors/m')
    expect(progress.look(10_000, 11_000)).toBe(10_000)
    progress.join({ name: 'monitors/n', source: '', isPolled: true })
    expect(progress.look(11_000, 12_000)).toBe(10_000)
  })

  it('counts no silence while the gate of the recording is closed, or the process is suspended', () => {
    const gate = new Gate()
    let now = 0
    const progress = new RecordingProgress(gate, () => now, 60_000)
    progress.join({ name: stream.name, source: '', isPolled: false })
    progress.took(item('reached'), 1_000)
    gate.close()
    now = 5_000
    expect(progress.look(now, 6_000)).toBe(-Infinity)
    gate.open()
    now = 5_500
    expect(progress.look(now, 6_500)).toBe(-Infinity)
    // It should have looked 60 s ago.
    now = 66_500
    expect(progress.look(now, 67_500)).toBe(-Infinity)
    now = 67_500
    expect(progress.look(now, 68_500)).toBe(1_000)
  })
})
