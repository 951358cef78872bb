import { groupEvent, monitorEvent, NotFoundError } from 'rivulet'
import type { EventOf } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { eventJson, eventLine } from '../../src/cli/event-line.ts'
import { findAllEvent } from '../../src/protocol/find-all-event.ts'
import { runTraceEvent } from '../../src/protocol/run-trace-event.ts'

const plain = { width: 100, paint: (_style: unknown, text: string) => text }
const wide = { ...plain, width: 200 }
const noon = new Date(2026, 0, 1, 12, 0, 0).valueOf()

const refusal = { status: 404, retryable: false, taken: 'no' as const }

function failure(error: Error): EventOf<'source.failed'> {
  return {
    id: 'i',
    source: '/v1/monitors/m',
    type: 'source.failed',
    time: null,
    received: '2026-01-01T00:00:00Z',
    via: 'poll',
    data: { error },
  }
}

describe('an event for a person', () => {
  it('is one line with its time, kind, resource, text and transport', () => {
    const event = monitorEvent(
      'monitor_1',
      {
        event_type: 'event_stream',
        event_id: 'e',
        event_group_id: 'g',
        event_date: null,
        output: { type: 'text', content: 'Something\nnew', basis: [] },
      },
      'poll',
      noon,
    )

    expect(eventLine(event, plain)).toBe('12:00:00  ◆ change     monitor_1: Something new  poll')
  })

  it('shows why a run failed', () => {
    const run = { run_id: 'trun_1', status: 'failed', error: { message: 'no source' }, modified_at: null }
    const event = groupEvent(
      'tgrp_1',
      { type: 'task_run.state', event_id: '1', run },
      'stream',
      undefined,
      noon,
    )

    expect(eventLine(event, plain)).toBe('12:00:00  ✖ failed     trun_1: no source  stream')
  })

  it.each([
    ['an empty text', { type: 'text', content: '', basis: [] }],
    ['no fields', { type: 'json', content: {}, basis: [] }],
  ])('shows that a run completed with %s', (_, output) => {
    const run = { run_id: 'trun_1', status: 'completed', modified_at: null }
    const event = groupEvent(
      'tgrp_1',
      { type: 'task_run.state', event_id: '1', run, output },
      'stream',
      undefined,
      noon,
    )

    expect(eventLine(event, plain)).toBe('12:00:00  ✔ completed  trun_1: an empty answer  stream')
  })

  it('shows the progress of a group', () => {
    const status = { num_task_runs: 3, task_run_status_counts: { completed: 1, running: 2 }, is_active: true }
    const event = groupEvent(
      'tgrp_1',
      { type: 'task_group_status', event_id: '1', status },
      'stream',
      undefined,
      noon,
    )

    expect(eventLine(event, plain)).toContain('tgrp_1: 1 of 3 ended, 1 completed, 2 running')
  })

  it.each([
    [
      {
        type: 'task_run.progress_stats',
        source_stats: { num_sources_considered: 12, num_sources_read: 3, sources_read_sample: [] },
        progress_meter: 41.6,
      },
      '▸ progress   trun_1: 42 %, 3 of 12 sources read',
    ],
    [
      {
        type: 'task_run.progress_stats',
        source_stats: { num_sources_considered: null, num_sources_read: null, sources_read_sample: null },
        progress_meter: 0,
      },
      '▸ progress   trun_1: 0 %',
    ],
    [
      { type: 'task_run.progress_msg.search', message: 'Searched for\nberths', timestamp: null },
      '▸ search     trun_1: Searched for berths',
    ],
    [
      { type: 'task_run.progress_stats' },
      '• task_run.progress_stats  trun_1: {"type":"task_run.progress_stats"}',
    ],
  ])('shows the progress of a run: %o', (wire, line) => {
    expect(eventLine(runTraceEvent('trun_1', wire, 'stream', noon), plain)).toBe(`12:00:00  ${line}  stream`)
  })

  const candidate = { candidate_id: 'c', name: 'Acme', url: 'https://acme.example', match_status: 'matched' }
  const status = {
    status: 'completed',
    is_active: false,
    metrics: { generated_candidates_count: 12, matched_candidates_count: 3 },
    termination_reason: 'match_limit_met',
  }

  it.each([
    ['findall.status', { status }, '▸ find-all   f: completed (match_limit_met), 3 of 12 candidates matched'],
    ['findall.candidate.generated', candidate, '◇ candidate  f: Acme (https://acme.example)'],
    [
      'findall.candidate.matched',
      {
        ...candidate,
        output: { founded: { value: '2020', type: 'match_condition', is_matched: true } },
      },
      '✔ matched    f: Acme (https://acme.example): founded: 2020 ✔',
    ],
    [
      'findall.candidate.unmatched',
      {
        ...candidate,
        output: { founded: { value: null, type: 'match_condition', is_matched: false } },
      },
      '✖ unmatched  f: Acme (https://acme.example): founded: null ✖',
    ],
    ['findall.candidate.discarded', candidate, '✖ discarded  f: Acme (https://acme.example)'],
    [
      'findall.candidate.enriched',
      { ...candidate, output: { staff: { value: 30, type: 'enrichment' } } },
      '◆ enriched   f: Acme (https://acme.example): staff: 30',
    ],
    ['findall.schema.updated', { objective: 'Find companies' }, '▸ schema     f: Find companies'],
  ])('shows %s', (type, data, line) => {
    const event = findAllEvent('f', { type, data, timestamp: '' }, 'stream', undefined, noon)

    expect(eventLine(event, plain)).toBe(`12:00:00  ${line}  stream`)
  })

  it('shows an unknown event as JSON, truncated to the width', () => {
    const event = groupEvent('tgrp_1', { type: 'new', text: 'x'.repeat(500) }, 'stream', undefined, noon)
    const line = eventLine(event, plain)

    expect(line).toContain('? unknown    tgrp_1: {"type":"new"')
    expect(line).toHaveLength(100)
  })

  it('shows the code of the error of a failed source, also if it comes from a log', () => {
    const error = new NotFoundError({ method: 'GET', path: '/v1/monitors/m' }, refusal)
    const failed = failure(error)
    const logged: EventOf<'source.failed'> = JSON.parse(JSON.stringify(failed))

    expect(eventLine(failed, wide)).toContain(`${error.message} [not_found]`)
    expect(eventLine(logged, wide)).toContain(`${error.message} [not_found]`)
    expect(eventLine(failure(new TypeError('no address')), wide)).not.toContain('[')
  })

  it('says of an alert that events may be missing', () => {
    const firing = (complete: boolean): EventOf<'alert.firing'> => ({
      id: 'i',
      source: '/rules/Busy',
      type: 'alert.firing',
      time: null,
      received: '2026-01-01T00:00:00Z',
      via: 'process',
      data: {
        alert: 'Busy',
        group: null,
        key: { source: 'm' },
        labels: { alertname: 'Busy', source: 'm' },
        annotations: { summary: 'Much is found' },
        value: 3,
        complete,
        since: '2026-01-01T00:00:00Z',
        events: [],
        episode: 'e',
      },
    })

    expect(eventLine(firing(false), wide)).toContain('source=m, 3: Much is found (events may be missing)')
    expect(eventLine(firing(true), wide)).not.toContain('missing')
  })

  it('keeps the name and message of its error, as JSON too', () => {
    const error = Object.assign(new TypeError('no such monitor'), { status: 404 })

    expect(JSON.parse(JSON.stringify(eventJson(failure(error))))).toMatchObject({
      source: '/v1/monitors/m',
      data: { error: { name: 'TypeError', message: 'no such monitor', status: 404 } },
    })
  })
})
