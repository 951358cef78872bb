import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient } from '../../src/client.ts'
import type { Diagnostic } from '../../src/sources/context.ts'
import { RateLimitError } from '../../src/transport/errors.ts'
import type { QuotaSettings } from '../../src/transport/quota-limiter.ts'
import { createTransport } from '../../src/transport/transport.ts'
import type { ApiRequest, RetryInfo, TransportSettings } from '../../src/transport/transport.ts'
import { json, serve } from './server.ts'
import { Listener } from './stream-listener.ts'
import { ImpatientScheduler } from '../support/impatient-scheduler.ts'

const search: ApiRequest = { method: 'POST', path: '/a', body: {}, quota: 'search', idempotent: true }
const small = { search: { requests: 1, window: 60_000 } }

/** A transport to a server that answers with these statuses, then with 200. `started` has the paths and times of the starts. */
async function setUp(
  settings: Partial<TransportSettings>,
  statuses: readonly number[] = [],
  retryAfter = '90',
) {
  const scheduler = new VirtualTimeScheduler()
  const clock = settings.scheduler ?? scheduler
  const left = [...statuses]
  const { origin } = await serve((request, response) => {
    const status = left.shift() ?? 200
    if (request.headers.accept === 'text/event-stream')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: a\n\n')
    else json(response, status, {}, status === 200 ? {} : { 'retry-after': retryAfter })
  })
  const transport = createTransport({ baseUrl: origin, apiKey: 'k', scheduler, ...settings })
  const started: string[] = []
  transport.observers.add({
    request({ path }) {
      started.push(`${path}@${clock.now()}`)
      return undefined
    },
  })
  return { transport, scheduler, started }
}

describe('requests with a quota', () => {
  it('wait for their turn in place of a 429', async () => {
    const { transport, started } = await setUp({ quotas: small, scheduler: new ImpatientScheduler() })

    await Promise.all(['/a', '/b', '/c'].map((path) => transport.request({ ...search, path })))

    expect(started).toEqual(['/a@0', '/b@60000', '/c@120000'])
  })

  it('do not wait for those of another quota, nor make requests without one wait', async () => {
    const { transport, started } = await setUp({ quotas: small })

    await transport.request(search)
    await transport.request({ ...search, quota: 'extract' })
    await transport.request({ ...search, quota: undefined })

    expect(started).toEqual(['/a@0', '/a@0', '/a@0'])
  })

  it('never wait when quotas is false', async () => {
    const { transport, started } = await setUp({ quotas: false })

    await Promise.all([1, 2].map(() => transport.request(search)))

    expect(started).toEqual(['/a@0', '/a@0'])
  })

  it('free their place when they are aborted while they wait', async () => {
    const { transport, started, scheduler } = await setUp({ quotas: small })
    await transport.request(search)
    const controller = new AbortController()
    const reason = new Error('no longer needed')
    const second = transport.request({ ...search, path: '/b' }, controller.signal)
    const third = transport.request({ ...search, path: '/c' })

    controller.abort(reason)
    await expect(second).rejects.toBe(reason)
    scheduler.flush()
    await third

    expect(started).toEqual(['/a@0', '/c@60000'])
  })

  it('count each attempt, and a retry after a 429 comes before those that wait', async () => {
    const refused = Promise.withResolvers<number>()
    const onRetry = ({ delay }: RetryInfo) => refused.resolve(delay)
    const { transport, started, scheduler } = await setUp({ quotas: small, onRetry }, [429])

    const answers = ['/a', '/b'].map((path) => transport.request({ ...search, path }))
    expect(await refused.promise).toBe(90_000)
    await new Promise((resolve) => setImmediate(resolve))
    scheduler.flush()
    await Promise.all(answers)

    expect(started).toEqual(['/a@0', '/a@90000', '/b@150000'])
  })

  it('pause for a 429 that is not retried too', async () => {
    const settings = { quotas: { search: { requests: 5, window: 10 } }, retries: 0 }
    const { transport, started } = await setUp({ ...settings, scheduler: new ImpatientScheduler() }, [429])

    await expect(transport.request(search)).rejects.toThrow(RateLimitError)
    await transport.request(search)

    expect(started).toEqual(['/a@0', '/a@90000'])
  })

  it('back off together from refusals in a row, until one of them is accepted', async () => {
    const settings = {
      scheduler: new ImpatientScheduler(),
      retries: 1,
      backoff: { initialDelay: 100, maxDelay: 1_000 },
      random: () => 1,
    }
    const statuses = [429, 429, 429, 429, 429, 200, 429]
    const { transport, started } = await setUp(settings, statuses, '0')

    for (const path of ['/a', '/b', '/c', '/d']) await transport.request({ ...search, path }).catch(() => {})

    // Delays of 100, 200, 400, 800 and 1,000, although each request has two attempts; then 100 again.
    const [c, d] = ['/c@1500', '/c@2500']
    expect(started).toEqual(['/a@0', '/a@100', '/b@300', '/b@700', c, d, '/d@62500', '/d@62600'])
  })

  it('count the answers that are streamed', async () => {
    const { transport, started, scheduler } = await setUp({ quotas: small })
    const sinks = [new Listener(), new Listener()]

    for (const sink of sinks) transport.answer(search, sink)
    scheduler.flush()
    for (const sink of sinks) await sink.ended

    expect(started).toEqual(['/a@0', '/a@60000'])
    expect(sinks.map(({ calls }) => calls)).toEqual([
      ['open', 'a', 'end'],
      ['open', 'a', 'end'],
    ])
  })

  it('send nothing for a streamed answer that is aborted while it waits', async () => {
    const { transport, started, scheduler } = await setUp({ quotas: small })
    const sink = new Listener()
    transport.answer(search, sink)

    transport.answer(search, new Listener()).abort()
    scheduler.flush()
    await sink.ended

    expect(started).toEqual(['/a@0'])
  })

  it('are reported once when they begin to wait', async () => {
    const { origin } = await serve((_request, response) => json(response, 200, { results: [] }))
    const client = createClient({
      baseUrl: origin,
      apiKey: 'k',
      scheduler: new ImpatientScheduler(),
      quotas: small,
    })
    const diagnostics: Diagnostic[] = []
    client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))

    await Promise.all([1, 2, 3].map(async () => await client.search({ search_queries: ['a'] })))

    expect(diagnostics).toEqual([{ kind: 'quota', quota: 'search', delay: 60_000 }])
  })
})

it.each<[unknown, string]>([
  [true, 'quotas must be an object'],
  [null, 'quotas must be an object'],
  [{ searches: { requests: 1, window: 1 } }, 'did you mean search?'],
  [{ search: 5 }, 'quotas.search must be an object'],
  [{ search: { requests: 0, window: 1 } }, 'quotas.search.requests must be an integer of at least 1'],
  [{ search: { requests: 1 } }, 'quotas.search.window must be an integer from 1 to 3600000'],
  [{ search: { requests: 1, window: Infinity } }, 'quotas.search.window must be'],
])('refuses the setting %j', (quotas, message) => {
  expect(() =>
    createClient({ baseUrl: 'http://localhost', apiKey: 'k', quotas: quotas as QuotaSettings }),
  ).toThrow(message)
})
