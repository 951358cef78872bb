import { createServer } from 'node:http'
import { once } from 'node:events'
import { createResearchService } from 'rivulet/service'
import { createClient } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ModelLimits, ModelServer } from '../../../src/service/model/model-server.ts'
import { folderOf } from '../corpus/folder.ts'
import { type ModelBehaviour, modelServer, openAnswer, part, streamReply } from './model-server.ts'
import type { ModelOptions } from '../../../src/service/model/model-server.ts'

const FILES = {
  'acme.md': '# Acme\n\nAcme makes anvils. It was founded in 1949 by Wile Coyote.\n',
  'initech.md': '# Initech\n\nInitech sells printers. The setting is true by default.\n',
  'globex.md': '# Globex\n\nGlobex makes rockets. It was founded in 1989.\n',
}
const KEY = 'sk-a-secret-key-of-a-model'
const FOUNDED = {
  type: 'json',
  json_schema: {
    type: 'object',
    properties: { founded: { type: 'integer', description: 'The year in which it was founded' } },
    required: ['founded'],
    additionalProperties: false,
  },
} as const

/** A client of a service whose answers a model writes, which behaves so. */
async function withModel(...behaviours: readonly [ModelBehaviour, ...ModelBehaviour[]]) {
  const model = await modelServer(...behaviours)
  const docs = await folderOf(FILES)
  const service = await createResearchService({
    docs,
    model: { url: model.url, name: 'tiny', apiKey: KEY },
    quotas: false,
  })
  onTestFinished(() => service.close())
  const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
  return { client, received: model.received }
}

const MADE = {
  answer: 'Acme makes anvils.',
  quotes: [{ field: 'output', passage: 1, quote: 'Acme makes anvils.' }],
}

describe('a run whose answer a model writes', () => {
  it('has the answer, its quotes as citations, and no warning', async () => {
    const { client, received } = await withModel(MADE)
    const { run, output } = await client.tasks.run('What does Acme make?')

    expect(output).toMatchObject({
      type: 'text',
      content: 'Acme makes anvils.',
      basis: [{ field: 'output', confidence: 'high' }],
    })
    expect(output.basis[0]?.citations).toEqual([
      { url: expect.stringMatching(/acme\.md$/), title: 'Acme', excerpts: ['Acme makes anvils.'] },
    ])
    expect(run.warnings ?? []).toEqual([])
    expect(received).toHaveLength(1)
    expect(received[0]?.headers.authorization).toBe(`Bearer ${KEY}`)
    expect(received[0]?.body).toMatchObject({
      model: 'tiny',
      messages: [{ role: 'system' }, { role: 'user' }],
    })
    expect(received[0]?.body.messages[1]?.content).toContain('It was founded in 1949')
  })

  it('keeps the answer and drops what it invents as quotes, with a warning', async () => {
    const { client } = await withModel({
      answer: 'Acme makes rockets.',
      quotes: [
        { passage: 1, quote: 'Acme makes rockets.' },
        { passage: 7, quote: 'As everybody knows' },
      ],
    })
    const { run, output } = await client.tasks.run('What does Acme make?')

    expect(output.basis).toMatchObject([{ citations: [], confidence: 'low' }])
    expect(run.warnings).toMatchObject([
      { message: expect.stringContaining('2 quotes of the model were dropped') },
    ])
  })

  it.each([
    ['a text', 'What does Acme sell to cats?'],
    ['a suggested schema', 'What are the price and the weight of Acme?'],
  ])('says that the documents do not say, for %s without a value', async (_, input) => {
    const { client } = await withModel((response, { body }) => {
      const isSchema = body.messages[0]?.content.includes('JSON Schema') === true
      streamReply(response, JSON.stringify({ answer: isSchema ? { price: null, weight: null } : null }))
    })
    const { output } = await client.tasks.run(input)

    expect(output).toMatchObject({
      type: 'text',
      content: expect.stringMatching(/^The documents do not say: /),
      basis: [{ field: 'output', citations: [], confidence: 'low' }],
    })
  })

  it('satisfies a suggested schema too', async () => {
    const answer = { founder: 'Wile Coyote', year: '1949' }
    const { client, received } = await withModel({ answer: { ...answer, year: 1949 } }, { answer })
    const { output } = await client.tasks.run('What are the founder and the year of Acme?')

    expect(output).toMatchObject({
      type: 'json',
      content: answer,
      output_schema: { required: ['founder', 'year'] },
    })
    expect(received).toHaveLength(2)
  })

  it('is not called high for a boolean whose word stands in a quote', async () => {
    const { client } = await withModel({
      answer: { isPublic: true },
      quotes: [{ field: 'isPublic', passage: 1, quote: 'The setting is true by default' }],
    })
    const { output } = await client.tasks.run({
      input: 'Is Initech a public company? Initech setting default',
      processor: 'base',
      task_spec: {
        output_schema: {
          type: 'json',
          json_schema: { type: 'object', properties: { isPublic: { type: 'boolean' } } },
        },
      },
    })

    expect(output.basis).toMatchObject([
      { citations: [{ excerpts: ['The setting is true by default'] }], confidence: 'medium' },
    ])
  })

  it('satisfies its schema: a reply that does not is shown to the model once', async () => {
    const quotes = [{ field: 'founded', passage: 1, quote: 'founded in 1949' }]
    const { client, received } = await withModel(
      { answer: { founded: 'in 1949' }, quotes },
      { answer: { founded: 1949 }, quotes },
    )
    const { output } = await client.tasks.run({
      input: 'When was Acme founded?',
      processor: 'base',
      task_spec: { output_schema: FOUNDED },
    })

    expect(output).toMatchObject({ content: { founded: 1949 }, basis: [{ confidence: 'high' }] })
    expect(received).toHaveLength(2)
    expect(received[1]?.body.messages.at(-1)?.content).toMatch(/cannot be used.*founded.*integer/)
  })

  it.each<[string, ...[ModelBehaviour, ...ModelBehaviour[]]]>([
    ['JSON in a fence, with a sentence before it', 'Here it is:\n```json\n' + JSON.stringify(MADE) + '\n```'],
    [
      'a completion that is not streamed',
      (response) => {
        const message = { role: 'assistant', content: JSON.stringify(MADE) }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
      },
    ],
    ['a good reply after a broken one', '{"answer": "Acme mak', MADE],
    ['a good reply after an overloaded server', (response) => void response.writeHead(503).end(), MADE],
    [
      'a good reply after a cut',
      (response) => {
        openAnswer(response)
        response.write(part('{"answer'), () => response.destroy())
      },
      MADE,
    ],
    [
      'a reply to a server without `response_format`',
      (response, { body }) => {
        if (body.response_format === undefined) return streamReply(response, JSON.stringify(MADE))
        const error = { message: 'response_format is not supported' }
        response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
      },
    ],
  ])('takes %s', async (_, ...behaviours) => {
    const { client } = await withModel(...behaviours)
    const { run, output } = await client.tasks.run('What does Acme make?')

    expect(output.content).toBe('Acme makes anvils.')
    expect(run.warnings ?? []).toEqual([])
  })

  it.each<[string, ModelBehaviour, RegExp]>([
    ['replies with broken JSON', '{"answer": "Acme mak', /no JSON object/],
    ['replies with prose', 'Acme makes anvils, I believe.', /no JSON object/],
    ['replies with another form', { anvils: true, answer: 7 }, /must be a text/],
    [
      'refuses the key',
      (response) => {
        const error = { message: `Incorrect API key: ${KEY}` }
        response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
      },
      /answered with 401: Incorrect API key: \[redacted\]/,
    ],
    [
      'refuses the key at the end of a long message',
      (response) => {
        const error = { message: `${'x'.repeat(190)} ${KEY}` }
        response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
      },
      /x \[redacted\]/,
    ],
    [
      'fails within its stream, with a message of 100,000 characters',
      (response) => {
        openAnswer(response)
        response.end(`data: ${JSON.stringify({ error: { message: `${'x'.repeat(100_000)}` } })}\n\n`)
      },
      /^.{0,100}: the server failed: x{200,300}$/,
    ],
    [
      'redirects',
      (response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /302/,
    ],
    [
      'answers within a limit of length',
      (response) => {
        openAnswer(response)
        response.end(`${part('{"answer": "Acme')}${part('', 'length')}data: [DONE]\n\n`)
      },
      /cut at the limit/,
    ],
    [
      'answers without end',
      (response) => {
        openAnswer(response)
        response.on('error', () => undefined)
        for (let count = 0; count < 64; count += 1) response.write(part('x'.repeat(20_000)))
      },
      /longer than/,
    ],
    [
      'sends one event without end',
      (response) => {
        openAnswer(response)
        response.on('error', () => undefined)
        response.write(`data: ${'x'.repeat(2_000_000)}`)
      },
      /longer than/,
    ],
    [
      'sends no JSON events',
      (response) => {
        openAnswer(response)
        response.end('data: hello\n\n')
      },
      /no JSON/,
    ],
  ])('is extracted, with the reason as a warning, where the model %s', async (_, behaviour, reason) => {
    const { client } = await withModel(behaviour)
    const { run, output } = await client.tasks.run('What does Acme make?')

    expect(output).toMatchObject({ type: 'text', content: expect.stringContaining('anvils') })
    expect(run.warnings).toMatchObject([{ type: 'warning', message: expect.stringMatching(reason) }])
    expect(JSON.stringify(run)).not.toContain(KEY.slice(0, 8))
  })

  it('is extracted where no server listens', async () => {
    const closed = createServer()
    closed.listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = Object(closed.address())
    closed.close()
    await once(closed, 'close')
    const service = await createResearchService({
      docs: await folderOf(FILES),
      model: { url: `http://127.0.0.1:${port}/v1`, name: 'tiny' },
    })
    onTestFinished(() => service.close())
    const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
    const { run, output } = await client.tasks.run('What does Acme make?')

    expect(output.content).toContain('anvils')
    expect(run.warnings).toMatchObject([
      { message: expect.stringMatching(/cannot be reached \(ECONNREFUSED\)/) },
    ])
  })

  it('continues an interaction with its earlier turns', async () => {
    const { client, received } = await withModel(MADE)
    const first = await client.tasks.run('What does Acme make?')
    await client.tasks.run({
      input: 'And when was it founded?',
      processor: 'base',
      previous_interaction_id: String(first.run.interaction_id),
    })

    expect(received[1]?.body.messages.slice(1, 3)).toEqual([
      { role: 'user', content: 'What does Acme make?' },
      { role: 'assistant', content: 'Acme makes anvils.' },
    ])
  })
})

describe('a chat whose answer a model writes', () => {
  it('streams the answer, with its citations', async () => {
    const { client } = await withModel(MADE)
    const messages = [{ role: 'user', content: 'What does Acme make?' }] as const
    const { choices, basis } = await client.chat.stream({ model: 'base', messages })

    expect(choices[0]?.message.content).toBe('Acme makes anvils.')
    expect(basis?.[0]?.citations?.[0]?.excerpts).toEqual(['Acme makes anvils.'])
  })
})

describe('a model server', () => {
  const ask = (url: string, silence: number, signal = new AbortController().signal) => {
    const server = new ModelServer({ url, name: 'tiny' }, { silence, pause: 1 })
    onTestFinished(() => server.close())
    return server.complete([{ role: 'user', content: 'hi' }], signal)
  }

  it.each<[string, ModelBehaviour]>([
    ['before its answer', () => undefined],
    [
      'within its answer',
      (response) => {
        openAnswer(response)
        response.write(part('{"answer'))
      },
    ],
  ])('that sends nothing more %s is given up', async (_, behaviour) => {
    const { url, received } = await modelServer(behaviour)

    await expect(ask(url, 30)).rejects.toThrow('the server sent nothing for 30 ms')
    expect(received.length).toBeLessThanOrEqual(3)
  })

  /** A server that fails with this header first, and what the service waits before it asks again, in ms. */
  const afterWaits = async (headers: Readonly<Record<string, string>>, limits: ModelLimits = {}) => {
    const { url, received } = await modelServer(
      (response) => void response.writeHead(429, headers).end(),
      'the answer',
    )
    const waits: number[] = []
    const server = new ModelServer(
      { url, name: 'tiny' },
      { pause: 1, wait: async (time) => void waits.push(time), ...limits },
    )
    onTestFinished(() => server.close())
    const reply = await server
      .complete([{ role: 'user', content: 'hi' }], new AbortController().signal)
      .catch((error: unknown) => String(error))
    return { reply, waits, requests: received.length }
  }
  const date = 'Thu, 01 Jan 2026 00:00:00 GMT'

  const backoff = expect.toSatisfy((wait) => typeof wait === 'number' && wait > 0 && wait <= 1)

  it.each<[string, Readonly<Record<string, string>>, unknown]>([
    ['seconds', { 'retry-after': '7' }, 7_000],
    ['a date', { 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT', date }, 30_000],
    ['a date that has passed', { 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT', date }, backoff],
    ['no time', { 'retry-after': '0' }, backoff],
    ['something else', { 'retry-after': 'soon' }, backoff],
    ['nothing', {}, backoff],
  ])('is asked again after a backoff, and not before its Retry-After: %s', async (_, headers, expected) => {
    const { reply, waits, requests } = await afterWaits(headers)

    expect([reply, requests]).toEqual(['the answer', 2])
    expect(waits).toEqual([expected])
  })

  it.each<[string, string, ModelLimits]>([
    ['a minute', '61', {}],
    ['the time that is left for the answer', '31', { total: 30_000 }],
  ])('is not asked again if its Retry-After is longer than %s', async (_, seconds, limits) => {
    const { reply, waits, requests } = await afterWaits({ 'retry-after': seconds }, limits)

    expect(reply).toBe(`ModelError: the server answered with 429, and asks to wait ${seconds} s`)
    expect([waits, requests]).toEqual([[], 1])
  })

  it('is left at once when the run is cancelled within its Retry-After', async () => {
    const controller = new AbortController()
    const { url } = await modelServer((response) => {
      response.writeHead(503, { 'retry-after': '60' }).end()
      response.on('close', () => controller.abort(new Error('cancelled')))
    })
    await expect(ask(url, 60_000, controller.signal)).rejects.toThrow('cancelled')
  })

  it('has one limit of time for all attempts at an answer', async () => {
    const { url, received } = await modelServer(() => undefined)
    const server = new ModelServer({ url, name: 'tiny' }, { total: 30, pause: 1 })
    onTestFinished(() => server.close())

    await expect(server.complete([], new AbortController().signal)).rejects.toThrow(
      'no complete answer within 30 ms',
    )
    expect(received.length).toBeLessThanOrEqual(1)
  })

  it('is left at once when the run is cancelled', async () => {
    const controller = new AbortController()
    const { url, received } = await modelServer(() => controller.abort(new Error('cancelled')))

    await expect(ask(url, 60_000, controller.signal)).rejects.toThrow('cancelled')
    expect(received).toHaveLength(1)
  })
})

describe('the option `model`', () => {
  it.each<[string, unknown, string]>([
    ['a URL of another protocol', { url: 'ftp://127.0.0.1/v1', name: 'x' }, 'model.url'],
    ['a URL with a password', { url: `http://user:${KEY}@127.0.0.1/v1`, name: 'x' }, 'model.url'],
    ['no name', { url: 'http://127.0.0.1/v1' }, 'model.name'],
    [
      'a key with a line break',
      { url: 'http://127.0.0.1/v1', name: 'x', apiKey: `${KEY}\n` },
      'model.apiKey',
    ],
    ['no object', 'http://127.0.0.1/v1', 'model'],
  ])('with %s is refused, without its secrets', async (_, model, argument) => {
    const docs = await folderOf(FILES)
    const error: unknown = await createResearchService({ docs, model: model as ModelOptions }).catch(
      (reason: unknown) => reason,
    )

    expect(error).toMatchObject({ name: 'ArgumentError', argument })
    expect(String(error)).not.toContain(KEY)
  })
})
