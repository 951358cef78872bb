import { describe, expect, it } from 'vitest'
import { ArgumentError } from '../../../src/protocol/argument-error.ts'
import type { AddRunsResponse, TaskGroup, ValidationErrorResponse } from '../../../src/protocol/index.ts'
import { MAX_BODY } from '../../../src/service/http/body.ts'
import { ManualClock } from '../../../src/service/index.ts'
import { ENRICHMENT, findAllService, LIBRARIES, manyPackages, packageFolder } from '../find-all/caller.ts'
import { HeldProcessor, running } from '../running.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe('credentials', () => {
  const refused = {
    type: 'error',
    error: { ref_id: expect.stringMatching(UUID), message: expect.stringMatching(/invalid or missing/) },
  }

  it.each([
    ['no header', {}],
    ['a wrong key', { 'x-api-key': 'key_wrong' }],
    ['an empty key', { 'x-api-key': '' }],
    ['the key with more behind it', { 'x-api-key': 'key_right-and-more' }],
    ['the key as a bearer token only', { authorization: 'Bearer key_right' }],
  ])('a request with %s is answered with 401 and an ErrorResponse', async (_, headers) => {
    const { send } = await running({ apiKey: 'key_right' })
    const answer = await send('/v1/search', { method: 'POST', headers, body: '{"search_queries":["tides"]}' })
    expect(answer.status).toBe(401)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.body).toMatchObject(refused)
  })

  it.each([
    '/v1/tasks/groups/any',
    '/v1/tasks/groups/any/events',
    '/v1beta/tasks/groups/any/runs',
    '/v1/monitors/any/events',
    '/v1/tasks/runs/any',
    '/nowhere',
  ])('GET %s without a key is a 401', async (path) => {
    const { send } = await running()
    const answer = await send(path)
    expect(answer.status).toBe(401)
    expect(answer.body).toMatchObject(refused)
  })

  it('every one of several keys is accepted', async () => {
    const { send } = await running({ apiKey: ['key_one', 'key_two'] })
    const answers = await Promise.all(
      ['key_one', 'key_two'].map((key) => send('/v1/monitors', { headers: { 'x-api-key': key } })),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
  })

  it('a bearer token besides the key is ignored', async () => {
    const { get } = await running()
    const answer = await get('/v1/monitors', { authorization: 'Bearer whatever' })
    expect(answer.status).toBe(200)
  })
})

describe('requests without a route', () => {
  it('an unknown path is a 404 with an ErrorResponse', async () => {
    const { get } = await running()
    const answer = await get('/v1/nothing')
    expect(answer.status).toBe(404)
    expect(answer.body).toEqual({
      type: 'error',
      error: {
        ref_id: expect.stringMatching(UUID),
        message: 'There is nothing at /v1/nothing',
        detail: null,
      },
    })
  })

  it('a known path with another method is a 405 that names the right one', async () => {
    const { get } = await running()
    const answer = await get('/v1/search')
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('POST')
    expect(answer.body.type).toBe('error')
  })

  it('a path with two methods names both', async () => {
    const { service, send } = await running()
    const answer = await send('/v1/monitors', { method: 'DELETE', headers: { 'x-api-key': service.apiKey } })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')?.split(', ').toSorted()).toEqual(['GET', 'POST'])
  })

  it('HEAD does not start a stream', async () => {
    const { service, send, group } = await running()
    const headers = { 'x-api-key': service.apiKey }
    const answer = await send(`/v1/tasks/groups/${await group()}/events`, { method: 'HEAD', headers })
    expect(answer.status).toBe(405)
  })
})

describe('bodies', () => {
  it.each([
    ['broken JSON', '{"search_queries": ['],
    ['no JSON at all', 'tides'],
    ['several values', '{} {}'],
  ])('%s is a 422 in the style of its area', async (_, body) => {
    const { post, group } = await running()
    const search = await post('/v1/search', body)
    const runs = await post<ValidationErrorResponse>(`/v1/tasks/groups/${await group()}/runs`, body)
    expect(search.status).toBe(422)
    expect(search.body).toMatchObject({
      type: 'error',
      error: { ref_id: expect.stringMatching(UUID), message: expect.stringMatching(/Invalid JSON/) },
    })
    expect(runs.status).toBe(422)
    expect(runs.body).toEqual({
      detail: [{ loc: ['body'], msg: expect.stringMatching(/^Invalid JSON/), type: 'json_invalid' }],
    })
  })

  it('bytes that are not UTF-8 are refused rather than replaced', async () => {
    const { service, send } = await running()
    const body = new Uint8Array([...new TextEncoder().encode('{"search_queries":["'), 0xff, 0x22, 0x5d, 0x7d])
    const answer = await send('/v1/search', {
      method: 'POST',
      headers: { 'x-api-key': service.apiKey },
      body,
    })
    expect(answer.status).toBe(422)
    expect(answer.body.error.message).toMatch(/not UTF-8/)
  })

  it.each([
    ['arrays', `${'['.repeat(60_000)}${']'.repeat(60_000)}`],
    ['objects', `${'{"a":'.repeat(60_000)}1${'}'.repeat(60_000)}`],
  ])('%s that are nested too deep are a 422', async (_, deep) => {
    const { post, group } = await running()
    const body = `{"inputs":[{"input":{"deep":${deep}}}]}`
    const answer = await post<ValidationErrorResponse>(`/v1/tasks/groups/${await group()}/runs`, body)
    expect(answer.status).toBe(422)
    expect(answer.body).toEqual({
      detail: [{ loc: ['body'], msg: 'Expected at most 256 levels of nesting', type: 'value_error' }],
    })
  })

  it('a key that is too long is reported with the reason', async () => {
    const { post } = await running()
    const answer = await post('/v1/monitors', {
      type: 'event_stream',
      frequency: '1h',
      settings: { query: 'tides' },
      metadata: { ['k'.repeat(17)]: '' },
    })
    expect(answer.status).toBe(422)
    expect(answer.body.error.message).toMatch(/metadata\.k{17}: Expected a key of at most 16 characters/)
  })

  it('the maximum number of runs of the maximum length is accepted', async () => {
    const { post, group } = await running({ processor: new HeldProcessor() })
    const inputs = Array.from({ length: 1_000 }, () => ({ input: 'é'.repeat(24_990) }))
    const answer = await post<AddRunsResponse>(`/v1/tasks/groups/${await group()}/runs`, { inputs })
    expect(answer.status).toBe(200)
    expect(answer.body.run_ids).toHaveLength(1_000)
  })

  it('a missing body is reported as missing', async () => {
    const { post, group } = await running()
    const answer = await post(`/v1/tasks/groups/${await group()}/runs`)
    expect(answer.status).toBe(422)
    expect(answer.body).toEqual({ detail: [{ loc: ['body'], msg: 'Field required', type: 'missing' }] })
  })

  it('a body with a content-length above the limit is a 413', async () => {
    const { post } = await running()
    const answer = await post('/v1/search', ' '.repeat(MAX_BODY + 1))
    expect(answer.status).toBe(413)
    expect(answer.body).toMatchObject({
      type: 'error',
      error: { message: expect.stringMatching(/longer than/) },
    })
  })

  it('a body without a content-length is counted while it is read', async () => {
    const { service, send } = await running()
    const chunk = new Uint8Array(64 * 1024).fill(0x20)
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(chunk)
        sent += chunk.length
        if (sent > MAX_BODY) controller.close()
      },
    })
    const init = { method: 'POST', headers: { 'x-api-key': service.apiKey }, body, duplex: 'half' } as const
    const answer = await send('/v1/search', init)
    expect(answer.status).toBe(413)
  })

  it('a short body without a content-length is read normally', async () => {
    const { service, send } = await running()
    const body = new Blob(['{"search_queries":["tides"]}']).stream()
    const init = { method: 'POST', headers: { 'x-api-key': service.apiKey }, body, duplex: 'half' } as const
    const answer = await send('/v1/search', init)
    expect(answer.status).toBe(200)
  })
})

describe('internal errors', () => {
  it('are a 500 with a ref_id and no details, and are passed to onError', async () => {
    const heard: [unknown, string | undefined][] = []
    const { service, post } = await running({ onError: (error, ref_id) => heard.push([error, ref_id]) })
    const broken = new Error('secret of the inside')
    service.corpus.search = () => {
      throw broken
    }
    const answer = await post('/v1/search', { search_queries: ['tides'] })
    expect(answer.status).toBe(500)
    expect(JSON.stringify(answer.body)).not.toContain('secret')
    expect(answer.body.error.ref_id).toMatch(UUID)
    expect(heard).toEqual([[broken, answer.body.error.ref_id]])
  })
})

describe('quotas', () => {
  it('the 601st search of a minute is a 429 with Retry-After, and the next minute starts at zero', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1, 12, 0, 15))
    const { post } = await running({ clock })
    const search = () => post('/v1/search', { search_queries: ['tides'] })
    await Promise.all(Array.from({ length: 599 }, search))
    await post('/v1beta/search', { search_queries: ['tides'] })

    const refused = await search()
    clock.advance(45_000)
    const free = await search()

    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('45')
    expect(refused.body.type).toBe('error')
    expect(free.status).toBe(200)
  })

  it('counts extractions apart from searches', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1, 12, 0, 15))
    const { post } = await running({ clock })
    const extract = () => post('/v1/extract', { urls: ['https://sea.example.edu/tides.md'] })
    const accepted = await Promise.all(Array.from({ length: 600 }, extract))

    expect(accepted.filter(({ status }) => status !== 200)).toEqual([])
    expect((await extract()).status).toBe(429)
    expect((await post('/v1/search', { search_queries: ['tides'] })).status).toBe(200)
  })

  it('can be disabled', async () => {
    const { post } = await running({ quotas: false })
    const answers = await Promise.all(
      Array.from({ length: 620 }, () => post('/v1/search', { search_queries: ['tides'] })),
    )
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  })

  it.each([
    ['a number', 5],
    ['an unknown quota', { searches: { requests: 1, window: 1_000 } }],
    ['a limit of no requests', { search: { requests: 0, window: 1_000 } }],
    ['a limit without a window', { search: { requests: 1 } }],
  ])('are checked at the start: %s', async (_, quotas) => {
    const options: object = { quotas }
    await expect(running(options)).rejects.toThrow(ArgumentError)
  })

  it('of one name can be replaced, and the others keep the known limits', async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1))
    const { post } = await running({ clock, quotas: { search: { requests: 1, window: 2_500 } } })
    const search = () => post('/v1/search', { search_queries: ['tides'] })
    const accepted = await search()
    const refused = await search()
    const group = await post('/v1/tasks/runs', { input: 'x', processor: 'base' })
    clock.advance(2_500)
    const later = await search()

    expect([accepted.status, refused.status, group.status, later.status]).toEqual([200, 429, 202, 200])
    expect(refused.headers.get('retry-after')).toBe('3')
  })

  it('count the requests of each key', async () => {
    const quotas = { search: { requests: 1, window: 60_000 } }
    const { send } = await running({ apiKey: ['key_one', 'key_two'], quotas })
    const search = async (key: string) => {
      const init = { method: 'POST', headers: { 'x-api-key': key }, body: '{"search_queries":["tides"]}' }
      return (await send('/v1/search', init)).status
    }

    expect([await search('key_one'), await search('key_one'), await search('key_two')]).toEqual([
      200, 429, 200,
    ])
  })

  it('count GETs and requests that create nothing not at all', async () => {
    const limit = { requests: 1, window: 60_000 }
    const { get, post } = await running({ quotas: { monitors: limit, runs: limit } })
    const answers = await Promise.all([
      ...Array.from({ length: 5 }, () => get('/v1/monitors')),
      ...Array.from({ length: 5 }, () => post('/v1/tasks/groups', {})),
    ])

    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  })
})

describe('credit', () => {
  const create = { input: 'x', processor: 'base' }

  it('is reserved by active runs, alone and in groups: more of them are a 402 with Retry-After', async () => {
    const processor = new HeldProcessor()
    const { post, group, add } = await running({ processor, credit: 2, concurrency: 1 })
    const id = await group()
    await add(id, 'one')
    const second = await post('/v1/tasks/runs', create)

    const refused = await post('/v1/tasks/runs', create)
    const inGroup = await post(`/v1/tasks/groups/${id}/runs`, { inputs: [{ input: 'two' }] })

    expect([second.status, refused.status, inGroup.status]).toEqual([202, 402, 402])
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.body).toMatchObject({
      type: 'error',
      error: { detail: { credit: 2, reserved: 2, needed: 1 } },
    })
  })

  it('is reserved by FindAll runs too, and by those that are extended or enriched', async () => {
    const processor = new HeldProcessor()
    const docs = [{ folder: await packageFolder(manyPackages(20)), site: 'https://docs.example' }]
    const service = await findAllService({ docs, processor, credit: 1 })
    const { post } = service.caller
    const id = await service.create()
    await service.events(id)
    await post('/v1/tasks/runs', create)
    const held = await processor.next()
    const answers = [
      await service.post('/runs', LIBRARIES),
      await service.post(`/runs/${id}/extend`, { additional_match_limit: 1 }),
      await service.post(`/runs/${id}/enrich`, ENRICHMENT),
    ]
    held.complete()

    expect(answers.map(({ status }) => status)).toEqual([402, 402, 402])
    expect(answers[0]?.headers.get('retry-after')).toBe('1')
    expect(answers[0]?.body.error.detail).toEqual({ credit: 1, reserved: 1, needed: 1 })
  })

  it('is needed by task runs beside an active FindAll run, and not by chats', async () => {
    const processor = new HeldProcessor()
    const service = await findAllService({ processor, credit: 1 })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    await processor.next()
    const { post } = service.caller
    const refused = await post('/v1/tasks/runs', create)
    const chat = post('/v1beta/chat/completions', {
      model: 'lite',
      messages: [{ role: 'user', content: 'x' }],
    })
    const asked = await processor.next()
    asked.complete()

    expect([refused.status, (await chat).status]).toEqual([402, 200])
  })

  it('is free again when a run ends', async () => {
    const processor = new HeldProcessor()
    const { post, get } = await running({ processor, credit: 1 })
    const { body } = await post<{ run_id: string }>('/v1/tasks/runs', create)
    const held = await processor.next()
    const refused = await post('/v1/tasks/runs', create)
    held.complete()
    await get(`/v1/tasks/runs/${body.run_id}/result`)
    const accepted = await post('/v1/tasks/runs', create)

    expect([refused.status, accepted.status]).toEqual([402, 202])
  })

  it('refuses a request that needs more than all of it, and adds none of its runs', async () => {
    const { post, get, group } = await running({ credit: 2 })
    const id = await group()
    const inputs = ['one', 'two', 'three'].map((input) => ({ input }))
    const answer = await post(`/v1/tasks/groups/${id}/runs`, { inputs })
    const { body } = await get<TaskGroup>(`/v1/tasks/groups/${id}`)

    expect([answer.status, body.status.num_task_runs]).toEqual([402, 0])
  })
})
