import { groupEvent, monitorEvent } from 'rivulet'
import type { EventOf } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { eventJson, eventLine } from '../../src/cli/event-line.ts'

const plain = { width: 100, paint: (_style: unknown, text: string) => text }
const noon = new Date(2026, 0, 1, 12, 0, 0).valueOf()

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

  it('shows an unknown event as JSON, truncated to the width', () => {
    const event = groupEvent('tgrp_1', { type: 'new', text: 'x'.repeat(500) }, 'stream', undefined, noon)
    const line = eventLine(event, plain)

    expect(line).toContain('? unknown    tgrp_1: {"type":"new"')
    expect(line).toHaveLength(100)
  })

  it('keeps the name and message of its error, as JSON too', () => {
    const error = Object.assign(new TypeError('no such monitor'), { status: 404 })
    const event: EventOf<'source.failed'> = {
      id: 'i',
      source: '/v1/monitors/m',
      type: 'source.failed',
      time: null,
      received: '2026-01-01T00:00:00Z',
      via: 'poll',
      data: { error },
    }

    expect(JSON.parse(JSON.stringify(eventJson(event)))).toMatchObject({
      source: '/v1/monitors/m',
      data: { error: { name: 'TypeError', message: 'no such monitor', status: 404 } },
    })
  })
})
