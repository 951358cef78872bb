import { once } from 'node:events'
import * as fc from 'fast-check'
import { lastValueFrom, take, toArray } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  AnswerFailedError,
  AnswerInterruptedError,
  AnswerSchemaError,
  ArgumentError,
  AuthenticationError,
  ConnectionError,
  createClient,
  ProtocolError,
  RequestError,
} from 'rivulet'
import type { ChatCompletion, ChatRequest } from 'rivulet'
import { Gate, underGate } from 'rivulet/operators'
import { z } from 'zod'
import { answerServer, cutting, framed, streaming } from '../../support/answer-server.ts'
import { answer, openStream } from '../../support/serve.ts'
import { closedOrigin } from '../../transport/server.ts'

const request: ChatRequest = { model: 'base', messages: [{ role: 'user', content: 'What is a rivulet?' }] }
const common = { id: 'c1', object: 'chat.completion.chunk', created: 7, model: 'base' }

/** A chunk with this text. */
const chunk = (content: string | null, others: object = {}, choice: object = {}) =>
  JSON.stringify({ ...common, choices: [{ index: 0, delta: { content }, ...choice }], ...others })

const basis = [{ field: 'output', reasoning: 'It says so.', citations: [{ url: 'https://a.example' }] }]
const whole = [
  chunk(null),
  chunk('A small '),
  chunk('stream.', {}, { finish_reason: 'stop' }),
  JSON.stringify({ ...common, choices: [], basis, interaction_id: 'i1', usage: { total_tokens: 9 } }),
  '[DONE]',
]
const completion = {
  id: 'c1',
  object: 'chat.completion',
  created: 7,
  model: 'base',
  choices: [{ index: 0, message: { role: 'assistant', content: 'A small stream.' }, finish_reason: 'stop' }],
}

const errorOf = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => expect.unreachable('there was an answer'),
    (error: unknown) => error,
  )

describe('client.chat.stream', () => {
  it('emits each chunk with the text so far', async () => {
    const { client, bodies } = await answerServer([streaming(...whole)])

    const emitted = await lastValueFrom(client.chat.stream(request).pipe(toArray()))

    expect(emitted.map(({ text }) => text)).toEqual(['', 'A small ', 'A small stream.', 'A small stream.'])
    expect(emitted[1]?.event).toEqual({
      ...common,
      choices: [{ index: 0, delta: { content: 'A small ' }, finish_reason: null }],
    })
    expect(bodies).toEqual([{ ...request, stream: true }])
  })

  it('resolves to the completion, with basis, interaction and unknown fields', async () => {
    const { client } = await answerServer([streaming(...whole)])

    const answered = await client.chat.stream(request)

    expectTypeOf(answered).toEqualTypeOf<ChatCompletion>()
    expect(answered).toEqual({ ...completion, basis, interaction_id: 'i1', usage: { total_tokens: 9 } })
  })

  it('assembles several choices in the order of their index', async () => {
    const second = chunk('Two', {}, { index: 1 })
    const { client } = await answerServer([
      streaming(second, chunk('One'), chunk('!', {}, { index: 1, finish_reason: 'length' }), '[DONE]'),
    ])

    const { choices } = await client.chat.stream(request)

    expect(choices).toEqual([
      { index: 0, message: { role: 'assistant', content: 'One' }, finish_reason: null },
      { index: 1, message: { role: 'assistant', content: 'Two!' }, finish_reason: 'length' },
    ])
  })

  it('takes absent and null fields of a chunk', async () => {
    const { client } = await answerServer([
      streaming(
        '{}',
        '{"choices":null,"basis":null,"interaction_id":null}',
        '{"id":"c1","created":7,"choices":[{"delta":{"content":"Hi"}}]}',
        '{"choices":[{"index":null,"delta":null,"finish_reason":null}],"basis":[null,4,{"field":"output","reasoning":"r"}]}',
        '[DONE]',
      ),
    ])

    const emitted = await lastValueFrom(client.chat.stream(request).pipe(toArray()))

    expect(emitted.map(({ event }) => event.choices.length)).toEqual([0, 0, 1, 1])
    expect(await client.chat.stream(request)).toMatchObject({
      id: 'c1',
      created: 7,
      basis: [{ field: 'output', reasoning: 'r' }],
      choices: [{ message: { content: 'Hi' } }],
    })
  })

  it('replaces the entries of a field of the basis by later ones', async () => {
    const entry = (field: string, reasoning: string) => ({ field, reasoning })
    const { client } = await answerServer([
      streaming(
        chunk('a', { basis: [entry('one', 'early'), entry('two', 'kept')] }),
        chunk('b', { basis: [entry('one', 'late')] }),
        '[DONE]',
      ),
    ])

    expect((await client.chat.stream(request)).basis).toEqual([entry('one', 'late'), entry('two', 'kept')])
  })

  it.each([
    ['the stream ends before [DONE]', streaming(chunk('A sm'))],
    ['the connection breaks', cutting(chunk('A sm'))],
    ['a chunk is not JSON', streaming(chunk('A sm'), '{"choices":')],
    ['a chunk is not an object', streaming(chunk('A sm'), '[]')],
    ['the choices are not a list', streaming(chunk('A sm'), '{"choices":{}}')],
    ['a choice is not an object', streaming(chunk('A sm'), '{"choices":[1]}')],
    ['an index is negative', streaming(chunk('A sm'), chunk('all', {}, { index: -1 }))],
    ['a delta is not an object', streaming(chunk('A sm'), chunk('all', {}, { delta: 'all' }))],
    ['a content is not a text', streaming(chunk('A sm'), chunk('all', {}, { delta: { content: 5 } }))],
    ['a finish_reason is not a text', streaming(chunk('A sm'), chunk('all', {}, { finish_reason: 5 }))],
    ['a chunk is nested too deeply to be read', streaming(chunk('A sm'), '['.repeat(200_000))],
  ])('errors with the text so far when %s, and does not ask again', async (_, reply) => {
    const { client, bodies } = await answerServer([reply])
    const texts: string[] = []

    const error = await errorOf(client.chat.stream(request).forEach(({ text }) => texts.push(text)))

    expect(error).toBeInstanceOf(AnswerInterruptedError)
    expect(error).toMatchObject({ text: 'A sm', retryable: false, path: '/v1beta/chat/completions' })
    expect(texts).toEqual(['A sm'])
    expect(bodies).toHaveLength(1)
  })

  it('errors when [DONE] comes without any choice', async () => {
    const { client } = await answerServer([streaming('[DONE]')])

    expect(await errorOf(client.chat.stream(request))).toBeInstanceOf(AnswerInterruptedError)
  })

  it.each([
    ['an error event', 'event: error\ndata: {"error":{"message":"no credit","ref_id":"r1"}}\n\n'],
    ['an object with an error', 'data: {"error":{"message":"no credit","ref_id":"r1"}}\n\n'],
    ['an ErrorResponse', 'data: {"type":"error","error":{"message":"no credit","ref_id":"r1"}}\n\n'],
    ['a flat error', 'data: {"type":"error","message":"no credit","ref_id":"r1"}\n\n'],
  ])('errors with the problem and the text so far after %s', async (_, frame) => {
    const { client, bodies } = await answerServer([
      (response) => {
        openStream(response)
        response.end(framed([chunk('A sm')]) + frame + framed(['[DONE]']))
      },
    ])

    const error = await errorOf(client.chat.stream(request))

    expect(error).toBeInstanceOf(AnswerFailedError)
    expect(error).toMatchObject({ text: 'A sm', ref_id: 'r1', retryable: false })
    expect(String(error)).toContain('no credit (ref_id r1)')
    expect(bodies).toHaveLength(1)
  })

  it('never shows the key in the message of a failure', async () => {
    const { client } = await answerServer([streaming('{"error":{"message":"bad key-of-a-test"}}')])

    expect(String(await errorOf(client.chat.stream(request)))).not.toContain('key-of-a-test')
  })

  it('errors before it fills the memory', async () => {
    const { client } = await answerServer([streaming(chunk('a'.repeat(600)), chunk('b'.repeat(600)))], {
      maxBodyBytes: 1_000,
    })

    expect(await errorOf(client.chat.stream(request))).toMatchObject({
      name: 'AnswerInterruptedError',
      text: 'a'.repeat(600),
    })
  })

  it.each([
    ['429', 429],
    ['503 of the service', 503],
  ])('asks again after %s, which comes before any answer', async (_, status) => {
    const problem = { type: 'error', error: { ref_id: 'r', message: 'busy' } }
    const { client, bodies, diagnostics } = await answerServer([
      (response) => {
        response.setHeader('retry-after', '0')
        answer(response, problem, status)
      },
      streaming(...whole),
    ])

    expect(await client.chat.stream(request)).toMatchObject(completion)
    expect(bodies).toHaveLength(2)
    expect(diagnostics).toMatchObject([{ kind: 'retry', attempt: 1 }])
  })

  it('does not ask again after a 500 or a 502, when the service may have begun', async () => {
    for (const status of [500, 502]) {
      const { client, bodies } = await answerServer([(response) => answer(response, {}, status)])
      expect(await errorOf(client.chat.stream(request))).toMatchObject({
        retryable: false,
        cause: { status },
      })
      expect(bodies).toHaveLength(1)
    }
  })

  it('does not ask again when the connection breaks before the response', async () => {
    const { client, bodies } = await answerServer([(response) => response.destroy()])

    expect(await errorOf(client.chat.stream(request))).toMatchObject({
      retryable: false,
      cause: expect.any(ConnectionError),
    })
    expect(bodies).toHaveLength(1)
  })

  it('tries a refused connection as often as the client retries', async () => {
    const client = createClient({ baseUrl: await closedOrigin(), apiKey: 'k', initialDelay: 0, retries: 2 })
    const kinds: string[] = []
    client.diagnostics.subscribe(({ kind }) => kinds.push(kind))

    expect(await errorOf(client.chat.stream(request))).toMatchObject({ reason: 'refused' })
    expect(kinds).toEqual(['retry', 'retry'])
  })

  it('errors as other calls that cost do when the service refuses the key or sends no stream', async () => {
    const refused = await answerServer([(response) => answer(response, {}, 401)])
    const plain = await answerServer([(response) => answer(response, completion)])

    expect(await errorOf(refused.client.chat.stream(request))).toBeInstanceOf(AuthenticationError)
    expect(await errorOf(plain.client.chat.stream(request))).toHaveProperty(
      'cause',
      expect.any(ProtocolError),
    )
    expect(plain.bodies).toHaveLength(1)
  })

  it('destroys the socket when it is unsubscribed from', async () => {
    const closed = Promise.withResolvers<unknown>()
    const { client } = await answerServer([
      (response) => {
        openStream(response)
        response.write(framed([chunk('A')]))
        closed.resolve(once(response, 'close'))
      },
    ])

    expect(await lastValueFrom(client.chat.stream(request).pipe(take(1)))).toMatchObject({ text: 'A' })
    await closed.promise
  })

  it('rejects with the reason of its signal', async () => {
    const { client } = await answerServer([(response) => openStream(response)])
    const controller = new AbortController()
    const reason = new Error('enough')
    const answered = errorOf(client.chat.stream(request, { signal: controller.signal }))

    controller.abort(reason)

    expect(await answered).toBe(reason)
  })

  it('reads nothing while the gate of its consumer is closed', async () => {
    const { client } = await answerServer([streaming(...whole)])
    const gate = new Gate()
    gate.close()
    const texts: string[] = []
    const completed = client.chat
      .stream(request)
      .pipe(underGate(gate))
      .forEach(({ text }) => texts.push(text))
    await (await answerServer([streaming(...whole)])).client.chat.stream(request)
    const before = [...texts]

    gate.open()
    await completed

    expect(before).toEqual([])
    expect(texts.at(-1)).toBe('A small stream.')
  })

  it('has the same answer however the stream is cut into pieces', async () => {
    const text = framed(whole)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: text.length }), { maxLength: 6 }), async (cuts) => {
        const places = [0, ...cuts.toSorted((a, b) => a - b), text.length]
        const { client } = await answerServer([
          (response) => {
            openStream(response)
            for (const [index, place] of places.slice(1).entries())
              response.write(text.slice(places[index], place))
            response.end()
          },
        ])
        expect(await client.chat.stream(request)).toMatchObject(completion)
      }),
      { numRuns: 20 },
    )
  })

  it('answers or errors with a typed error, whatever the service streams', async () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }).map((json) => JSON.stringify(json)),
      fc
        .record(
          {
            id: fc.jsonValue({ maxDepth: 1 }),
            basis: fc.jsonValue({ maxDepth: 2 }),
            choices: fc.oneof(
              fc.jsonValue({ maxDepth: 2 }),
              fc.array(
                fc.record(
                  { index: fc.oneof(fc.nat(3), fc.constant(null)), delta: fc.jsonValue({ maxDepth: 1 }) },
                  { requiredKeys: [] },
                ),
              ),
            ),
          },
          { requiredKeys: [] },
        )
        .map((json) => JSON.stringify(json)),
      fc.constantFrom('[DONE]', ...whole),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(value, { maxLength: 5 }), async (data) => {
        const { client } = await answerServer([streaming(...data)])
        const outcome: unknown = await Promise.resolve(client.chat.stream(request)).catch(
          (error: unknown) => error,
        )
        const isTyped = outcome instanceof RequestError || Array.isArray(Object(outcome).choices)
        expect(isTyped).toBe(true)
      }),
      { numRuns: 60 },
    )
  })
})

describe('client.chat.complete', () => {
  it('emits the completion', async () => {
    const { client, bodies } = await answerServer([(response) => answer(response, completion)])

    expect(await client.chat.complete(request)).toEqual(completion)
    expect(bodies).toEqual([{ ...request, stream: false }])
  })

  const Rivulet = z.object({ what: z.string() })
  const withContent = (content: unknown) => ({
    ...completion,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  })

  it('sends a schema, and returns the content that it validates', async () => {
    const { client, bodies } = await answerServer([
      (response) => answer(response, withContent('{"what":"a small stream"}')),
    ])

    const answered = await client.chat.complete(request, { schema: Rivulet })

    expectTypeOf(answered.content).toEqualTypeOf<{ what: string }>()
    expect(answered.content).toEqual({ what: 'a small stream' })
    expect(answered.completion.id).toBe('c1')
    expect(bodies).toMatchObject([
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: { type: 'object', required: ['what'] } },
        },
      },
    ])
  })

  it.each([
    ['does not match', '{"what":5}'],
    ['is not JSON', 'A small stream.'],
  ])('errors when the content %s', async (_, content) => {
    const { client } = await answerServer([(response) => answer(response, withContent(content))])

    const error = await errorOf(client.chat.complete(request, { schema: Rivulet }))

    expect(error).toBeInstanceOf(AnswerSchemaError)
    expect(error).toMatchObject({ text: content })
  })

  it.each([
    ['no content', withContent(null)],
    ['no choice', { ...completion, choices: [] }],
    ['a choice that is null', { ...completion, choices: [null] }],
  ])('errors for a completion with %s', async (_, body) => {
    const { client } = await answerServer([(response) => answer(response, body)])

    expect(await errorOf(client.chat.complete(request, { schema: Rivulet }))).toBeInstanceOf(ProtocolError)
  })

  it('errors for a completion with no list of choices, which is not paid for again', async () => {
    const { client } = await answerServer([(response) => answer(response, { ...completion, choices: null })])

    expect(await errorOf(client.chat.complete(request))).toMatchObject({
      retryable: false,
      cause: expect.any(ProtocolError),
    })
  })

  it('does not ask again when the response is cut', async () => {
    const { client, bodies } = await answerServer([
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 500 })
        response.write('{"id":', () => response.destroy())
      },
    ])

    expect(await errorOf(client.chat.complete(request))).toMatchObject({
      retryable: false,
      cause: expect.any(ConnectionError),
    })
    expect(bodies).toHaveLength(1)
  })

  it('checks its arguments at the call', () => {
    const client = createClient({ baseUrl: 'http://localhost', apiKey: 'k' })
    const format = { ...request, response_format: { type: 'text' } } as const

    expect(() => client.chat.complete({ ...request, messages: [] })).toThrow(ArgumentError)
    expect(() => client.chat.stream({ ...request, model: '' })).toThrow('model')
    expect(() => client.chat.complete(format, { schema: Rivulet })).toThrow(
      'response_format must be left out',
    )
  })
})
