import { gunzipSync } from 'node:zlib'
import type { AddRunsResponse, TaskGroup, ValidationErrorResponse } from 'rivulet'
import type { Fault } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { running } from '../running.ts'
import { wire } from '../wire.ts'

describe('the fault status', () => {
  it('sends Retry-After as a date, relative to the Date of the response', async () => {
    const { get } = await running({
      faults: [{ kind: 'status', status: 429, retryAfter: 90, retryAfterForm: 'date' }],
    })

    const { headers } = await get('/v1/monitors')

    const retryAfter = headers.get('retry-after') ?? ''
    expect(retryAfter).toMatch(/^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/)
    const wait = Date.parse(retryAfter) - Date.parse(headers.get('date') ?? '')
    expect(wait).toBeGreaterThanOrEqual(89_000)
    expect(wait).toBeLessThanOrEqual(91_000)
  })

  it.each([408, 429, 500, 502, 503, 504])('answers %i with an ErrorResponse', async (status) => {
    const { get } = await running({ faults: [{ kind: 'status', status, times: 1 }] })
    const answer = await get('/v1/monitors')
    expect(answer.status).toBe(status)
    expect(answer.body).toMatchObject({ type: 'error', error: { ref_id: expect.any(String) } })
  })
})

describe('the fault wrong-type', () => {
  it('responds with a page, and the request does not take effect', async () => {
    const caller = await running()
    const id = await caller.group()
    caller.service.faults.add({ kind: 'wrong-type', times: 1 })

    const page = await wire(caller, `/v1/tasks/groups/${id}/runs`, 'POST', '{"inputs": [{"input": "one"}]}')

    expect([page.status, page.header('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
    expect(page.body.toString()).toMatch(/^<!doctype html>/)
    const { body } = await caller.get<TaskGroup>(`/v1/tasks/groups/${id}`)
    expect(body.status.num_task_runs).toBe(0)
  })

  it('replaces a stream too', async () => {
    const caller = await running()
    const id = await caller.group()
    caller.service.faults.add({ kind: 'wrong-type', times: 1 })

    const page = await wire(caller, `/v1/tasks/groups/${id}/events`)

    expect([page.status, page.header('content-type')]).toEqual([200, 'text/html; charset=UTF-8'])
  })
})

describe('the fault malformed', () => {
  it('truncates the JSON of a response, which ends cleanly', async () => {
    const caller = await running()
    const whole = await wire(caller, '/v1/monitors')
    caller.service.faults.add({ kind: 'malformed', times: 1 })

    const half = await wire(caller, '/v1/monitors')

    const text = whole.body.toString()
    expect(JSON.parse(text)).toEqual({ monitors: [] })
    expect(half.status).toBe(200)
    expect(half.header('content-type')).toBe('application/json')
    expect(half.body.toString()).toBe(text.slice(0, Math.ceil(text.length / 2)))
    expect(half.header('content-length')).toBe(String(half.body.length))
  })
})

describe('the fault truncated', () => {
  it('cuts a response short of its content-length', async () => {
    const caller = await running()
    const whole = await wire(caller, '/v1/monitors')
    caller.service.faults.add({ kind: 'truncated', times: 1 })

    const half = await wire(caller, '/v1/monitors')

    expect(half.status).toBe(200)
    expect(half.header('content-length')).toBe(String(whole.body.length))
    expect(half.body.toString()).toBe(whole.body.toString().slice(0, Math.ceil(whole.body.length / 2)))
  })

  it('does not undo the effect of the request', async () => {
    const { service, group, get, post } = await running()
    const id = await group()
    service.faults.add({ kind: 'truncated', times: 1 })

    const adding = post<AddRunsResponse>(`/v1/tasks/groups/${id}/runs`, { inputs: [{ input: 'one' }] })

    await expect(adding).rejects.toThrow('terminated')
    const { body } = await get<TaskGroup>(`/v1/tasks/groups/${id}`)
    expect(body.status.num_task_runs).toBe(1)
  })
})

describe('the fault gzip', () => {
  it('compresses a response without being requested to', async () => {
    const caller = await running()
    const plain = await wire(caller, '/v1/monitors')
    caller.service.faults.add({ kind: 'gzip', times: 1 })

    const zipped = await wire(caller, '/v1/monitors')

    expect(zipped.header('content-encoding')).toBe('gzip')
    expect(zipped.header('content-type')).toBe('application/json')
    expect(gunzipSync(zipped.body)).toEqual(plain.body)
  })
})

describe('the faults of responses', () => {
  const search = '{"search_queries": ["Spring tides"]}'

  it('strike responses of a search too', async () => {
    const caller = await running()
    const ask = async (...faults: Fault[]) => {
      for (const fault of faults) caller.service.faults.add(fault)
      return await wire(caller, '/v1/search', 'POST', search)
    }
    const whole = await ask()
    const half = await ask({ kind: 'malformed', times: 1 })
    const cut = await ask({ kind: 'truncated', times: 1 })
    const zipped = await ask({ kind: 'gzip', times: 1 })
    const again = await ask()

    const { length } = whole.body
    // The ids differ each time, but have equal lengths.
    expect([half, cut, again].map(({ body }) => body.length)).toEqual([
      Math.ceil(length / 2),
      Math.ceil(length / 2),
      length,
    ])
    expect([half, cut].map((answer) => answer.header('content-length'))).toEqual([
      String(half.body.length),
      String(length),
    ])
    expect(zipped.header('content-encoding')).toBe('gzip')
    expect(JSON.parse(gunzipSync(zipped.body).toString()).results).toEqual(
      JSON.parse(whole.body.toString()).results,
    )
  })
})

describe('the fault invalid-cursor', () => {
  it('refuses the cursor of a list with an ErrorResponse, and no request without one', async () => {
    const { get } = await running({ faults: [{ kind: 'invalid-cursor', times: 1 }] })

    const first = await get('/v1/monitors')
    const next = await get('/v1/monitors?cursor=abc')

    expect(first.status).toBe(200)
    expect(next.status).toBe(422)
    expect(next.body).toMatchObject({ type: 'error', error: { message: expect.stringContaining('cursor') } })
  })

  it('refuses a last_event_id with a list of details, and accepts it when the fault is over', async () => {
    const { service, group, add, events, get, stream } = await running()
    const id = await group()
    await add(id, 'one')
    const [event] = await events(`/v1/tasks/groups/${id}/runs`)
    const path = `/v1/tasks/groups/${id}/runs?last_event_id=${encodeURIComponent(event?.id ?? '')}`
    service.faults.add({ kind: 'invalid-cursor', times: 1 })

    const refused = await get<ValidationErrorResponse>(path)
    const taken = await stream(path)

    expect(refused.status).toBe(422)
    expect(refused.body.detail[0]?.loc).toEqual(['query', 'last_event_id'])
    expect(taken.status).toBe(200)
  })

  it('comes after authentication', async () => {
    const { service, get } = await running({ faults: [{ kind: 'invalid-cursor' }] })
    const answer = await get('/v1/monitors?cursor=abc', { 'x-api-key': 'wrong' })
    expect(answer.status).toBe(401)
    expect(service.faults.struck).toEqual({})
  })
})

describe('several faults of one request', () => {
  it('are the status alone, which is sent instead of the response', async () => {
    const caller = await running({ faults: [{ kind: 'gzip' }, { kind: 'status', status: 503 }] })

    const response = await wire(caller, '/v1/monitors')

    expect(response.status).toBe(503)
    expect(caller.service.faults.struck).toEqual({ status: 1 })
  })

  it('are the invalid cursor alone, whose error is not compressed', async () => {
    const caller = await running({ faults: [{ kind: 'gzip' }, { kind: 'invalid-cursor' }] })

    const response = await wire(caller, '/v1/monitors?cursor=abc')

    expect(response.status).toBe(422)
    expect(caller.service.faults.struck).toEqual({ 'invalid-cursor': 1 })
  })

  it('are the one that was added first, of those that change a JSON response', async () => {
    const caller = await running({ faults: [{ kind: 'gzip' }, { kind: 'malformed' }] })

    const response = await wire(caller, '/v1/monitors')

    expect(response.status).toBe(200)
    expect(caller.service.faults.struck).toEqual({ gzip: 1 })
  })

  it('can be a deleted group and gzip, which compresses its 404', async () => {
    const caller = await running()
    const id = await caller.group()
    for (const fault of [{ kind: 'deleted-group', group: id }, { kind: 'gzip' }] as const)
      caller.service.faults.add(fault)

    const response = await wire(caller, `/v1/tasks/groups/${id}/runs`)

    expect([response.status, response.header('content-encoding')]).toEqual([404, 'gzip'])
  })

  it('can be gzip, a malformed event and a cut after it, on one stream', async () => {
    const caller = await running()
    const id = await caller.group()
    await caller.add(id, 'one')
    await caller.events(`/v1/tasks/groups/${id}/runs`)
    for (const fault of [{ kind: 'gzip' }, { kind: 'malformed' }, { kind: 'cut', after: 1 }] as const)
      caller.service.faults.add(fault)

    await expect(caller.events(`/v1/tasks/groups/${id}/runs`)).rejects.toThrow('terminated')

    expect(caller.service.faults.struck).toEqual({ gzip: 1, malformed: 1, cut: 1 })
  })
})

describe('faults of responses', () => {
  it.each<Fault>([
    { kind: 'malformed', path: '/v1/search' },
    { kind: 'truncated', path: '/v1/search' },
    { kind: 'gzip', path: '/v1/search' },
    { kind: 'wrong-type', path: '/v1/search' },
    { kind: 'invalid-cursor', path: '/v1/search' },
  ])('strike only paths with their prefix: %j', async (fault) => {
    const { service, get } = await running({ faults: [fault] })
    const { headers, body } = await get('/v1/monitors')
    expect(headers.get('content-encoding')).toBeNull()
    expect(body).toEqual({ monitors: [] })
    expect(service.faults.struck).toEqual({})
  })
})
