import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { asyncScheduler, VirtualTimeScheduler } from 'rxjs'
import { createClient } from 'rivulet'
import type { ResearchClient, RunInput } from 'rivulet'
import type { EventLog } from 'rivulet/log'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import type { RequestListener } from 'node:http'
import { nodeListener } from '../../../src/http/node-listener.ts'
import type { Grant } from '../../../src/gateway/grant.ts'
import type { GatewayClient } from '../../../src/gateway/gateway-options.ts'
import { GatewayRequests } from '../../../src/gateway/requests/requests.ts'
import { answer, serve } from '../../support/serve.ts'
import { authority, logOf } from '../access/scene.ts'

/** The service's key, which no page may see. */
const API_KEY = 'key-of-the-service-that-no-page-may-see'

const RESULTS = {
  results: [{ url: 'https://a.example', title: 'A', excerpts: ['text'] }],
  session_id: 'ses_1',
}
const ADDED = {
  status: {
    num_task_runs: 1,
    task_run_status_counts: {},
    is_active: true,
    status_message: null,
    modified_at: null,
  },
  run_ids: ['trun_1'],
  run_cursor: null,
  event_cursor: null,
}

const GRANT: Grant = {
  sub: 'ada',
  requests: { search: {}, addRuns: { groups: ['tgrp_1'] } },
}

interface Scene {
  readonly log: EventLog
  /** Sends a request of a page. */
  post(
    path: string,
    body: unknown,
    options?: { grant?: Grant; signal?: AbortSignal; type?: string },
  ): Promise<Response>
}

/** A gateway on a socket, in front of a service. */
async function scene(service: RequestListener | GatewayClient, scheduler = asyncScheduler): Promise<Scene> {
  const client: GatewayClient =
    typeof service === 'function'
      ? createClient({ baseUrl: await serve(service), apiKey: API_KEY, retries: 1, initialDelay: 1 })
      : service
  const log = await logOf()
  const own = await authority({ log })
  const requests = new GatewayRequests({ client, journal: own.journal, sessions: own.sessions, scheduler })
  const base = await serve(
    nodeListener((request: Request) =>
      own.protect(request, async () => {
        const access = await own.authenticate(request)
        if (access instanceof Response) return access
        return request.url.endsWith('/search')
          ? requests.search(request, access)
          : requests.addRuns(request, access)
      }),
    ),
  )
  return {
    log,
    async post(path, body, { grant = GRANT, signal, type = 'application/json' } = {}) {
      return fetch(`${base}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${await own.sign(grant)}`, 'content-type': type },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        signal: signal ?? null,
      })
    },
  }
}

function inputs(count: number): readonly RunInput[] {
  return Array.from({ length: count }, () => ({ input: 'x' }))
}

async function codeOf(response: Response): Promise<unknown> {
  return [response.status, (await response.json()).error.code]
}

describe('a search of a page', () => {
  it('is answered by the service, without omitted fields, and recorded', async () => {
    const { post, log } = await scene((_, response) => answer(response, RESULTS))
    const response = await post(
      '/live/search',
      { search_queries: ['q'] },
      { grant: { ...GRANT, omit: ['excerpts'] } },
    )

    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({
      results: [{ url: 'https://a.example', title: 'A' }],
      session_id: expect.stringMatching(/^ses_1\./),
    })
    const { entries } = await log.read(await log.positionAt('start'), { types: ['gateway.search'] })
    expect(entries).toMatchObject([
      {
        source: '/subjects/ada',
        data: { sub: 'ada', session: 'ses_1', request: { search_queries: ['q'] }, response: RESULTS },
      },
    ])
  })

  it('is recorded in bounded size, whatever the service sends', async () => {
    const huge = {
      results: Array.from({ length: 500 }, () => ({
        url: 'u'.repeat(5_000),
        excerpts: ['x'.repeat(50_000)],
      })),
    }
    const { post, log } = await scene((_, response) => answer(response, huge))
    expect((await post('/live/search', { search_queries: ['q'] })).status).toBe(200)

    const { entries, lengths } = await log.read(await log.positionAt('start'), { types: ['gateway.search'] })
    expect(entries).toMatchObject([{ data: { truncated: true } }])
    expect(lengths[0]).toBeLessThan(65_536)
  })

  it('ends at the service when its page is gone', async () => {
    const arrived = Promise.withResolvers<void>()
    const gone = Promise.withResolvers<void>()
    const { post } = await scene((request) => {
      request.socket.on('close', () => gone.resolve())
      arrived.resolve()
    })
    const page = new AbortController()
    const searching = post('/live/search', { search_queries: ['q'] }, { signal: page.signal })
    await arrived.promise
    page.abort()

    await expect(searching).rejects.toThrow(/abort/i)
    await gone.promise
  })
})

describe('requests of a page', () => {
  it.each<readonly [string, string, unknown, Grant, unknown]>([
    ['a search without a grant', 'search', { search_queries: ['q'] }, { sub: 'ada' }, [403, 'forbidden']],
    [
      'runs without a grant',
      'runs',
      { group: 'tgrp_1', inputs: [{ input: 'x' }] },
      { sub: 'ada' },
      [403, 'forbidden'],
    ],
    [
      'runs in a foreign group',
      'runs',
      { group: 'tgrp_2', inputs: [{ input: 'x' }] },
      GRANT,
      [403, 'forbidden'],
    ],
    [
      'runs in a group that is no id',
      'runs',
      { group: '../x', inputs: [{ input: 'x' }] },
      GRANT,
      [403, 'forbidden'],
    ],
    [
      'runs in a group that is no text',
      'runs',
      { group: ['tgrp_1'], inputs: [{ input: 'x' }] },
      GRANT,
      [400, 'invalid'],
    ],
    ['a search without queries', 'search', { search_queries: [] }, GRANT, [400, 'invalid']],
    [
      'a search with an unknown field',
      'search',
      { search_queries: ['q'], __proto: 1 },
      GRANT,
      [400, 'invalid'],
    ],
    ['a search that is a list', 'search', [1], GRANT, [400, 'invalid']],
    ['a search that is no JSON', 'search', '{"search_queries":', GRANT, [400, 'invalid']],
    ['a field __proto__', 'search', '{"search_queries":["q"],"__proto__":{}}', GRANT, [400, 'invalid']],
    [
      'a search of a megabyte',
      'search',
      { search_queries: ['q'.repeat(1_000_000)] },
      GRANT,
      [413, 'invalid'],
    ],
    ['no runs', 'runs', { group: 'tgrp_1', inputs: [] }, GRANT, [400, 'invalid']],
    [
      'more runs than a minute has',
      'runs',
      { group: 'tgrp_1', inputs: inputs(101) },
      GRANT,
      [400, 'invalid'],
    ],
    [
      'a webhook of its own',
      'runs',
      {
        group: 'tgrp_1',
        inputs: [{ input: 'x', webhook: { url: 'https://evil.example', event_types: [] } }],
      },
      GRANT,
      [403, 'forbidden'],
    ],
    [
      'a tool server of its own',
      'runs',
      { group: 'tgrp_1', inputs: [{ input: 'x', mcp_servers: [] }] },
      GRANT,
      [403, 'forbidden'],
    ],
    [
      'the memory of others',
      'runs',
      { group: 'tgrp_1', inputs: [{ input: 'x', memory_scope_key: 'bob' }] },
      GRANT,
      [403, 'forbidden'],
    ],
    [
      'a processor that is not granted',
      'runs',
      { group: 'tgrp_1', inputs: [{ input: 'x', processor: 'ultra' }] },
      GRANT,
      [403, 'forbidden'],
    ],
  ])('are refused before the service: %s', async (_, path, body, grant, expected) => {
    let requests = 0
    const { post } = await scene((_request, response) => {
      requests += 1
      answer(response, RESULTS)
    })

    expect(await codeOf(await post(`/live/${path}`, body, { grant }))).toEqual(expected)
    expect(requests).toBe(0)
  })

  it.each([
    [401, [503, 'unavailable']],
    [402, [503, 'unavailable']],
    [403, [503, 'unavailable']],
    [404, [404, 'invalid']],
    [422, [400, 'invalid']],
    [429, [429, 'too_many']],
    [500, [503, 'unavailable']],
    [302, [503, 'unavailable']],
  ])('that the service answers with %d have no word of it', async (status, expected) => {
    const { post } = await scene((request, response) => {
      // A service that shows in its error what it was sent.
      const words = `${request.headers['x-api-key']} ${request.headers.authorization} ${request.headers.host} ${API_KEY}`
      response.setHeader('retry-after', '0').setHeader('location', `http://${words.split(' ').at(-2)}/`)
      answer(
        response,
        { error: { ref_id: API_KEY, message: words, detail: { errors: [{ loc: ['x'], msg: words }] } } },
        status,
      )
    })
    const response = await post('/live/search', { search_queries: ['q'] })
    const text = `${await response.clone().text()} ${JSON.stringify([...response.headers])}`

    expect(await codeOf(response)).toEqual(expected)
    expect(text).not.toContain(API_KEY)
    expect(text).not.toMatch(/127\.0\.0\.1|x-api-key|stack|rivulet\//i)
  })

  it.each([null, undefined, 'text', 1, []])('whose client returns %o are refused', async (response) => {
    const client: GatewayClient = {
      search: () => Promise.resolve(response as never),
      taskGroups: { addRuns: () => Promise.resolve(response as never) },
    }
    const { post } = await scene(client)

    expect(await codeOf(await post('/live/search', { search_queries: ['q'] }))).toEqual([503, 'unavailable'])
    const runs = { group: 'tgrp_1', inputs: [{ input: 'x' }] }
    expect(await codeOf(await post('/live/runs', runs))).toEqual([502, 'uncertain'])
  })

  it('are limited by the subject, and answered with the time to wait', async () => {
    const scheduler = new VirtualTimeScheduler()
    const client: GatewayClient = {
      search: () => Promise.resolve(RESULTS),
      taskGroups: { addRuns: () => Promise.resolve(ADDED) },
    }
    const { post } = await scene(client, scheduler as typeof asyncScheduler)
    const grant: Grant = {
      sub: 'ada',
      requests: { search: { perMinute: 2 }, addRuns: { groups: ['tgrp_1'], perMinute: 3 } },
    }
    const search = () => post('/live/search', { search_queries: ['q'] }, { grant })
    const add = (count: number) => post('/live/runs', { group: 'tgrp_1', inputs: inputs(count) }, { grant })

    expect([(await search()).status, (await search()).status]).toEqual([200, 200])
    const third = await search()
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '30'])
    expect(await third.json()).toEqual({
      error: { code: 'too_many', message: 'at most 2 searches a minute', retryAfter: 30_000 },
    })
    expect(
      (await post('/live/search', { search_queries: ['q'] }, { grant: { ...grant, sub: 'bob' } })).status,
    ).toBe(200)
    expect([(await add(2)).status, (await add(2)).status, (await add(1)).status]).toEqual([200, 429, 200])

    scheduler.frame = 30_000
    expect([(await search()).status, (await search()).status]).toEqual([200, 429])
  })
})

describe('a field that a page may not send', () => {
  const inSearch = (more: object) => ({ search_queries: ['q'], ...more })
  const inInput = (more: object) => ({ group: 'tgrp_1', inputs: [{ input: 'x' }, { input: 'x', ...more }] })

  it.each<readonly [string, object, number, string]>([
    ['search', inSearch({ constructor: 1 }), 400, 'constructor'],
    ['search', inSearch({ advanced_settings: { live: true } }), 400, 'advanced_settings.live'],
    [
      'search',
      inSearch({ advanced_settings: { source_policy: { proxy: 'x' } } }),
      400,
      'advanced_settings.source_policy.proxy',
    ],
    [
      'search',
      inSearch({ advanced_settings: { fetch_policy: { url: 'x' } } }),
      400,
      'advanced_settings.fetch_policy.url',
    ],
    [
      'runs',
      inInput({ advanced_settings: { mcp_servers: [] } }),
      400,
      'inputs[1].advanced_settings.mcp_servers',
    ],
    ['runs', inInput({ advanced_settings: { webhook: {} } }), 400, 'inputs[1].advanced_settings.webhook'],
    [
      'runs',
      inInput({ task_spec: { output_schema: { type: 'auto', url: 'x' } } }),
      400,
      'inputs[1].task_spec.output_schema.url',
    ],
    [
      'runs',
      { ...inInput({}), default_task_spec: { input_schema: 'x', processor: 'ultra' } },
      400,
      'default_task_spec.processor',
    ],
    ['runs', inInput({ webhook: { url: 'https://e.example', event_types: [] } }), 403, 'inputs[1].webhook'],
    ['runs', inInput({ previous_interaction_id: 'trun_1' }), 403, 'inputs[1].previous_interaction_id'],
    ['runs', inInput({ enable_events: true }), 403, 'inputs[1].enable_events'],
    ['runs', inInput({ ['x'.repeat(5_000)]: 1 }), 400, `inputs[1].${'x'.repeat(190)}…`],
  ])('is refused with its path: of %s, %j', async (path, body, status, field) => {
    let requests = 0
    const { post } = await scene((_, response) => {
      requests += 1
      answer(response, RESULTS)
    })
    const response = await post(`/live/${path}`, body)

    expect(response.status).toBe(status)
    const { message } = (await response.json()).error
    expect(message.split(' field ')).toEqual([
      status === 400 ? 'there is no' : 'the grant does not allow the',
      field,
    ])
    expect(requests).toBe(0)
  })
})

describe('a session of searches', () => {
  /** A service that keeps the session that it is given, and answers with it. */
  async function sessions() {
    const asked: unknown[] = []
    const client: GatewayClient = {
      search: ({ session_id = 'ses_1' }) => {
        asked.push(session_id)
        return Promise.resolve({ ...RESULTS, session_id })
      },
      taskGroups: { addRuns: () => Promise.resolve(ADDED) },
    }
    const { post } = await scene(client)
    const search = async (sub: string, session_id?: string) =>
      (await post('/live/search', { search_queries: ['q'], session_id }, { grant: { ...GRANT, sub } })).json()
    return { asked, search }
  }

  it('goes on for the subject that it was given to', async () => {
    const { asked, search } = await sessions()
    const first = await search('ada')
    const second = await search('ada', first.session_id)

    expect(second.session_id).toBe(first.session_id)
    expect(asked).toEqual(['ses_1', 'ses_1'])
  })

  it('is refused to any other subject, and where it was not given', async () => {
    const { asked, search } = await sessions()
    const { session_id } = await search('ada')
    const refused = await Promise.all(
      [
        ['bob', session_id],
        ...['ses_1', 'ses_1.', `ses_2${session_id.slice(5)}`].map((id) => ['ada', id]),
      ].map(([sub, id]) => search(sub, id)),
    )

    for (const { error } of refused) {
      expect(error).toMatchObject({ code: 'forbidden', message: expect.stringContaining('session_id') })
    }
    expect(asked).toEqual(['ses_1'])
  })
})

describe('runs of a page', () => {
  it('are added once, with the answer of the service', async () => {
    const bodies: string[] = []
    const { post } = await scene((request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += chunk))
      request.on('end', () => {
        bodies.push(`${request.url} ${body}`)
        answer(response, ADDED)
      })
    })
    const grant: Grant = { sub: 'ada', requests: { addRuns: { groups: ['tgrp_1'], processors: ['lite'] } } }
    const response = await post(
      '/live/runs',
      { group: 'tgrp_1', inputs: [{ input: 'x', processor: 'lite' }] },
      { grant },
    )

    expect(await response.json()).toEqual(ADDED)
    expect(bodies).toEqual(['/v1/tasks/groups/tgrp_1/runs {"inputs":[{"input":"x","processor":"lite"}]}'])
  })

  it('are added to any group by a grant of all groups, and otherwise to those that it names', async () => {
    const { post } = await scene((_, response) => answer(response, ADDED))
    const statusOf = async (groups: readonly string[]) => {
      const grant: Grant = { sub: 'ada', requests: { addRuns: { groups } } }
      const body = { group: 'tgrp_2', inputs: [{ input: 'x' }] }
      return (await post('/live/runs', body, { grant })).status
    }

    expect(await statusOf(['*'])).toBe(200)
    expect(await statusOf(['tgrp_2'])).toBe(200)
    expect(await statusOf(['tgrp_1', 'tgrp_*'])).toBe(403)
    expect(await statusOf([])).toBe(403)
  })

  it('that the service may have taken are not sent again, and the answer says so', async () => {
    let connections = 0
    // It reads the request, and closes the connection without an answer.
    const server = createServer((socket) => {
      connections += 1
      socket.once('data', () => socket.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const client = createClient({
      baseUrl: `http://127.0.0.1:${port}`,
      apiKey: API_KEY,
      retries: 5,
      initialDelay: 1,
    })
    const { post } = await scene(client)

    const response = await post('/live/runs', { group: 'tgrp_1', inputs: [{ input: 'x' }] })
    expect(await codeOf(response)).toEqual([502, 'uncertain'])
    expect(connections).toBe(1)
  })

  it('that the service has refused are not in doubt', async () => {
    const { post } = await scene((_, response) => answer(response, { error: { message: 'no' } }, 422))

    expect(await codeOf(await post('/live/runs', { group: 'tgrp_1', inputs: [{ input: 'x' }] }))).toEqual([
      400,
      'invalid',
    ])
  })
})

it('a client of createClient is a client of a gateway', () => {
  expectTypeOf<ResearchClient>().toExtend<GatewayClient>()
})
