import { describe, expect, it } from 'vitest'
import { alertsByState } from '../../../src/dashboard/page/alerts/alerts.ts'
import { progressOf } from '../../../src/dashboard/page/groups/progress.ts'
import { noticeText } from '../../../src/dashboard/page/monitors/source-notice.tsx'
import { timelineEntry } from '../../../src/dashboard/page/monitors/timeline.ts'
import type { AlertRow, MonitorRow, SearchesRow } from '../../../src/dashboard/page/rows.ts'
import { recentQueries } from '../../../src/dashboard/page/search/search-section.tsx'

const HOUR = 3_600_000
const NOW = Date.parse('2026-01-31T12:00:00Z')

describe('the progress of a group', () => {
  it.each([[null], [undefined], ['active']])('is not known of %o', (status) => {
    expect(progressOf(status)).toBeUndefined()
  })

  it('has the ended runs first, and statuses that are new last', () => {
    expect(
      progressOf({
        num_task_runs: 12,
        is_active: true,
        task_run_status_counts: { paused: 1, queued: 4, failed: 2, completed: 5, running: 0, cancelled: 'x' },
      }),
    ).toEqual({
      total: 12,
      ended: 7,
      isActive: true,
      counts: [
        ['completed', 5],
        ['failed', 2],
        ['queued', 4],
        ['paused', 1],
      ],
    })
  })

  it('counts the runs itself where the service does not', () => {
    expect(progressOf({ task_run_status_counts: { completed: 3 } })).toMatchObject({ total: 3, ended: 3 })
    expect(progressOf({})).toEqual({ total: 0, ended: 0, isActive: false, counts: [] })
  })
})

describe('alerts by state', () => {
  const row = (state: AlertRow['state'], change: Partial<AlertRow>): AlertRow => ({
    state,
    alert: 'Ice',
    group: null,
    key: {},
    labels: { alertname: 'Ice', monitor: 'm' },
    annotations: {},
    value: null,
    complete: true,
    since: '2026-01-31T10:00:00Z',
    events: [],
    episode: null,
    resolved: null,
    unknown: null,
    changed: NOW,
    ...change,
  })
  it('are the rows of the view', () => {
    const alerts = alertsByState(
      [
        ['a', row('firing', { value: 3, annotations: { summary: 'It breaks' } })],
        ['b', row('pending', { since: '2026-01-31T11:59:00Z' })],
        ['c', row('unknown', { unknown: 'lost' })],
      ],
      NOW,
    )
    expect(alerts.firing).toMatchObject([
      { id: 'a', value: 3, summary: 'It breaks', labels: [['monitor', 'm']], reason: undefined },
    ])
    expect(alerts.pending).toMatchObject([{ id: 'b', since: NOW - 60_000 }])
    expect(alerts.unknown).toMatchObject([{ id: 'c', reason: 'lost' }])
  })

  it('fire with a reason while it is not known whether the condition still holds', () => {
    expect(alertsByState([['a', row('firing', { unknown: 'gap' })]], NOW).firing[0]?.reason).toBe('gap')
  })

  it('say whether the rule had all events when they began', () => {
    const { firing } = alertsByState(
      [
        ['a', row('firing', { complete: false })],
        ['b', row('firing', {})],
      ],
      NOW,
    )
    expect(firing.map(({ id, isComplete }) => [id, isComplete])).toEqual([
      ['a', false],
      ['b', true],
    ])
  })

  it('have resolved ones for a day, the latest first', () => {
    const resolved = (id: string, age: number) =>
      [id, row('resolved', { changed: NOW - age, resolved: 'expired' })] as const
    const alerts = alertsByState(
      [resolved('a', 2 * HOUR), resolved('b', HOUR), resolved('c', 25 * HOUR)],
      NOW,
    )
    expect(alerts.resolved.map(({ id }) => id)).toEqual(['b', 'a'])
    expect(alerts.resolved[0]?.reason).toBe('expired')
  })
})

describe('an entry of a timeline', () => {
  const entry = (row: MonitorRow) => timelineEntry('key', row)
  const base = { time: null, recorded: NOW }

  it('has the text, the date and the evidence of a change', () => {
    const output = {
      type: 'text',
      content: 'The ice\nbreaks.',
      basis: [{ field: 'output', reasoning: 'It is new.', citations: [{ url: 'https://a.example' }] }],
    } as const
    const event = { event_id: 'e', event_group_id: 'g', event_date: '2026-01', output }
    const made = entry({ ...base, type: 'monitor.event_stream', event })
    expect(made).toMatchObject({ kind: 'change', title: 'The ice breaks.', date: '2026-01' })
    expect(made.evidence).toHaveLength(1)
    expect(made.happened).toBe(new Date(2026, 0, 1).getTime())
  })

  it('names the fields that changed', () => {
    const output = (content: Record<string, unknown>) => ({ type: 'json' as const, content, basis: [] })
    const event = {
      event_type: 'snapshot' as const,
      event_id: 'e',
      event_group_id: 'g',
      event_date: null,
      changed_output: output({ open_berths: 3, names: ['a'] }),
      previous_output: output({ open_berths: 2 }),
    }
    const made = entry({ ...base, type: 'monitor.snapshot', event })
    expect(made.title).toBe('open berths: 3 · names: ["a"]')
    expect(made.previous).toBe(event.previous_output)
  })

  it('names the fields that disappeared, which have a basis but no value', () => {
    const basis = (...fields: string[]) =>
      fields.map((field) => ({ field, reasoning: 'The output no longer has this field.' }))
    const event = {
      event_type: 'snapshot' as const,
      event_id: 'e',
      event_group_id: 'g',
      event_date: null,
      changed_output: { type: 'json' as const, content: {}, basis: basis('open_berths', 'harbour', 'other') },
      previous_output: { type: 'json' as const, content: { open_berths: 2, harbour: 'A' }, basis: [] },
    }
    const made = entry({ ...base, type: 'monitor.snapshot', event })
    expect(made.title).toBe('open berths: removed · harbour: removed')
  })

  it('is there for a row without data', () => {
    expect(entry({ ...base, type: 'monitor.error', event: null })).toMatchObject({
      kind: 'error',
      title: 'An execution failed',
    })
    expect(entry({ ...base, type: 'monitor.event_stream', event: null })).toMatchObject({
      kind: 'change',
      title: '',
    })
  })

  it('is the same object for the same row, so that it is not rendered again', () => {
    const row: MonitorRow = { ...base, type: 'monitor.completion', event: null }
    expect(entry(row)).toBe(entry(row))
  })
})

it.each([
  ['source.lost', { message: 'reset' }, 'The source could not be reached: reset'],
  ['source.lost', null, 'The source could not be reached: no reason given'],
  ['source.live', { lost: '2026-01-31T10:00:00Z' }, 'The source was reached again'],
  ['source.failed', { error: { message: 'not found' } }, 'The source was given up: not found'],
  ['stream.gap', { reason: 'expired' }, 'Events are missing: expired'],
  ['own.type_of_theirs', 5, 'own type of theirs'],
])('a notice of the type %s says what it is', (type, event, text) => {
  expect(noticeText(type, event)).toBe(text)
})

it('searches of a session are shown without the steps of typing them', () => {
  const search = (query: string, recorded: number) => ({
    request: { search_queries: [query] },
    results: [],
    recorded,
  })
  const rows: SearchesRow[] = [
    {
      session: 'a',
      searches: [search('fro', 1), search('frozen', 2), search('frozen river', 3), search('ice', 4)],
    },
    { session: 'b', searches: [search('frozen river', 5)] },
  ]
  expect(recentQueries(rows)).toEqual(['frozen river', 'ice'])
})
