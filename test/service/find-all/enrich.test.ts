import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FindAllSchema } from 'rivulet'
import type { Processor, ProcessorTask } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { HeldProcessor, temporaryFolder } from '../running.ts'
import { type Behaviour, toolServer } from '../tool-servers/tool-server.ts'
import { brief, ENRICHMENT, findAllService, manyPackages, packageFolder } from './caller.ts'

/** Answers each field with the name of the candidate. */
function naming(tasks: ProcessorTask[] = []): Processor {
  return {
    async run(task) {
      tasks.push(task)
      const { input, task_spec } = task.input
      const schema = typeof task_spec?.output_schema === 'object' ? task_spec.output_schema : undefined
      const { properties = {} } = (schema?.type === 'json' ? schema.json_schema : {}) as {
        properties?: object
      }
      const { name } = input as { name: string }
      const fields = Object.keys(properties).map((field) => [field, `${field} of ${name}`])
      const basis = fields.map(([field = '']) => ({ field, reasoning: 'It was asked' }))
      return { output: { type: 'json', content: Object.fromEntries(fields), basis } }
    },
  }
}

const ofField = (field: string) => ({
  output_schema: { type: 'json', json_schema: { type: 'object', properties: { [field]: {} } } },
})

describe('an enrichment', () => {
  it('executes a run about each matched candidate, once, and adds the fields of its output', async () => {
    const tasks: ProcessorTask[] = []
    const service = await findAllService({ processor: naming(tasks) })
    const id = await service.create()
    const asked = await service.post<FindAllSchema>(`/runs/${id}/enrich`, ENRICHMENT)
    const events = await service.events(id)
    const { candidates } = await service.result(id)
    const enriched = events.filter(({ event }) => event === 'findall.candidate.enriched')
    const streams = candidates.find(({ name }) => name === 'streams')

    expect(asked.body.enrichments).toEqual([ENRICHMENT])
    expect(brief(events)).toContain('schema.updated')
    expect(enriched.map(({ data }) => data.data.name).toSorted()).toEqual(['@scope/queue', 'streams'])
    expect(streams?.output?.['language']).toEqual({ value: 'language of streams', type: 'enrichment' })
    expect(streams?.output?.['typescript']?.is_matched).toBe(true)
    expect(streams?.basis?.map(({ field }) => field)).toEqual(['typescript', 'language'])
    expect(candidates.filter(({ output }) => output?.['language'] !== undefined)).toHaveLength(2)
    expect(tasks.find(({ input }) => JSON.stringify(input).includes('"streams"'))?.input).toEqual({
      input: {
        name: 'streams',
        url: 'https://docs.example/streams/README.md',
        description: 'A library of streams for TypeScript.',
      },
      processor: 'base',
      task_spec: { output_schema: ENRICHMENT.output_schema },
    })
  })

  it('makes a completed run active until it is done, which ends for the same reason', async () => {
    const processor = naming()
    const service = await findAllService({ processor })
    const id = await service.create()
    const before = await service.events(id)
    await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    const after = await service.events(id, `?last_event_id=${before.at(-1)?.id}`)
    const { run } = await service.result(id)

    expect(brief(after)).toEqual([
      'schema.updated',
      'status running',
      expect.stringContaining('enriched '),
      expect.stringContaining('enriched '),
      'status completed',
    ])
    expect(run.status.termination_reason).toBe('candidates_exhausted')
  })

  it('is made for candidates that match later, together with others', async () => {
    const docs = [{ folder: await packageFolder(manyPackages(20)), site: 'https://docs.example' }]
    const service = await findAllService({ docs, processor: naming() })
    const id = await service.create()
    await service.events(id)
    await service.post(`/runs/${id}/enrich`, ofField('one'))
    await service.post(`/runs/${id}/enrich`, ofField('two'))
    await service.events(id)
    await service.post(`/runs/${id}/extend`, { additional_match_limit: 2 })
    await service.events(id)
    const { candidates } = await service.result(id)
    const matched = candidates.filter(({ match_status }) => match_status === 'matched')

    expect(matched).toHaveLength(7)
    expect(matched.map(({ output }) => Object.keys(output ?? {}))).toEqual(
      matched.map(() => ['typescript', 'one', 'two']),
    )
  })

  it('that fails has null fields, with the reason in their basis', async () => {
    const processor: Processor = { run: () => Promise.reject(new Error('There is no such language')) }
    const service = await findAllService({ processor })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    await service.events(id)
    const { run, candidates } = await service.result(id)
    const streams = candidates.find(({ name }) => name === 'streams')

    expect(run.status.status).toBe('completed')
    expect(streams?.output?.['language']).toEqual({ value: null, type: 'enrichment' })
    expect(streams?.basis?.at(-1)).toMatchObject({
      field: 'language',
      reasoning: 'The enrichment failed: There is no such language',
      confidence: 'low',
    })
  })

  it('by a schema that no processor can use is refused', async () => {
    const service = await findAllService()
    const id = await service.create()
    const answer = await service.post(`/runs/${id}/enrich`, {
      output_schema: { type: 'json', json_schema: { properties: { language: { pattern: '(' } } } },
    })

    expect(answer.status).toBe(422)
    expect(answer.body.error.message).toContain(
      'output_schema.json_schema.properties.language.pattern: Expected a regular expression',
    )
  })

  it('of a field that the output has already, of no field, and of a cancelled run is refused', async () => {
    const processor = new HeldProcessor()
    const service = await findAllService({ processor })
    const id = await service.create()
    const condition = await service.post(`/runs/${id}/enrich`, ofField('typescript'))
    const first = await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    const again = await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    const none = await service.post(`/runs/${id}/enrich`, {
      output_schema: { type: 'json', json_schema: {} },
    })
    await processor.next()
    await service.post(`/runs/${id}/cancel`)
    await service.events(id)
    const late = await service.post(`/runs/${id}/enrich`, ofField('late'))

    expect([condition, first, again, none, late].map(({ status }) => status)).toEqual([
      422, 200, 422, 422, 409,
    ])
    expect(condition.body.error.message).toContain('properties.typescript')
  })

  it('passes the credentials of its tool servers to its runs only, and deletes them when the run ends', async () => {
    const folder = await temporaryFolder()
    const tasks: ProcessorTask[] = []
    const held = new HeldProcessor()
    const answering = naming(tasks)
    const processor: Processor = {
      async run(task, signal) {
        await held.run(task, signal)
        return answering.run(task, signal)
      },
    }
    const service = await findAllService({ data: join(folder, 'service.db'), processor })
    const files = () => readdirSync(folder).map((name) => readFileSync(join(folder, name)))
    const secret = 'Bearer of-the-tool-server'
    const server = { type: 'url', url: 'https://tools.example', name: 'tools' }
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, {
      ...ENRICHMENT,
      mcp_servers: [{ ...server, headers: { a: secret } }],
    })
    const first = await held.next()
    const before = files().some((bytes) => bytes.includes(secret))
    first.complete()
    const second = await held.next()
    second.complete()
    await service.events(id)
    // The next request is served after the log of the database was truncated.
    const { body } = await service.get<FindAllSchema>(`/runs/${id}/schema`)
    const after = files().some((bytes) => bytes.includes(secret))

    expect([before, after]).toEqual([true, false])
    expect(tasks.map(({ input }) => input.mcp_servers)).toEqual(
      tasks.map(() => [{ ...server, headers: { a: secret } }]),
    )
    expect(body.enrichments?.[0]?.mcp_servers).toEqual([server])
  })
})

describe('the URL of a tool server', () => {
  it.each([
    'https://tools.example/a b',
    'https://tools.example/\u00e4',
    'https://tools.example/?q=a|b',
    'https://tools.example/[x]',
    'https://tools.example/%zz',
    'https://tools.example/"',
  ])('is refused unless it is percent-encoded: %s', async (url) => {
    const service = await findAllService()
    const id = await service.create()
    const { status, body } = await service.post(`/runs/${id}/enrich`, {
      ...ENRICHMENT,
      mcp_servers: [{ type: 'url', url, name: 'tools' }],
    })

    expect(status).toBe(422)
    expect(JSON.stringify(body)).toContain('percent-encoded')
  })

  it.each(['https://tools.example/it%20is', "https://tools.example/it's?q='a'", 'https://[::1]:8080/mcp'])(
    'is in the answer as it was sent: %s',
    async (url) => {
      const service = await findAllService()
      const id = await service.create()
      const server = { type: 'url', url, name: 'tools' }
      await service.post(`/runs/${id}/enrich`, { ...ENRICHMENT, mcp_servers: [server] })
      const { body } = await service.get<FindAllSchema>(`/runs/${id}/schema`)

      expect(body.enrichments?.[0]?.mcp_servers).toEqual([server])
    },
  )
})

describe('the tool servers of an enrichment', () => {
  const headers = { authorization: 'Bearer of-the-tool-server' }
  const tools = async (behaviour: Behaviour = {}) => {
    const server = await toolServer(behaviour)
    return { ...server, mcp_servers: [{ type: 'url', url: server.url, name: 'tools', headers }] }
  }

  it('are called once for each match, and the candidate has the calls', async () => {
    const { mcp_servers, received } = await tools()
    const service = await findAllService({ processor: undefined, allowPrivateAddresses: true })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, { ...ENRICHMENT, mcp_servers })
    const events = await service.events(id)
    const { candidates } = await service.result(id)
    const enriched = events.filter(({ event }) => event === 'findall.candidate.enriched')
    const called = received.filter(({ method }) => method === 'tools/call')

    expect(enriched).toHaveLength(2)
    for (const { data } of enriched) {
      expect(data.data.mcp_tool_calls).toEqual([
        expect.objectContaining({ server_name: 'tools', tool_name: 'search', content: 'It is 42.' }),
      ])
    }
    expect(called.map((call) => call.headers.authorization)).toEqual(called.map(() => headers.authorization))
    expect(called).toHaveLength(2)
    expect(candidates.filter(({ mcp_tool_calls }) => mcp_tool_calls?.length === 1)).toHaveLength(2)
  })

  it('without a tool for a question are a warning in the reasoning of the fields', async () => {
    const { mcp_servers } = await tools({ 'tools/list': { tools: [] } })
    const service = await findAllService({ processor: undefined, allowPrivateAddresses: true })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, { ...ENRICHMENT, mcp_servers })
    await service.events(id)
    const { candidates } = await service.result(id)
    const streams = candidates.find(({ name }) => name === 'streams')

    expect(streams?.mcp_tool_calls).toBeUndefined()
    expect(streams?.basis?.at(-1)?.reasoning).toMatch(/Warning: The tool server tools has no allowed tool/)
  })

  it('are not called without their credentials after an extend, which the candidate says', async () => {
    const { mcp_servers, received } = await tools()
    const docs = [{ folder: await packageFolder(manyPackages(20)), site: 'https://docs.example' }]
    const service = await findAllService({ docs, processor: undefined, allowPrivateAddresses: true })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, { ...ENRICHMENT, mcp_servers })
    await service.events(id)
    const before = received.length
    await service.post(`/runs/${id}/extend`, { additional_match_limit: 1 })
    await service.events(id)
    const { candidates } = await service.result(id)
    const calls = candidates.flatMap(({ mcp_tool_calls }) => mcp_tool_calls ?? [])

    expect(calls).toHaveLength(6)
    expect(calls.filter(({ content }) => content === 'It is 42.')).toHaveLength(5)
    expect(calls.at(-1)).toMatchObject({
      server_name: 'tools',
      error: 'The credentials of this server were deleted when the run ended',
    })
    expect(received).toHaveLength(before)
  })

  it('that need no credentials are called after an extend too', async () => {
    const { url } = await tools()
    const docs = [{ folder: await packageFolder(manyPackages(20)), site: 'https://docs.example' }]
    const service = await findAllService({ docs, processor: undefined, allowPrivateAddresses: true })
    const id = await service.create()
    const mcp_servers = [{ type: 'url', url, name: 'tools' }]
    await service.post(`/runs/${id}/enrich`, { ...ENRICHMENT, mcp_servers })
    await service.events(id)
    await service.post(`/runs/${id}/extend`, { additional_match_limit: 1 })
    await service.events(id)
    const { candidates } = await service.result(id)
    const calls = candidates.flatMap(({ mcp_tool_calls }) => mcp_tool_calls ?? [])

    expect(calls.map(({ content }) => content)).toEqual(Array.from({ length: 6 }, () => 'It is 42.'))
  })
})

describe('a cancelled run', () => {
  it('ends its enrichment, keeps its candidates, and is over for good', async () => {
    const processor = new HeldProcessor()
    const service = await findAllService({ processor })
    const id = await service.create()
    await service.post(`/runs/${id}/enrich`, ENRICHMENT)
    const { signal } = await processor.next()
    const cancelled = await service.post(`/runs/${id}/cancel`)
    const events = await service.events(id)
    const { run, candidates } = await service.result(id)
    const late = await Promise.all([
      service.post(`/runs/${id}/cancel`),
      service.post(`/runs/${id}/extend`, { additional_match_limit: 1 }),
    ])

    expect(cancelled.status).toBe(200)
    expect(signal.aborted).toBe(true)
    expect(brief(events).slice(-2)).toEqual(['status cancelling', 'status cancelled'])
    expect(run.status).toMatchObject({
      status: 'cancelled',
      is_active: false,
      termination_reason: 'user_cancelled',
    })
    expect(candidates.length).toBe(run.status.metrics.generated_candidates_count)
    expect(candidates.length).toBeGreaterThan(0)
    expect(late.map(({ status }) => status)).toEqual([409, 409])
  })
})
