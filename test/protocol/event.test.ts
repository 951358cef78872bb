import { groupEvent, monitorEvent, runEvent } from 'rivulet'
import type { RunStatus } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { webhookEvent } from '../../src/protocol/webhook-event.ts'
import { taskRun } from '../operators/events.ts'

const TIME = '2026-01-01T00:00:00Z'

describe('a monitor event without `event_type`', () => {
  it.each([
    ['monitor.event_stream', { event_id: 'e', event_group_id: 'x', event_date: null, output: {} }],
    [
      'monitor.snapshot',
      { event_id: 'e', event_group_id: 'x', event_date: null, changed_output: {}, previous_output: {} },
    ],
    ['monitor.completion', { timestamp: TIME }],
    ['monitor.completion', { event_type: null, timestamp: TIME }],
    ['monitor.completion', { timestamp: TIME, ref: 'a field of a later version' }],
    ['monitor.error', { error_message: 'over quota', timestamp: TIME }],
  ])('is a %s by its fields', (type, wire) => {
    const event = monitorEvent('m', wire, 'poll')

    expect(event).toMatchObject({ type, data: wire })
    expect(event.id).toBe(monitorEvent('m', { ...wire, event_type: type.slice(8) }, 'poll').id)
  })

  it.each([
    { timestamp: TIME, event_id: 'e' },
    { timestamp: TIME, event_group_id: 'x' },
    { timestamp: TIME, monitor_group_id: 'x' },
    { timestamp: TIME, event_date: null },
    { timestamp: TIME, previous_output: {} },
    { timestamp: '' },
    { timestamp: 1 },
    {},
  ])('is unknown where its fields match no variant: %j', (wire) => {
    expect(monitorEvent('m', wire, 'poll').type).toBe('unknown')
  })
})

describe('the identity of a monitor error', () => {
  const failed = (error_message: unknown, timestamp = TIME) =>
    monitorEvent('m', { event_type: 'error', error_message, timestamp }, 'poll').id

  it('distinguishes two errors of one instant by their messages', () => {
    expect(failed('over quota')).not.toBe(failed('no source'))
  })

  it('distinguishes two errors with one message within a millisecond', () => {
    const at = (fraction: string) => failed('over quota', `2026-01-01T00:00:00.${fraction}Z`)

    expect(new Set(['120', '120001', '120002', '1200021'].map(at)).size).toBe(4)
    expect(at('120100')).toBe(at('1201'))
    expect(at('000000000')).toBe(failed('over quota'))
  })

  it('does not depend on the format of the instant', () => {
    expect(failed('over quota', '2026-01-01T01:00:00.000+01:00')).toBe(failed('over quota'))
  })

  it('is the same in the list and in the webhook', () => {
    const event = { error_message: 'over quota', timestamp: TIME }
    const payload = { type: 'monitor.execution.failed', timestamp: TIME, data: { monitor_id: 'm', event } }

    expect(webhookEvent(payload).id).toBe(failed('over quota'))
  })

  it.each([null, 7, '', undefined])('does not need a message: %j', (message) => {
    expect(failed(message)).toBe(failed(''))
  })
})

describe('the identity of a run', () => {
  const id = (status: RunStatus, modified_at: string | null, via: 'stream' | 'webhook' = 'stream') =>
    runEvent({ run: { ...taskRun('run_1', status), modified_at } as never }, via).id

  it('distinguishes the failures of two attempts', () => {
    expect(id('failed', '2026-01-01T00:00:00Z')).not.toBe(id('failed', '2026-01-01T00:05:00Z'))
    expect(id('cancelled', '2026-01-01T00:00:00Z')).not.toBe(id('cancelled', '2026-01-01T00:05:00Z'))
  })

  it('is the same for one failure, by stream and by webhook, in any format of the instant', () => {
    const stream = id('failed', '2026-01-01T00:00:00.120000Z')

    expect(id('failed', '2026-01-01T00:00:00.12Z', 'webhook')).toBe(stream)
    expect(id('failed', '2026-01-01T01:00:00.120+01:00')).toBe(stream)
  })

  it('is the same for duplicates of a completed run, since a run completes once', () => {
    expect(id('completed', '2026-01-01T00:00:00Z')).toBe('run_1:completed')
    expect(id('completed', '2026-01-01T00:05:00Z')).toBe('run_1:completed')
  })

  it('does not need a time', () => {
    expect(id('failed', null)).toBe('run_1:failed')
  })
})

describe('an id that is not well-formed text', () => {
  const [one, other] = ['x\uD800', 'x\uD801']

  it('does not make two monitor events duplicates', () => {
    const change = (event_id: string) =>
      monitorEvent('m', { event_type: 'event_stream', event_id, event_group_id: 'x', output: {} }, 'poll')

    expect(change(one).type).toBe('unknown')
    expect(Buffer.from(change(one).id)).not.toEqual(Buffer.from(change(other).id))
    expect(change(one).id.isWellFormed()).toBe(true)
  })

  it.each([
    [
      'a status',
      (text: string) => groupEvent('g', { type: 'task_group_status', event_id: text, status: {} }, 'stream'),
    ],
    [
      'an error',
      (text: string) => groupEvent('g', { type: 'error', error: { ref_id: text, message: '' } }, 'stream'),
    ],
    ['a run', (text: string) => groupEvent('g', { type: 'task_run.state', run: taskRun(text) }, 'stream')],
    [
      'a run status',
      (text: string) =>
        groupEvent('g', { type: 'task_run.state', run: taskRun('r', text as RunStatus) }, 'stream'),
    ],
    ['a webhook', (text: string) => webhookEvent({ type: 'task_run.status', data: taskRun(text) })],
    [
      'a completion',
      (text: string) => monitorEvent('m', { event_type: 'completion', timestamp: text }, 'poll'),
    ],
  ])('does not make two events duplicates: %s', (_what, eventOf) => {
    const [first, second] = [eventOf(one), eventOf(other)]

    // As UTF-8, as in a file or a socket.
    expect(Buffer.from(`${first.source} ${first.id}`)).not.toEqual(
      Buffer.from(`${second.source} ${second.id}`),
    )
    expect(first.cursor ?? '').not.toContain('\uD800')
  })

  it("does not hide the message's own position", () => {
    const wire = { type: 'task_group_status', event_id: one, status: {} }

    expect(groupEvent('g', wire, 'stream', '7')).toMatchObject({
      type: 'task_group.status',
      id: '7',
      cursor: '7',
    })
  })
})

describe('a run id that would change the path', () => {
  it.each(['.', '..', 'a\nb', 'x'.repeat(513)])('makes an unknown event: %j', (run_id) => {
    const wire = { type: 'task_run.state', event_id: '1', run: taskRun(run_id) }

    expect(groupEvent('g', wire, 'stream')).toMatchObject({ type: 'unknown', data: wire, cursor: '1' })
    expect(webhookEvent({ type: 'task_run.status', data: taskRun(run_id) }).type).toBe('unknown')
  })
})
