import { describe, expect, it } from 'vitest'
import { monitorEvent } from '../../../src/protocol/event.ts'
import { MonitorPosition } from '../../../src/sources/monitors/position.ts'

const change = (event_id: string, event_date: string | null = null) =>
  monitorEvent('m', { event_type: 'event_stream', event_id, event_date, output: {} }, 'poll')

describe('the position of a monitor', () => {
  it('as text, has the last event, its time and the last 20 ids', () => {
    const position = new MonitorPosition(undefined)
    for (let n = 1; n <= 25; n++) position.advance(change(`e${n}`, `2026-01-${n}`))

    const parsed = MonitorPosition.parse(position.snapshot.text())

    expect(parsed).toMatchObject({ lastId: 'e25', time: '2026-01-25' })
    expect([5, 6, 25, 26].map((n) => parsed?.has(`e${n}`))).toEqual([false, true, true, false])
  })

  it('as text after a restart, has the ids from before the restart too', () => {
    const position = new MonitorPosition(undefined)
    for (let n = 1; n <= 25; n++) position.advance(change(`e${n}`))

    const resumed = MonitorPosition.parse(position.snapshot.text())
    for (const each of [position, resumed]) each?.advance(change('e26'))

    expect(resumed?.snapshot.text()).toBe(position.snapshot.text())
  })

  it('has snapshots that do not change when it advances', () => {
    const position = new MonitorPosition(undefined)
    for (let n = 1; n <= 25; n++) position.advance(change(`e${n}`, `2026-01-${n}`))
    const { snapshot } = position
    const text = snapshot.text()
    for (let n = 26; n <= 50; n++) position.advance(change(`e${n}`))
    position.forgetLast()

    expect(snapshot.text()).toBe(text)
  })

  it('remembers the newest 1,000 ids', () => {
    const position = new MonitorPosition('e0')
    for (let n = 1; n <= 1_000; n++) position.advance(change(`e${n}`))

    expect([0, 1, 1_000].map((n) => position.has(`e${n}`))).toEqual([false, true, true])
  })

  it.each([
    '',
    'garbage',
    '{"mark":"e1","time":null,"before":["e1"',
    'null',
    '"e1"',
    '["e1"]',
    '{}',
    '{"time":null,"before":["e1"]}',
    '{"mark":1,"time":null,"before":[]}',
    '{"mark":"e1","before":["e1"]}',
    '{"mark":"e1","time":1,"before":["e1"]}',
    '{"mark":"e1","time":null}',
    '{"mark":"e1","time":null,"before":"e1"}',
    '{"mark":"e1","time":null,"before":["e1",2]}',
  ])('is not parsed from an invalid text: %s', (text) => {
    expect(MonitorPosition.parse(text)).toBeUndefined()
  })
})
