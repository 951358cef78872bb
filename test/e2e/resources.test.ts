import { describe, expect, it } from 'vitest'
import { firstValueFrom } from 'rxjs'
import type { CreateMonitorRequest } from 'rivulet'
import { settled } from '../support/settled.ts'
import { all, research } from './research.ts'

const wanted: CreateMonitorRequest = {
  type: 'event_stream',
  frequency: '12h',
  processor: 'base',
  metadata: { owner: 'harbour' },
  webhook: { url: 'https://example.org/hook', event_types: ['monitor.event.detected'] },
  settings: {
    query: 'spring tide',
    include_backfill: true,
    advanced_settings: { source_policy: { include_domains: ['.edu'] }, location: 'de' },
  },
}

const watching = (query: string): CreateMonitorRequest => ({
  type: 'event_stream',
  frequency: '1h',
  settings: { query },
})

describe('monitors, end to end', () => {
  it('are created with their settings, and read back', async () => {
    const { client } = await research()

    const created = await all(client.monitors.create(wanted))
    const read = await all(client.monitors.get(created[0]?.monitor_id ?? ''))

    expect(created).toEqual([
      expect.objectContaining({ ...wanted, monitor_id: expect.any(String), status: 'active' }),
    ])
    expect(read).toEqual([expect.objectContaining({ ...wanted, monitor_id: created[0]?.monitor_id })])
  })

  it('are listed page by page, each once', async () => {
    const { client } = await research()
    const created: string[] = []
    for (const query of ['one', 'two', 'three', 'four', 'five']) {
      created.push((await firstValueFrom(client.monitors.create(watching(query)))).monitor_id)
    }

    const listed = await all(client.monitors.list({ limit: 2 }))

    expect(listed.map(({ monitor_id }) => monitor_id).toSorted()).toEqual(created.toSorted())
  })

  it('are listed by status and by type', async () => {
    const { client } = await research()
    const kept = await firstValueFrom(client.monitors.create(watching('kept')))
    const given = await firstValueFrom(client.monitors.create(watching('cancelled')))
    await all(client.monitors.cancel(given.monitor_id))

    const active = await all(client.monitors.list({ status: 'active', type: 'event_stream' }))
    const cancelled = await all(client.monitors.list({ status: ['cancelled'] }))
    const either = await all(
      client.monitors.list({ status: ['active', 'cancelled'], type: ['event_stream', 'snapshot'] }),
    )
    const snapshots = await all(client.monitors.list({ type: 'snapshot' }))

    expect(active.map(({ monitor_id }) => monitor_id)).toEqual([kept.monitor_id])
    expect(cancelled.map(({ monitor_id }) => monitor_id)).toEqual([given.monitor_id])
    expect(either).toHaveLength(2)
    expect(snapshots).toEqual([])
  })

  it('run once more when triggered, and the trigger emits once', async () => {
    const { client, service } = await research()
    const { monitor_id } = await firstValueFrom(client.monitors.create(watching('tide')))
    await settled(() => service.records().monitor_events.length)
    const before = service.records().monitor_events.length

    const emitted = await all(client.monitors.trigger(monitor_id))
    await settled(() => service.records().monitor_events.length - before)

    expect(emitted).toEqual([undefined])
    expect(service.records().monitor_events.length).toBe(before + 1)
  })

  it('stay cancelled, and cannot be triggered then', async () => {
    const { client } = await research()
    const { monitor_id } = await firstValueFrom(client.monitors.create(watching('tide')))

    const cancelled = await all(client.monitors.cancel(monitor_id))
    const read = await firstValueFrom(client.monitors.get(monitor_id))
    const triggered = all(client.monitors.trigger(monitor_id))

    expect(cancelled).toEqual([expect.objectContaining({ monitor_id, status: 'cancelled' })])
    expect(read.status).toBe('cancelled')
    await expect(triggered).rejects.toMatchObject({ status: 409, path: `/v1/monitors/${monitor_id}/trigger` })
  })
})

describe('task groups as resources, end to end', () => {
  it('are created empty, with their metadata, and read back', async () => {
    const { client } = await research()

    const created = await all(client.taskGroups.create({ metadata: { batch: 'may' } }))
    const read = await all(client.taskGroups.get(created[0]?.taskgroup_id ?? ''))

    expect(created).toEqual([
      {
        taskgroup_id: expect.any(String),
        metadata: { batch: 'may' },
        created_at: expect.any(String),
        status: expect.objectContaining({ num_task_runs: 0, is_active: false }),
      },
    ])
    expect(read).toEqual(created)
  })

  it('count their runs by status when these have ended', async () => {
    const { client, group } = await research()
    const id = await group('a', 'b', 'c')
    await all(client.taskGroups.runs(id))

    const { status } = await firstValueFrom(client.taskGroups.get(id))

    expect(status).toMatchObject({
      num_task_runs: 3,
      is_active: false,
      task_run_status_counts: { completed: 3 },
    })
  })
})

describe('untyped calls, end to end', () => {
  it('post and get resources that the library does not know', async () => {
    const { client } = await research()

    const posted = await all(client.post('/v1/tasks/runs', { input: 'what is a tide?', processor: 'base' }))
    const { run_id } = posted[0] as { run_id: string }
    const result = await all(client.get(`/v1/tasks/runs/${run_id}/result`, { query: { timeout: 5 } }))

    expect(posted).toEqual([expect.objectContaining({ run_id: expect.any(String) })])
    expect(result).toEqual([
      {
        run: expect.objectContaining({ run_id, status: 'completed' }),
        output: expect.objectContaining({ content: 'about "what is a tide?"' }),
      },
    ])
  })

  it('send query parameters with their names on the wire', async () => {
    const { client } = await research()
    await all(client.monitors.create(watching('one')))
    await all(client.monitors.create(watching('two')))

    const page = await firstValueFrom(
      client.get('/v1/monitors', { query: { limit: 1, cursor: undefined, status: 'active' } }),
    )

    expect(page).toMatchObject({
      monitors: [expect.objectContaining({ status: 'active' })],
      next_cursor: expect.any(String),
    })
  })

  it("stream the messages of any event stream, with their ids, kinds and data, to the stream's end", async () => {
    const { client, group } = await research()
    const id = await group('a', 'b')
    const typed = await all(client.taskGroups.runs(id, { include_output: true }))

    const messages = await all(
      client.stream(`/v1beta/tasks/groups/${id}/runs`, { query: { include_output: true } }),
    )

    expect(messages.map((message) => message.id)).toEqual(typed.map(({ cursor }) => cursor))
    expect(messages.map((message) => message.event)).toEqual(['task_run.state', 'task_run.state'])
    expect(messages.map(({ data }) => JSON.parse(data))).toEqual(typed.map(({ data }) => data))
  })

  it('resume a stream at the given position', async () => {
    const { client, group } = await research()
    const id = await group('a', 'b', 'c')
    await all(client.taskGroups.runs(id))
    const path = `/v1/tasks/groups/${id}/runs`
    const whole = await all(client.stream(path))

    const rest = await all(client.stream(path, { query: { last_event_id: whole[0]?.id } }))

    expect(rest).toEqual(whole.slice(1))
  })
})
