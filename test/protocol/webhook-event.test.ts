import * as fc from 'fast-check'
import { monitorEvent, monitorSource, runEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { detection, webhookEvent } from '../../src/protocol/webhook-event.ts'
import { detected, fullRun, taskRun } from '../operators/events.ts'

const TIME = '2026-01-01T00:00:00Z'
const NOW = Date.parse(TIME)

describe('webhookEvent', () => {
  it('gives a run the same identity as the stream', () => {
    const run = taskRun('r')
    const event = webhookEvent({ type: 'task_run.status', timestamp: TIME, data: run }, NOW)
    expect(event).toEqual(runEvent({ run }, 'webhook', undefined, NOW))
    expect([event.source, event.id]).toEqual([fullRun('r').source, fullRun('r').id])
  })

  it('gives an execution that found nothing the same identity as the list', () => {
    const payload = { type: 'monitor.execution.completed', timestamp: TIME, data: { monitor_id: 'm' } }
    const listed = monitorEvent('m', { event_type: 'completion', timestamp: TIME }, 'poll', NOW)
    const { cursor: _listOnly, ...event } = listed
    expect(webhookEvent(payload, NOW)).toEqual({ ...event, via: 'webhook' })
  })

  it('uses the time of the execution, not of the webhook', () => {
    const event = { timestamp: '2025-12-31T23:59:59Z' }
    const payload = { type: 'monitor.execution.completed', timestamp: TIME, data: { monitor_id: 'm', event } }
    const listed = monitorEvent('m', { event_type: 'completion', ...event }, 'poll')
    expect(webhookEvent(payload).id).toBe(listed.id)
  })

  it('gives an execution that failed the same identity and message as the list', () => {
    const event = { event_type: 'error', error_message: 'over quota', timestamp: TIME }
    const payload = { type: 'monitor.execution.failed', timestamp: TIME, data: { monitor_id: 'm', event } }
    expect(webhookEvent(payload, NOW)).toEqual(monitorEvent('m', event, 'webhook', NOW))
  })

  it('gives an execution the same identity as the list when the webhook names its group', () => {
    const about = { monitor_id: 'm' }
    const completion = { event_type: 'completion', timestamp: TIME }
    const failure = { event_type: 'error', error_message: 'over quota', timestamp: TIME }
    for (const [type, event] of [
      ['monitor.execution.completed', completion],
      ['monitor.execution.failed', failure],
    ] as const) {
      const payload = { type, timestamp: TIME, data: { ...about, event: { ...event, event_group_id: 'g' } } }
      expect(webhookEvent(payload).id).toBe(monitorEvent('m', event, 'poll').id)
      expect(webhookEvent(payload).data).toMatchObject({ event_group_id: 'g' })
    }
  })

  it('gives an execution that failed without a message an empty one', () => {
    const payload = {
      type: 'monitor.execution.failed',
      timestamp: TIME,
      data: { monitor_id: 'm', event: {} },
    }
    expect(webhookEvent(payload)).toMatchObject({ type: 'monitor.error', data: { error_message: '' } })
  })

  it('passes a detection on as unknown, with the monitor as its source', () => {
    const payload = detected('g', 'm')
    expect(webhookEvent(payload)).toMatchObject({
      type: 'unknown',
      source: monitorSource('m'),
      data: payload,
      via: 'webhook',
    })
  })

  it.each([
    ['a run without an id', { type: 'task_run.status', data: { status: 'completed' } }],
    ['a run that is null', { type: 'task_run.status', data: null }],
    [
      'a run whose id would change the path',
      { type: 'task_run.status', data: { run_id: '..', status: 'failed' } },
    ],
    [
      'a monitor whose id would change the path',
      { ...detected('g'), data: { monitor_id: '..', event: { event_group_id: 'g' } } },
    ],
    ['a monitor without an id', { type: 'monitor.execution.failed', data: { event: {} } }],
    ['an unknown type', { type: 'monitor.paused', data: { monitor_id: 'm' } }],
    ['no type', { data: {} }],
    ['no object', 'hello'],
  ])('passes on a body with %s as unknown', (_what, payload) => {
    expect(webhookEvent(payload)).toMatchObject({ type: 'unknown', source: '/v1/webhooks', data: payload })
  })

  it('passes an execution without a time on as unknown, with the monitor as its source', () => {
    const payload = { type: 'monitor.execution.completed', data: { monitor_id: 'm' } }
    expect(webhookEvent(payload)).toMatchObject({
      type: 'unknown',
      source: monitorSource('m'),
      data: payload,
    })
  })

  it('makes the same event from the same JSON, and never throws', () => {
    const type = fc.constantFrom(
      'task_run.status',
      'monitor.event.detected',
      'monitor.execution.completed',
      'monitor.execution.failed',
    )
    const data = fc.oneof(
      fc.jsonValue(),
      fc.record(
        { monitor_id: fc.jsonValue(), event: fc.jsonValue(), run_id: fc.jsonValue(), status: fc.jsonValue() },
        { requiredKeys: [] },
      ),
    )
    const payload = fc.oneof(fc.jsonValue(), fc.record({ type, timestamp: fc.jsonValue(), data }))
    fc.assert(
      fc.property(payload, (any) => {
        const event = webhookEvent(any, NOW)
        expect(event.via).toBe('webhook')
        expect(event.id).not.toBe('')
        expect(webhookEvent(structuredClone(any), NOW)).toEqual(event)
        detection(any)
      }),
    )
  })
})

describe('detection', () => {
  it('returns the monitor and the execution that found something', () => {
    const named = { ...detected('g'), data: { monitor_id: 'm', event: { monitor_group_id: 'g' } } }

    expect(detection(detected('g', 'm'))).toEqual({ monitorId: 'm', eventGroupId: 'g' })
    expect(detection(named)).toEqual({ monitorId: 'm', eventGroupId: 'g' })
  })

  it.each([
    ['another type', { ...detected('g'), type: 'monitor.execution.completed' }],
    ['no group', { ...detected('g'), data: { monitor_id: 'm', event: {} } }],
    ['no event', { ...detected('g'), data: { monitor_id: 'm' } }],
    ['no monitor', { ...detected('g'), data: { event: { event_group_id: 'g' } } }],
    ['an empty group', detected('')],
    ['a monitor that is a dot segment', detected('g', '..')],
    ['a monitor that is not well-formed text', detected('g', 'm\uD800')],
    ['a group that is not well-formed text', detected('g\uD800')],
    ['a group with a control character', detected('g\n')],
    ['no data', { type: 'monitor.event.detected' }],
    ['no object', null],
  ])('is undefined for a body with %s', (_what, payload) => {
    expect(detection(payload)).toBeUndefined()
  })
})
