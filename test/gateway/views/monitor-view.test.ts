import type { Monitor, ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import {
  cancelledEvent,
  failureEvent,
  gapEvent,
  monitorEvent,
  monitorSource,
} from '../../../src/protocol/event.ts'
import { liveEvent, lostEvent } from '../../../src/protocol/log-event.ts'
import { rowKey } from '../../../src/protocol/live.ts'
import { monitorView } from '../../../src/gateway/views/monitor-view.ts'
import { monitorsView } from '../../../src/gateway/views/monitors-view.ts'
import { viewed } from './viewed.ts'

const MONITOR = 'monitor_1'
const SOURCE = monitorSource(MONITOR)

function change(event_id: string, fields: object = {}): ResearchEvent {
  const output = { type: 'text', content: `news ${event_id}`, basis: [] }
  const wire = { event_id, event_group_id: 'mevtgrp_1', event_date: '2026-01-01', output, ...fields }
  return monitorEvent(MONITOR, wire, 'poll')
}

const completion = monitorEvent(MONITOR, { timestamp: '2026-01-01T00:00:00Z' }, 'poll')
const failure = monitorEvent(
  MONITOR,
  { error_message: 'no answer', timestamp: '2026-01-01T01:00:00Z' },
  'poll',
)
const gap = gapEvent(SOURCE, { from: null, to: null, reason: 'deleted' }, 'poll', '1')
const live = (key: string, lost?: number) => liveEvent(SOURCE, key, lost, 1_000)
const lost = (key: string) => lostEvent(SOURCE, key, 'no answer', 2_000)
const cancelled = cancelledEvent(
  MONITOR,
  {
    monitor_id: MONITOR,
    type: 'event_stream',
    status: 'cancelled',
    frequency: '1h',
    processor: 'lite',
    created_at: '2026-01-01T00:00:00Z',
    settings: { query: 'news' },
  } satisfies Monitor,
  'poll',
)

describe('monitorsView', () => {
  it('counts what a monitor has reported, each once', async () => {
    const view = await viewed(monitorsView())
    const events = [live('1'), change('1'), change('2'), completion, failure, gap]
    await view.rows(...events)
    const rows = await view.rows(...events)

    expect([...rows.keys()]).toEqual([MONITOR])
    expect(rows.get(MONITOR)).toEqual({
      monitor: MONITOR,
      events: 2,
      completions: 1,
      errors: 1,
      gaps: 1,
      last: expect.any(Number),
      state: 'live',
      since: expect.any(Number),
    })
  })

  it.each([
    ['live', [live('1')]],
    ['lost', [live('1'), lost('2')]],
    ['live', [live('1'), lost('2'), live('3', 2_000)]],
    ['failed', [live('1'), failureEvent(SOURCE, { error: new Error('gone') }, 'poll')]],
    ['live', [failureEvent(SOURCE, { error: new Error('gone') }, 'poll'), live('1')]],
    ['cancelled', [live('1'), lost('2'), cancelled]],
    ['cancelled', [cancelled, live('1'), change('1'), lost('2')]],
  ])('has the state %s', async (state, events) => {
    const view = await viewed(monitorsView())

    expect((await view.rows(...events)).get(MONITOR)?.state).toBe(state)
  })

  it('has no last change of a monitor that found nothing', async () => {
    const view = await viewed(monitorsView())

    expect((await view.rows(completion)).get(MONITOR)?.last).toBeNull()
  })

  it('ignores sources that are no monitors', async () => {
    const view = await viewed(monitorsView())
    const source = '/v1/monitors/monitor_1/events'

    expect((await view.rows({ ...gap, source }, { ...gap, source: '/v1/monitors/' })).size).toBe(0)
  })
})

describe('monitorView', () => {
  it('has each event of a monitor once', async () => {
    const view = await viewed(monitorView())
    const first = change('1')
    await view.rows(first)
    const rows = await view.rows(first, change('2'), completion, failure, gap, cancelled)

    expect(rows.get(rowKey([MONITOR, '1']))).toEqual({
      type: 'monitor.event_stream',
      event: first.data,
      time: null,
      recorded: expect.any(Number),
    })
    expect([...rows.values()].map(({ type }) => type).toSorted()).toEqual([
      'monitor.cancelled',
      'monitor.completion',
      'monitor.error',
      'monitor.event_stream',
      'monitor.event_stream',
      'stream.gap',
    ])
  })

  it('has the changed and the previous output of a snapshot, on the day of its change', async () => {
    const output = (content: object) => ({
      type: 'json',
      content,
      basis: [{ field: 'ceo', reasoning: 'Stated.' }],
    })
    const wire = {
      event_type: 'snapshot',
      event_id: 's1',
      event_group_id: 'mevtgrp_2',
      event_date: '2026-01-02',
      changed_output: output({ ceo: 'Max Meier' }),
      previous_output: output({ ceo: 'Anna Keller', plants: 2 }),
    }
    const snapshot = monitorEvent(MONITOR, wire, 'poll')
    const timeline = await viewed(monitorView())
    const list = await viewed(monitorsView())

    const rows = await timeline.rows(snapshot, snapshot)
    const monitors = await list.rows(snapshot, snapshot)

    expect([...rows]).toEqual([
      [
        rowKey([MONITOR, 's1']),
        { type: 'monitor.snapshot', event: wire, time: null, recorded: expect.any(Number) },
      ],
    ])
    expect(monitors.get(MONITOR)).toMatchObject({ events: 1, completions: 0, errors: 0 })
  })

  it('has when a monitor was lost and reached again', async () => {
    const view = await viewed(monitorView())
    const rows = await view.rows(live('1'), lost('2'), live('3', 2_000))

    expect([...rows.values()].map(({ type }) => type).toSorted()).toEqual(['source.live', 'source.lost'])
  })

  it('keeps events apart whose ids have slashes, percent signs or half of a surrogate pair', async () => {
    const view = await viewed(monitorView())
    const ids = ['a/b', 'a%2Fb', '/', '%', 'x'.repeat(5_000), 'x'.repeat(5_001)]
    const rows = await view.rows(
      ...ids.map((id) => change(id)),
      // Only a program could have made these: the service's ids are checked.
      { ...change('1'), id: 'a\uD800' },
      { ...change('1'), id: 'a\uDC00' },
    )

    expect(rows.size).toBe(8)
    for (const key of rows.keys()) expect(key.length).toBeLessThanOrEqual(1_024)
  })

  it('shortens what is too long for a row, and says so', async () => {
    const view = await viewed(monitorView())
    const output = { type: 'text', content: 'ü'.repeat(1_000_000), basis: [] }
    const row = (await view.rows(change('1', { output }))).get(rowKey([MONITOR, '1']))

    expect(row).toMatchObject({ truncated: true, event: { event_id: '1', output: { type: 'text' } } })
    expect(JSON.stringify(row).length).toBeLessThan(256 * 1024)
  })

  // Made in the test, since its title would have them.
  const HOSTILE: Readonly<Record<string, () => object>> = {
    'fields that are null': () => ({ output: null, event_group_id: null, event_date: null }),
    'very many fields': () => Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`f${at}`, at])),
    'a field called __proto__': () => JSON.parse('{"__proto__":{"a":1}}'),
    'lists within lists': () => ({ output: JSON.parse('[['.repeat(500) + ']]'.repeat(500)) }),
    'very many long texts': () => ({
      output: Object.fromEntries(
        Array.from({ length: 900 }, (_, at) => [at, Array(20).fill('é'.repeat(200))]),
      ),
    }),
  }
  it.each(Object.keys(HOSTILE))('survives an event with %s', async (name) => {
    const view = await viewed(monitorView())
    const rows = await view.rows(change('1', HOSTILE[name]?.()))

    expect(rows.get(rowKey([MONITOR, '1']))).toMatchObject({ type: 'monitor.event_stream' })
  })

  it('removes rows after 30 days, or as long as it is asked to keep them', () => {
    expect(monitorView().definition.timeToLive).toBe(30 * 86_400_000)
    expect(monitorView({ timeToLive: 1_000 }).definition.timeToLive).toBe(1_000)
  })
})
