import type { AddRunsResponse, ValidationErrorResponse } from 'rivulet'
import { ManualClock } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { HeldProcessor, running, type ServerEvent } from '../running.ts'

const HOUR = 3_600_000

const resumed = (path: string, id: string) => `${path}?last_event_id=${encodeURIComponent(id)}`

describe('the events of a group', () => {
  it('are its status at each change and the end of each run, and end with the last', async () => {
    const { group, add, stream } = await running({ concurrency: 1 })
    const id = await group()
    const { run_ids } = await add(id, 'one', 'fail')
    const reader = await stream(`/v1/tasks/groups/${id}/events`)
    const events = await reader.rest()

    expect(reader.status).toBe(200)
    expect(reader.headers.get('content-type')).toBe('text/event-stream')
    expect(reader.headers.get('cache-control')).toMatch(/no-cache/)
    expect(events.map(summaryOf)).toEqual([
      'status 0/2',
      `completed ${run_ids[0]}`,
      'status 1/2',
      `failed ${run_ids[1]}`,
      'status 2/2',
    ])
    expect(events.map(({ data }) => data.status?.is_active)).toEqual([
      true,
      undefined,
      true,
      undefined,
      false,
    ])
    expect(events.at(-1)?.data.status?.task_run_status_counts).toEqual({ completed: 1, failed: 1 })
  })

  it('have the same id and type in the stream as in the message, and no id twice', async () => {
    const { group, add, events } = await running()
    const groups = [await group(), await group()]
    for (const id of groups) await add(id, 'one', 'two', 'three')
    const streams = await Promise.all(
      groups.flatMap((id) => [
        events(`/v1/tasks/groups/${id}/events`),
        events(`/v1/tasks/groups/${id}/runs`),
      ]),
    )
    const all = streams.flat()
    expect(all).toHaveLength(2 * (7 + 3))
    expect(all.filter(({ id, event, data }) => id !== data.event_id || event !== data.type)).toEqual([])
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  })

  it('begin with a retry field', async () => {
    const { group, add, stream } = await running()
    const id = await group()
    await add(id, 'one')
    const reader = await stream(`/v1/tasks/groups/${id}/events`)
    await reader.rest()
    expect(reader.text).toMatch(/^retry: \d+\n\n/)
  })

  it('arrive while runs are active', async () => {
    const processor = new HeldProcessor()
    const { group, add, stream } = await running({ processor })
    const id = await group()
    await add(id, 'one', 'two')
    const reader = await stream(`/v1/tasks/groups/${id}/events`)
    const [first, second] = [await processor.next(), await processor.next()]

    const queued = await reader.next()
    second.complete()
    const run = await reader.next()
    const half = await reader.next()
    first.complete()
    const rest = await reader.rest()

    expect(queued?.data.status).toMatchObject({ task_run_status_counts: { queued: 2 } })
    expect(run?.data.run).toMatchObject({ run_id: second.task.run_id, status: 'completed' })
    expect(half?.data.status).toMatchObject({ task_run_status_counts: { completed: 1, running: 1 } })
    expect(rest).toHaveLength(2)
  })

  it('include runs that are added while the stream is open', async () => {
    const processor = new HeldProcessor()
    const { group, add, stream } = await running({ processor })
    const id = await group()
    await add(id, 'one')
    const reader = await stream(`/v1/tasks/groups/${id}/events`)
    await reader.next()
    await add(id, 'two')
    const grown = await reader.next()
    expect(grown?.data.status?.num_task_runs).toBe(2)
  })

  it('of a group without runs are its status, and the end', async () => {
    const { group, events, add } = await running()
    const id = await group()
    const before = await events(`/v1/tasks/groups/${id}/events`)
    await add(id, 'one')
    const after = await events(resumed(`/v1/tasks/groups/${id}/events`, before[0]?.id ?? 'none'))
    expect(before.map(summaryOf)).toEqual(['status 0/0'])
    expect(after.map(summaryOf)).toEqual(['status 0/1', expect.stringMatching(/^completed/), 'status 1/1'])
  })

  it('of a run show neither input nor output', async () => {
    const { group, add, events } = await running()
    const id = await group()
    await add(id, 'one')
    const all = await events(`/v1/tasks/groups/${id}/events`)
    expect(Object.keys(all[1]?.data ?? {})).toEqual(['type', 'event_id', 'run'])
  })
})

describe('the runs of a group', () => {
  it('are sent as they end, in the form of the interface', async () => {
    const { group, add, events } = await running()
    const id = await group()
    const { run_ids } = await add(id, 'one')
    const [event, ...more] = await events(`/v1beta/tasks/groups/${id}/runs`)
    expect(more).toEqual([])
    expect(event?.event).toBe('task_run.state')
    expect(event?.data).toEqual({
      type: 'task_run.state',
      event_id: event?.id,
      run: {
        run_id: run_ids[0],
        interaction_id: expect.any(String),
        taskgroup_id: id,
        status: 'completed',
        is_active: false,
        processor: 'base',
        metadata: {},
        created_at: '2026-01-01T00:00:00.000Z',
        modified_at: '2026-01-01T00:00:00.000Z',
      },
    })
  })

  it('have input and output if requested, and always the error of a failure', async () => {
    const { group, post, events } = await running({ concurrency: 1 })
    const id = await group()
    const inputs = [{ input: 'one', processor: 'core', metadata: { row: 1 } }, { input: 'fail' }]
    await post(`/v1/tasks/groups/${id}/runs`, { inputs })
    const bare = await events(`/v1/tasks/groups/${id}/runs`)
    const input = await events(`/v1/tasks/groups/${id}/runs?include_input=true`)
    const both = await events(`/v1/tasks/groups/${id}/runs?include_input=true&include_output=true`)

    expect(bare.map(({ data }) => [data.input, data.output])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ])
    expect(bare[1]?.data.run?.error).toEqual({
      ref_id: expect.any(String),
      message: 'It was asked to fail',
      details: null,
    })
    expect(input.map(({ data }) => [data.input, data.output])).toEqual([
      [inputs[0], undefined],
      [{ input: 'fail', processor: 'base' }, undefined],
    ])
    expect(both[0]?.data.output).toMatchObject({ type: 'text', content: 'Answer to one' })
    expect(both[1]?.data.output).toBeUndefined()
    expect(both.map(({ id: eventId }) => eventId)).toEqual(bare.map(({ id: eventId }) => eventId))
  })

  it.each([
    ['completed', ['one', 'two']],
    ['failed', ['fail']],
    ['queued', []],
    ['cancelled', []],
  ])('can be narrowed to those that are %s', async (status, expected) => {
    const { group, add, events } = await running({ concurrency: 1 })
    const id = await group()
    await add(id, 'one', 'fail', 'two')
    const found = await events(`/v1/tasks/groups/${id}/runs?include_input=true&status=${status}`)
    expect(found.map(({ data }) => data.input?.input)).toEqual(expected)
  })

  it('filtered, resume after an event that the filter excludes', async () => {
    const { group, add, events } = await running({ concurrency: 1 })
    const id = await group()
    await add(id, 'one', 'fail', 'two')
    const all = await events(`/v1/tasks/groups/${id}/runs`)
    const path = resumed(`/v1/tasks/groups/${id}/runs`, all[1]?.id ?? 'none')
    const found = await events(`${path}&status=completed&include_input=1`)
    expect(found.map(({ data }) => data.input?.input)).toEqual(['two'])
  })
})

describe.each(['/v1', '/v1beta'])('resuming under %s', (prefix) => {
  it.each(['events', 'runs'])('%s resume after any event', async (name) => {
    const { group, add, events } = await running()
    const id = await group()
    await add(id, 'one', 'two', 'fail', 'four')
    const path = `${prefix}/tasks/groups/${id}/${name}`
    const all = await events(path)
    const rests = await Promise.all(all.map((event) => events(resumed(path, event.id))))
    expect(all.length).toBeGreaterThan(3)
    expect(rests).toEqual(all.map((_, index) => all.slice(index + 1)))
  })
})

describe('a stream is refused', () => {
  it.each([
    ['an id that was never given out', (id: string) => `${id}:runs:9`],
    ['an id of the other stream', (id: string) => `${id}:events:1`],
    ['an id of another group', () => 'tgrp_other:runs:1'],
    ['a number that is not one', (id: string) => `${id}:runs:01`],
    ['anything else', () => 'whatever'],
  ])('with 422 for %s', async (_, lastEventId) => {
    const { group, add, events, get } = await running()
    const id = await group()
    await add(id, 'one')
    await events(`/v1/tasks/groups/${id}/runs`)
    const answer = await get<ValidationErrorResponse>(resumed(`/v1/tasks/groups/${id}/runs`, lastEventId(id)))
    expect(answer.status).toBe(422)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.body).toEqual({
      detail: [{ loc: ['query', 'last_event_id'], msg: expect.any(String), type: 'value_error' }],
    })
  })

  it.each([
    ['runs?status=done', 'status'],
    ['runs?include_input=perhaps', 'include_input'],
    ['events?timeout=soon', 'timeout'],
  ])('with 422 for %s', async (rest, parameter) => {
    const { group, get } = await running()
    const answer = await get<ValidationErrorResponse>(`/v1/tasks/groups/${await group()}/${rest}`)
    expect(answer.status).toBe(422)
    expect(answer.body.detail.map(({ loc }) => loc)).toEqual([['query', parameter]])
  })
})

describe('a stream ends', () => {
  it.each(['events', 'runs'])('%s: after an hour, cleanly, while a run is active', async (name) => {
    const processor = new HeldProcessor()
    const clock = new ManualClock()
    const { group, add, stream, events } = await running({ processor, clock })
    const id = await group()
    await add(id, 'one', 'two')
    const [one, two] = [await processor.next(), await processor.next()]
    const reader = await stream(`/v1/tasks/groups/${id}/${name}`)

    clock.advance(HOUR - 1)
    one.complete()
    const before = [await reader.next()]
    // The events have a status before and after the run.
    if (name === 'events') before.push(await reader.next(), await reader.next())
    clock.advance(1)
    const after = await reader.rest()
    two.complete()
    const rest = await events(resumed(`/v1/tasks/groups/${id}/${name}`, before.at(-1)?.id ?? 'none'))

    expect(after).toEqual([])
    expect(rest.flatMap(({ data }) => data.run?.run_id ?? [])).toEqual([two.task.run_id])
  })

  it('after the configured duration', async () => {
    const clock = new ManualClock()
    const options = { processor: new HeldProcessor(), clock, streamDuration: 5_000 }
    const { group, add, stream } = await running(options)
    const id = await group()
    await add(id, 'one')
    const reader = await stream(`/v1/tasks/groups/${id}/runs`)
    clock.advance(5_000)
    expect(await reader.rest()).toEqual([])
  })

  it('after the requested timeout without events', async () => {
    const processor = new HeldProcessor()
    const clock = new ManualClock()
    const { group, add, stream } = await running({ processor, clock })
    const id = await group()
    await add(id, 'one', 'two')
    const reader = await stream(`/v1/tasks/groups/${id}/events?timeout=10`)
    const run = await processor.next()
    await reader.next()

    clock.advance(8_000)
    run.complete()
    const events = [await reader.next(), await reader.next()]
    clock.advance(8_000)
    clock.advance(2_000)

    expect(events.map((event) => event?.event)).toEqual(['task_run.state', 'task_group_status'])
    expect(await reader.rest()).toEqual([])
  })

  it('cleanly when the service closes', async () => {
    const { service, group, add, stream } = await running({ processor: new HeldProcessor() })
    const id = await group()
    await add(id, 'one')
    const reader = await stream(`/v1/tasks/groups/${id}/events`)
    await reader.next()
    await service.close()
    expect(await reader.rest()).toEqual([])
  })

  it('and leaves no task on the clock', async () => {
    const processor = new HeldProcessor()
    const clock = new ManualClock()
    const { group, add, stream } = await running({ processor, clock })
    const id = await group()
    await add(id, 'one')
    const before = clock.next
    const reader = await stream(`/v1/tasks/groups/${id}/events?timeout=10`)
    const during = clock.next
    const run = await processor.next()
    run.complete()
    await reader.rest()
    expect(during).toBe(clock.now() + 10_000)
    expect(clock.next).toBe(before)
  })
})

describe('many clients of a large group', () => {
  it('each get every event once and in order', async () => {
    const { group, post, events } = await running({ concurrency: 64 })
    const id = await group()
    const inputs = Array.from({ length: 1_000 }, (_, n) => ({ input: `question ${n}` }))
    const added = await post<AddRunsResponse>(`/v1/tasks/groups/${id}/runs`, { inputs })
    const readers = await Promise.all(
      Array.from({ length: 10 }, () => events(`/v1/tasks/groups/${id}/runs?include_output=true`)),
    )
    const [first, ...others] = readers.map((all) => all.map(({ data }) => data.run?.run_id))
    expect(new Set(first)).toEqual(new Set(added.body.run_ids))
    expect(first).toHaveLength(1_000)
    for (const other of others) expect(other).toEqual(first)
  })
})

/** A short description of an event: `status ended/all`, or the run and its status. */
function summaryOf({ data }: ServerEvent): string {
  if (data.run !== undefined) return `${data.run.status} ${data.run.run_id}`
  const { completed = 0, failed = 0 } = data.status?.task_run_status_counts ?? {}
  return `status ${completed + failed}/${data.status?.num_task_runs}`
}
