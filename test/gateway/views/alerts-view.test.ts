import type { ResearchEvent } from 'rivulet'
import type { AlertData } from 'rivulet/rules'
import { alertsView } from 'rivulet/gateway'
import type { AlertRow } from 'rivulet/gateway'
import { describe, expect, it } from 'vitest'
import { viewed } from './viewed.ts'

const LABELS = { alertname: 'quiet', source: '/v1/monitors/monitor_1', severity: 'page' }

let ids = 0

function event(
  type: `alert.${'pending' | 'inactive' | 'firing' | 'resolved' | 'unknown' | 'known'}`,
  fields: Partial<AlertData & { reason: string }> = {},
): ResearchEvent {
  const data: AlertData = {
    alert: 'quiet',
    group: 'monitors',
    key: { source: '/v1/monitors/monitor_1' },
    labels: LABELS,
    annotations: { summary: 'It is quiet.' },
    value: 3_600,
    complete: true,
    since: '2026-01-01T00:00:00.000Z',
    events: [{ source: '/v1/monitors/monitor_1', id: 'mevt_1', type: 'monitor.event_stream', time: null }],
    episode: 'episode_1',
    ...fields,
  }
  const envelope = {
    id: `alert_${(ids += 1)}`,
    source: `/rules/${data.alert}`,
    time: null,
    via: 'process',
  } as const
  const received = '2026-01-01T00:00:00.000Z'
  if (type === 'alert.resolved')
    return { ...envelope, type, data: { ...data, reason: 'condition' }, received }
  const { alert, group, key, labels, since } = data
  const about = { alert, group, key, labels }
  if (type === 'alert.known') return { ...envelope, type, data: about, received }
  if (type === 'alert.unknown')
    return { ...envelope, type, data: { ...about, since, reason: 'lost' }, received }
  return { ...envelope, type, data, received }
}

function only(rows: ReadonlyMap<string, AlertRow>): AlertRow {
  expect(rows.size).toBe(1)
  const [row] = rows.values()
  if (row === undefined) throw new Error('no row')
  return row
}

const LATER = { since: '2026-01-01T01:00:00.000Z', episode: 'episode_2' }

describe('alertsView', () => {
  it('has an alert that fires with all that it says', async () => {
    const view = await viewed(alertsView())
    const firing = event('alert.firing')

    expect(only(await view.rows(firing))).toEqual({
      ...Object(firing.data),
      state: 'firing',
      resolved: null,
      unknown: null,
      changed: expect.any(Number),
    })
  })

  it.each([
    ['resolved', [event('alert.firing'), event('alert.resolved')]],
    ['firing', [event('alert.firing'), event('alert.resolved'), event('alert.firing', LATER)]],
    ['unknown', [event('alert.unknown')]],
    ['unknown', [event('alert.firing'), event('alert.resolved'), event('alert.unknown', LATER)]],
    ['firing', [event('alert.unknown'), event('alert.firing')]],
    ['firing', [event('alert.firing'), event('alert.unknown')]],
    ['resolved', [event('alert.firing'), event('alert.unknown'), event('alert.resolved')]],
    ['firing', [event('alert.firing', LATER), event('alert.resolved')]],
    ['pending', [event('alert.pending')]],
    ['firing', [event('alert.pending'), event('alert.firing')]],
    ['firing', [event('alert.firing'), event('alert.pending')]],
    ['firing', [event('alert.firing'), event('alert.inactive')]],
    ['firing', [event('alert.unknown'), event('alert.firing'), event('alert.known')]],
    ['pending', [event('alert.pending', LATER), event('alert.inactive')]],
    ['pending', [event('alert.unknown'), event('alert.known'), event('alert.pending')]],
    // Of one call, in this order.
    ['unknown', [event('alert.pending'), event('alert.unknown', LATER), event('alert.inactive')]],
    ['resolved', [event('alert.resolved'), event('alert.known')]],
  ])('is %s', async (state, events) => {
    const view = await viewed(alertsView())

    expect(only(await view.rows(...events)).state).toBe(state)
  })

  it('says why an alert is over, and why it is unknown whether it still holds', async () => {
    const view = await viewed(alertsView())

    expect(only(await view.rows(event('alert.firing'), event('alert.unknown')))).toMatchObject({
      state: 'firing',
      unknown: 'lost',
      value: 3_600,
    })
    expect(only(await view.rows(event('alert.resolved')))).toMatchObject({
      resolved: 'condition',
      unknown: null,
    })
  })

  it.each([
    ['pending', 'alert.pending', 'alert.inactive'],
    ['unknown', 'alert.unknown', 'alert.known'],
  ] as const)(
    'has no longer an alert that was %s, but the one before that had fired',
    async (state, begin, end) => {
      const view = await viewed(alertsView())

      expect((await view.rows(event(begin), event(end))).size).toBe(0)
      const ended = only(await view.rows(event('alert.resolved')))
      expect(only(await view.rows(event(begin, LATER)))).toMatchObject({ state, last: ended })
      expect(only(await view.rows(event(end, LATER)))).toEqual(ended)
      expect(only(await view.rows(event(begin, LATER), event('alert.firing', LATER)))).not.toHaveProperty(
        'last',
      )
    },
  )

  it('no longer has a reason for an alert that fires when it is known again', async () => {
    const view = await viewed(alertsView())
    const events = (['firing', 'unknown', 'known'] as const).map((type) => event(`alert.${type}`))

    expect(only(await view.rows(...events))).toMatchObject({ state: 'firing', unknown: null })
  })

  it('has a row for each rule and labels, whatever the order of the labels', async () => {
    const view = await viewed(alertsView())
    const reversed = Object.fromEntries(Object.entries(LABELS).toReversed())
    const rows = await view.rows(
      event('alert.firing'),
      event('alert.resolved', { labels: reversed }),
      event('alert.firing', { labels: { ...LABELS, source: '/v1/monitors/monitor_2' } }),
      event('alert.firing', { alert: 'a rule: 50 % / ü' }),
    )

    expect([...rows.values()].map(({ state }) => state).toSorted()).toEqual(['firing', 'firing', 'resolved'])
  })

  it('keeps an alert that is pending or fires for as long as it does, and another one for 30 days', () => {
    const { timeToLive } = alertsView().definition
    if (typeof timeToLive !== 'function') throw new Error('it does not depend on the row')

    expect(timeToLive({ state: 'pending' })).toBeUndefined()
    expect(timeToLive({ state: 'firing' })).toBeUndefined()
    expect(timeToLive({ state: 'resolved' })).toBe(30 * 86_400_000)
    expect(timeToLive({ state: 'unknown' })).toBe(30 * 86_400_000)
  })

  it('names the source of its rule', () => {
    const { source } = alertsView().definition

    expect(source?.(['quiet', 'labels'])).toBe('/rules/quiet')
    expect(source?.([])).toBeUndefined()
  })

  it('survives labels and annotations that are null, and those of a megabyte', async () => {
    const nothing = JSON.parse('{"labels":null,"annotations":null,"key":null,"events":null,"value":null}')
    const long = { text: '"ü'.repeat(200_000) }
    const view = await viewed(alertsView())
    const rows = await view.rows(
      event('alert.firing', nothing),
      event('alert.firing', { alert: 'long', labels: long, annotations: long, since: long.text }),
    )

    expect(rows.size).toBe(2)
    for (const row of rows.values()) expect(JSON.stringify(row).length).toBeLessThan(65_536)
  })
})
