import type { ResearchEvent, ResearchEventType } from 'rivulet'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { runEvent } from '../../../src/protocol/event.ts'
import { tickAt } from '../../support/ticks.ts'
import { activityView } from '../../../src/gateway/views/activity-view.ts'
import { viewed } from './viewed.ts'

const NOON = Date.parse('2026-01-31T12:00:30Z')

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOON })
})

afterEach(() => {
  vi.useRealTimers()
})

function run(run_id: string, modified_at: string | null): ResearchEvent {
  const wire = { status: 'completed', is_active: false, processor: 'base', created_at: null } as const
  return runEvent({ run: { run_id, modified_at, ...wire } }, 'stream')
}

describe('activityView', () => {
  it('counts entries by minute and type, without ticks', async () => {
    const view = await viewed(activityView())
    await view.rows(run('1', null), run('2', null), tickAt(NOON))
    vi.setSystemTime(NOON + 60_000)
    const rows = await view.rows(run('3', null))

    expect([...rows.keys()]).toEqual(['2026-01-31T12%3A00Z', '2026-01-31T12%3A01Z'])
    expect(rows.get('2026-01-31T12%3A00Z')).toEqual({
      minute: NOON - 30_000,
      events: 2,
      types: { 'task_run.state': 2 },
      lag: { count: 0, sum: 0, max: 0 },
    })
  })

  it('measures from the time of an event to its recording', async () => {
    const view = await viewed(activityView())
    const alert = { ...run('4', '2026-01-31T00:00:00Z'), via: 'process' } as const
    const [row] = (
      await view.rows(
        run('1', '2026-01-31T12:00:29Z'),
        run('2', '2026-01-31T12:00:25Z'),
        run('3', '2026-01-31T13:00:00Z'),
        run('5', 'yesterday'),
        alert,
      )
    ).values()

    expect(row?.lag).toEqual({ count: 3, sum: 6_000, max: 5_000 })
  })

  it('counts types of a program, however they are called and however many there are', async () => {
    const view = await viewed(activityView())
    const typed = (type: string, id: number) => ({
      ...run(`${id}`, null),
      id: `${id}`,
      type: type as ResearchEventType,
    })
    const names = ['__proto__', 'constructor', ...Array.from({ length: 1_000 }, (_, at) => `own.type_${at}`)]
    const [row] = (await view.rows(...(names.map(typed) as ResearchEvent[]))).values()

    expect(row?.events).toBe(1_002)
    expect(Object.entries(row?.types ?? {})).toContainEqual(['__proto__', 1])
    expect(Object.keys(row?.types ?? {}).length).toBe(101)
    expect(Object.values(row?.types ?? {}).reduce((sum, count) => sum + count, 0)).toBe(1_002)
  })
})
