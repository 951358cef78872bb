import { describe, expect, it } from 'vitest'
import type { TaskGroup } from '../../../src/protocol/index.ts'
import { ArgumentError } from '../../../src/protocol/index.ts'
import { Faults, type Fault } from '../../../src/service/faults/faults.ts'
import { HeldProcessor, running } from '../running.ts'

describe('the fault cut', () => {
  it.each([0, 1, 2, 5, 6, 7])('cuts a stream right after %i events', async (after) => {
    const { service, group, add, stream, events } = await running()
    const id = await group()
    await add(id, 'one', 'two', 'three')
    const all = await events(`/v1/tasks/groups/${id}/events`)
    service.faults.add({ kind: 'cut', after, times: 1 })

    const reader = await stream(`/v1/tasks/groups/${id}/events`)
    const got = await reader.untilBroken()
    const whole = await events(`/v1/tasks/groups/${id}/events`)

    expect(got).toEqual(all.slice(0, after))
    expect(whole).toEqual(all)
  })

  it('cuts each connection, so that a client that resumes gets everything once', async () => {
    const { service, group, add, stream, events } = await running()
    const id = await group()
    await add(id, 'one', 'two', 'three', 'four')
    const all = await events(`/v1/tasks/groups/${id}/runs`)
    service.faults.add({ kind: 'cut', after: 1, times: 4 })

    const got: typeof all = []
    for (let connection = 0; connection < 4; connection++) {
      const from = encodeURIComponent(got.at(-1)?.id ?? '')
      const reader = await stream(`/v1/tasks/groups/${id}/runs?last_event_id=${from}`)
      got.push(...(await reader.untilBroken()))
    }

    expect(got).toEqual(all)
  })

  it('cuts an idle stream', async () => {
    const processor = new HeldProcessor()
    const { service, group, add, stream } = await running({ processor })
    service.faults.add({ kind: 'cut', after: 2, times: 1 })
    const id = await group()
    await add(id, 'one', 'two')
    const reader = await stream(`/v1/tasks/groups/${id}/events`)
    await reader.next()
    const run = await processor.next()
    run.complete()
    const got = await reader.untilBroken()
    expect(got.map(({ event }) => event)).toEqual(['task_run.state'])
  })
})

describe('the fault status', () => {
  it('applies to the given number of requests, and then no longer', async () => {
    const faults: Fault[] = [{ kind: 'status', status: 503, retryAfter: 7, times: 2 }]
    const { get } = await running({ faults })
    const answers = [await get('/v1/monitors'), await get('/v1/monitors'), await get('/v1/monitors')]
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 200])
    expect(answers.map(({ headers }) => headers.get('retry-after'))).toEqual(['7', '7', null])
    expect(answers[0]?.body).toMatchObject({ type: 'error', error: { ref_id: expect.any(String) } })
  })

  it('applies only to its path', async () => {
    const faults: Fault[] = [{ kind: 'status', status: 429, path: '/v1/tasks' }]
    const { get, post } = await running({ faults })
    const search = await post('/v1/search', { search_queries: ['tides'] })
    const group = await get('/v1/tasks/groups/any')
    expect([search.status, group.status]).toEqual([200, 429])
  })

  it('keeps a request from taking effect', async () => {
    const { service, group, get, post } = await running()
    const id = await group()
    service.faults.add({ kind: 'status', status: 500, times: 1 })
    await post(`/v1/tasks/groups/${id}/runs`, { inputs: [{ input: 'one' }] })
    const after = await get<TaskGroup>(`/v1/tasks/groups/${id}`)
    expect(after.body.status.num_task_runs).toBe(0)
  })

  it('ends when all faults are cleared', async () => {
    const { service, get } = await running({ faults: [{ kind: 'status', status: 502 }] })
    const before = await get('/v1/monitors')
    service.faults.clear()
    const after = await get('/v1/monitors')
    expect([before.status, after.status]).toEqual([502, 200])
  })
})

describe('faults', () => {
  it('are taken in the order in which they were added, each the given number of times', () => {
    const faults = new Faults()
    faults.add({ kind: 'cut', after: 1, times: 2 })
    faults.add({ kind: 'repeat', times: 1 })
    faults.add({ kind: 'cut', after: 2 })
    const taken = Array.from({ length: 4 }, () => faults.take('cut')?.after)
    expect(taken).toEqual([1, 1, 2, 2])
  })

  it('count how often each kind has struck, even after they are disarmed', () => {
    const faults = new Faults()
    faults.add({ kind: 'cut', after: 1, times: 2 })
    faults.add({ kind: 'repeat' })
    faults.take('cut')
    faults.take('cut')
    faults.take('cut')
    faults.take('lose')
    faults.clear()
    expect(faults.struck).toEqual({ cut: 2 })
  })

  it('list what is armed, with the remaining times', () => {
    const faults = new Faults()
    faults.add({ kind: 'cut', after: 1, times: 3 })
    faults.add({ kind: 'repeat' })
    faults.add({ kind: 'lose', times: 1 })
    faults.take('cut')
    faults.take('repeat')
    faults.take('lose')
    expect(faults.armed).toEqual([{ kind: 'cut', after: 1, times: 2 }, { kind: 'repeat' }])
  })

  it('are found without striking', () => {
    const faults = new Faults()
    faults.add({ kind: 'gzip', times: 1 })
    const found = [faults.find('gzip'), faults.find(['lose', 'gzip']), faults.find('lose')]
    expect(found.map((fault) => fault?.kind)).toEqual(['gzip', 'gzip', undefined])
    expect(faults.take('gzip')).toBeDefined()
  })

  it('notify listeners when they are armed and disarmed', () => {
    const faults = new Faults()
    let changes = 0
    const stop = faults.onChange(() => (changes += 1))
    faults.add({ kind: 'stall' })
    faults.clear()
    stop()
    faults.add({ kind: 'stall' })
    expect(changes).toBe(2)
  })

  it.each<Fault>([
    { kind: 'cut', after: -1 },
    { kind: 'cut', after: 1, times: 0 },
    JSON.parse('{"kind": "cut", "at": "once"}'),
    { kind: 'stall', after: 0.5 },
    { kind: 'slow', bytes: 0 },
    { kind: 'repeat-events', count: 0 },
    JSON.parse('{"kind": "repeat-events", "after": 1}'),
    { kind: 'slow', interval: -1 },
    { kind: 'status', status: 200 },
    JSON.parse('{"kind": "status"}'),
    { kind: 'status', status: 503, retryAfter: 0.5 },
    { kind: 'status', status: 503, path: '' },
    JSON.parse('{"kind": "status", "status": 503, "retryAfterForm": "week"}'),
    { kind: 'deleted-group', group: '' },
    JSON.parse('{"kind": "delay"}'),
    { kind: 'delay', by: -1 },
    JSON.parse('{"kind": "repeat", "path": "/v1"}'),
    JSON.parse('{"kind": "explode"}'),
  ])('that cannot be produced are refused: %j', (fault) => {
    expect(() => new Faults().add(fault)).toThrow(ArgumentError)
  })
})
