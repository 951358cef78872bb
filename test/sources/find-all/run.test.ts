import type { IncomingMessage, ServerResponse } from 'node:http'
import { createClient, FindAllFailedError, FindAllInterruptedError } from 'rivulet'
import type { ClientOptions } from 'rivulet'
import { lastValueFrom, take, toArray } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { answer, serve } from '../../support/serve.ts'
import { candidateEvent, eventsOf, findAllRun, isStream, sendAfter, statusEvent } from './find-all-log.ts'
import type { Wire } from './find-all-log.ts'

const schema = {
  objective: 'find them',
  entity_type: 'companies',
  match_conditions: [{ name: 'n', description: 'd' }],
}
const request = { ...schema, generator: 'core', match_limit: 7 } as const

interface Sent {
  readonly call: string
  readonly body: unknown
}

/** A service with one run, whose answers can be replaced by call. */
async function findAllService(
  log: readonly Wire[],
  candidates: readonly object[],
  answers: Record<string, (response: ServerResponse) => void> = {},
  options: ClientOptions = {},
) {
  const sent: Sent[] = []
  const waiting = new Set<() => void>()
  const last = Object(log.findLast(({ type }) => type === 'findall.status')?.data)
  const listener = (incoming: IncomingMessage, response: ServerResponse) => {
    let text = ''
    incoming.setEncoding('utf8').on('data', (part: string) => (text += part))
    incoming.on('end', () => {
      const path = (incoming.url ?? '').split('?')[0] ?? ''
      const call = `${incoming.method ?? ''} ${path.replace('/v1beta/findall/', '')}`
      sent.push({ call, body: text === '' ? undefined : JSON.parse(text) })
      for (const look of waiting) look()
      const own = answers[call]
      if (own !== undefined) return own(response)
      if (isStream(incoming)) return sendAfter(incoming, response, log)
      if (call === 'POST ingest') return answer(response, schema)
      if (call === 'POST runs') return answer(response, findAllRun(0, 0, true))
      if (call === 'GET runs/f/result') return answer(response, { run: last, candidates })
      if (call === 'GET runs/f') return answer(response, last)
      answer(response, schema)
    })
  }
  const client = createClient({
    apiKey: 'key',
    baseUrl: await serve(listener),
    initialDelay: 0,
    maxDelay: 1,
    ...options,
  })
  return {
    client,
    sent,
    calls: () => sent.map(({ call }) => call),
    until: (isTrue: () => boolean) =>
      new Promise<void>((resolve) => {
        const look = () => {
          if (isTrue()) resolve()
        }
        waiting.add(look)
        look()
      }),
  }
}

const candidate = (id: string, match_status: string, more: object = {}) => ({
  candidate_id: id,
  name: id,
  url: `https://${id}.example`,
  match_status,
  ...more,
})
const both = [candidate('c1', 'unmatched'), candidate('c2', 'matched')]

describe('findAll.run', () => {
  it('ingests an objective, creates a run of what it becomes, and emits its events', async () => {
    const log = eventsOf(2)
    const { client, sent } = await findAllService(log, both)

    const events = await lastValueFrom(client.findAll.run('batteries').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(log.map(({ event_id }) => event_id))
    expect(sent.slice(0, 2)).toEqual([
      { call: 'POST ingest', body: { objective: 'batteries' } },
      { call: 'POST runs', body: { ...schema, generator: 'base', match_limit: 10 } },
    ])
  })

  it('creates the run of a request without an ingestion, and awaits its result', async () => {
    const { client, sent, calls } = await findAllService(eventsOf(2), both)

    const { candidates, run } = await client.findAll.run(request)

    expect(candidates).toEqual(both)
    expect(run.status.is_active).toBe(false)
    expect(sent[0]).toEqual({ call: 'POST runs', body: request })
    expect(calls().filter((call) => call.startsWith('POST'))).toEqual(['POST runs'])
  })

  it('creates one run for each await, and none before', async () => {
    const { client, calls } = await findAllService(eventsOf(2), both)
    const run = client.findAll.run(request, {})
    expect(calls()).toEqual([])

    await run
    await run

    expect(calls().filter((call) => call === 'POST runs')).toHaveLength(2)
  })

  it('asks again for a result that has fewer matches than the run counts', async () => {
    let asked = 0
    const { client } = await findAllService(eventsOf(2), [], {
      'GET runs/f/result': (response) =>
        answer(response, { run: findAllRun(2, 1, false), candidates: asked++ < 2 ? both.slice(0, 1) : both }),
    })

    await expect(client.findAll.run(request)).resolves.toMatchObject({ candidates: both })
    expect(asked).toBe(3)
  })

  it.each(['failed', 'cancelled'])(
    'errors for a run that %s, with the candidates that it found',
    async (status) => {
      const run = findAllRun(1, 0, false, status)
      const log = [candidateEvent('1', 'generated', 'c1'), { ...statusEvent('e', 1, 0, false), data: run }]
      const { client } = await findAllService(log, [candidate('c1', 'generated')])

      const failed = await client.findAll.run(request).then(undefined, (error: unknown) => error)

      expect(failed).toBeInstanceOf(FindAllFailedError)
      expect(failed).toMatchObject({ retryable: false, result: { candidates: [{ candidate_id: 'c1' }] } })
    },
  )

  it('does not create a second run where the answer of the first was lost', async () => {
    const { client, calls } = await findAllService(eventsOf(1), [], {
      'POST runs': (response) => response.destroy(),
    })

    const failed = await client.findAll.run(request).then(undefined, (error: unknown) => error)

    expect(failed).toBeInstanceOf(FindAllInterruptedError)
    expect(failed).toMatchObject({
      retryable: false,
      findAllId: undefined,
      cause: { name: 'ConnectionError' },
    })
    expect(calls()).toEqual(['POST runs'])
  })

  it('says which run goes on where it cannot be followed', async () => {
    const { client } = await findAllService(eventsOf(1), [], {
      'GET runs/f/events': (response) => answer(response, {}, 404),
    })

    await expect(client.findAll.run(request)).rejects.toMatchObject({
      name: 'FindAllInterruptedError',
      retryable: false,
      findAllId: 'f',
      cause: { name: 'NotFoundError' },
    })
  })

  it('refuses what the service made of an objective where no run can be created of it', async () => {
    const { client } = await findAllService(eventsOf(1), [], {
      'POST ingest': (response) =>
        answer(response, { ...schema, entity_type: null, match_conditions: [null] }),
    })

    await expect(client.findAll.run('x')).rejects.toMatchObject({ name: 'ProtocolError', retryable: false })
  })

  it('leaves the run alone when it is unsubscribed from', async () => {
    const { client, calls } = await findAllService(eventsOf(1), [])

    await lastValueFrom(client.findAll.run(request).pipe(take(1)))

    expect(calls()).toEqual(['POST runs', 'GET runs/f/events'])
  })

  it('cancels the run when it is unsubscribed from with cancelOnUnsubscribe', async () => {
    const { client, calls, until } = await findAllService(eventsOf(1), [], {
      'POST runs/f/cancel': (response) => response.writeHead(200).end(),
    })

    await lastValueFrom(client.findAll.run(request, { cancelOnUnsubscribe: true }).pipe(take(1)))

    await expect(until(() => calls().includes('POST runs/f/cancel'))).resolves.toBeUndefined()
  })

  it('does not cancel a run that is over with cancelOnUnsubscribe', async () => {
    const { client, calls } = await findAllService(eventsOf(2), both)

    await client.findAll.run(request, { cancelOnUnsubscribe: true })

    expect(calls()).not.toContain('POST runs/f/cancel')
  })

  it('reports a cancellation that failed, unless the run is over', async () => {
    const { client } = await findAllService(eventsOf(1), [], {
      'POST runs/f/cancel': (response) => answer(response, { error: { ref_id: 'r', message: 'no' } }, 403),
    })
    const reported = new Promise((resolve) => client.diagnostics.subscribe(resolve))

    await lastValueFrom(client.findAll.run(request, { cancelOnUnsubscribe: true }).pipe(take(1)))

    await expect(reported).resolves.toMatchObject({ kind: 'cancellation', error: { status: 403 } })
  })

  it.each<[string, unknown, object]>([
    ['an empty objective', '', {}],
    ['a match limit of 4', 'x', { match_limit: 4 }],
    ['an unknown generator', 'x', { generator: 'best' }],
    ['a generator beside that of a request', request, { generator: 'base' }],
    ['a processor without an enrichment', 'x', { enrichProcessor: 'core' }],
    ['an enrichment that is no schema', 'x', { enrich: {} }],
    ['an unknown option', 'x', { cancel: true }],
  ])('refuses %s at the call', (_, objective, options) => {
    const { findAll } = createClient({ apiKey: 'key', baseUrl: 'http://127.0.0.1:1' })
    const run: (objective: never, options: object) => unknown = findAll.run

    expect(() => run(objective as never, options)).toThrow(/ArgumentError|objective|must|option|left out|own/)
  })
})

describe('findAll.run with a schema for the enrichment', () => {
  const Company = z.object({ ceo: z.string(), founded: z.number() })
  const outputs = (ceo: unknown) => ({
    output: {
      n: { value: 'yes', type: 'match_condition', is_matched: true },
      ceo: { value: ceo, type: 'enrichment' },
      founded: { value: 1999, type: 'enrichment' },
    },
  })
  const log = [
    candidateEvent('1', 'matched', 'c1'),
    candidateEvent('2', 'enriched', 'c1', outputs('Ann')),
    candidateEvent('3', 'matched', 'c2'),
    candidateEvent('4', 'enriched', 'c2', outputs(null)),
    statusEvent('end', 2, 2, false),
  ]

  it('asks for it, and types each enriched event', async () => {
    const { client, sent } = await findAllService(log, [])

    const events = await lastValueFrom(
      client.findAll.run(request, { enrich: Company, enrichProcessor: 'base' }).pipe(take(5), toArray()),
    )

    expect(sent.find(({ call }) => call.endsWith('/enrich'))?.body).toMatchObject({
      processor: 'base',
      output_schema: { type: 'json', json_schema: { properties: { ceo: { type: 'string' } } } },
    })
    const enriched = events.flatMap((event) =>
      event.type === 'findall.candidate.enriched' ? [event.data] : [],
    )
    expectTypeOf(enriched[0]?.enrichment).toEqualTypeOf<z.infer<typeof Company> | null | undefined>()
    expect(enriched[0]).toMatchObject({ enrichment: { ceo: 'Ann', founded: 1999 } })
    expect(enriched[1]).toMatchObject({ enrichment: null, misfit: { name: 'OutputSchemaError' } })
    expect(events).toHaveLength(5)
  })

  it('checks each match of the result, also one that was not enriched', async () => {
    const { client } = await findAllService(log, [
      candidate('c1', 'matched', outputs('Ann')),
      candidate('c2', 'matched', { output: null }),
      candidate('c3', 'unmatched', { output: 'odd' }),
    ])

    const { candidates } = await client.findAll.run(request, { enrich: Company })

    expect(candidates[0]?.enrichment).toEqual({ ceo: 'Ann', founded: 1999 })
    expect(candidates[1]).toMatchObject({ enrichment: null, misfit: { issues: [{}] } })
    expect(candidates[2]).toMatchObject({ enrichment: null })
    expect(candidates[2]).not.toHaveProperty('misfit')
  })

  it('keeps the order of events with an asynchronous schema', async () => {
    const Slow = Company.refine(async () => true)
    const { client } = await findAllService(log, [
      candidate('c1', 'matched', outputs('Ann')),
      candidate('c2', 'matched'),
    ])
    const enrich = { schema: Slow, jsonSchema: { type: 'object' } }

    const events = await lastValueFrom(client.findAll.run(request, { enrich }).pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2', '3', '4', 'end'])
  })

  it('errors where the service refuses the enrichment, and names the run', async () => {
    const { client } = await findAllService(log, [], {
      'POST runs/f/enrich': (response) => answer(response, { detail: [] }, 422),
    })

    await expect(client.findAll.run(request, { enrich: Company })).rejects.toMatchObject({
      name: 'FindAllInterruptedError',
      findAllId: 'f',
    })
  })
})

describe('the requests of findAll', () => {
  it('cancel a run without a body of the answer, and error for one that is over', async () => {
    let status = 200
    const { client } = await findAllService([], [], {
      'POST runs/f/cancel': (response) =>
        status === 200
          ? response.writeHead(200).end()
          : answer(response, { error: { ref_id: 'r', message: 'over' } }, status),
    })

    await expect(client.findAll.cancel('f')).resolves.toBeUndefined()
    status = 409
    await expect(client.findAll.cancel('f')).rejects.toMatchObject({
      name: 'ConflictError',
      retryable: false,
    })
  })

  it.each(['extend', 'enrich'] as const)('do not repeat an %s whose answer was lost', async (call) => {
    const { client, calls } = await findAllService([], [], {
      [`POST runs/f/${call}`]: (response) => response.destroy(),
    })
    const enrichment = { output_schema: { type: 'json', json_schema: {} } } as const
    const { findAll } = client
    const sending =
      call === 'extend' ? findAll.extend('f', { additional_match_limit: 5 }) : findAll.enrich('f', enrichment)

    await expect(sending).rejects.toMatchObject({
      name: 'UncertainRequestError',
      cause: { name: 'ConnectionError' },
    })
    expect(calls()).toEqual([`POST runs/f/${call}`])
  })

  it.each([
    ['no object', 'null'],
    ['no list of candidates', '{"run":{}}'],
    ['candidates that are null', '{"run":{},"candidates":null}'],
  ])('error for a result that is %s', async (_, body) => {
    const { client } = await findAllService([], [], {
      'GET runs/f/result': (response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    })

    await expect(client.findAll.result('f')).rejects.toMatchObject({ name: 'ProtocolError' })
  })
})
