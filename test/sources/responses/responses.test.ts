import * as fc from 'fast-check'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  AnswerFailedError,
  AnswerInterruptedError,
  AnswerSchemaError,
  ArgumentError,
  createClient,
  ProtocolError,
  ResponseFailedError,
  responseText,
  RequestError,
} from 'rivulet'
import type { ResponseObject, ResponseRequest } from 'rivulet'
import { z } from 'zod'
import { answerServer, cutting, streaming } from '../../support/answer-server.ts'
import { answer } from '../../support/serve.ts'

const request: ResponseRequest = { model: 'm', input: 'What is a rivulet?', previous_response_id: 'r0' }

const responseOf = (text: string, others: object = {}) => ({
  id: 'r1',
  object: 'response',
  created_at: 7,
  status: 'completed',
  model: 'm',
  output: [
    {
      type: 'message',
      id: 'i1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text, annotations: [] }],
    },
  ],
  ...others,
})

const place = { item_id: 'i1', output_index: 0, content_index: 0 }
const begun = responseOf('', { status: 'in_progress', output: [] })

/** The events of one response. */
const EVENTS = [
  { type: 'response.created', response: begun },
  { type: 'response.in_progress', response: begun },
  { type: 'response.output_item.added', output_index: 0, item: { id: 'i1' } },
  { type: 'response.content_part.added', ...place, part: { type: 'output_text', text: '' } },
  { type: 'response.output_text.delta', ...place, delta: 'A small ' },
  { type: 'response.output_text.delta', ...place, delta: 'stream.' },
  { type: 'response.output_text.done', ...place, text: 'A small stream.' },
  { type: 'response.completed', response: responseOf('A small stream.') },
].map((event, sequence_number) => Object.assign(event, { sequence_number }))

const lines = (events: readonly object[] = EVENTS) => events.map((event) => JSON.stringify(event))

const errorOf = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => expect.unreachable('there was an answer'),
    (error: unknown) => error,
  )

describe('client.responses.stream', () => {
  it('emits each event with the text so far', async () => {
    const { client, bodies } = await answerServer([streaming(...lines())])

    const emitted = await lastValueFrom(client.responses.stream(request).pipe(toArray()))

    expect(emitted.map(({ event }) => event)).toEqual(EVENTS)
    expect(emitted.map(({ text }) => text).slice(3)).toEqual([
      '',
      'A small ',
      'A small stream.',
      'A small stream.',
      'A small stream.',
    ])
    expect(bodies).toEqual([{ ...request, stream: true }])
  })

  it('resolves to the completed response', async () => {
    const { client } = await answerServer([streaming(...lines())])

    const answered = await client.responses.stream(request)

    expectTypeOf(answered).toEqualTypeOf<ResponseObject>()
    expect(answered).toEqual(responseOf('A small stream.'))
  })

  it('takes a sequence that begins with 1', async () => {
    const { client } = await answerServer([
      streaming(...lines(EVENTS.map((event, index) => ({ ...event, sequence_number: index + 1 })))),
    ])

    expect(await client.responses.stream(request)).toMatchObject({ id: 'r1' })
  })

  it('drops an event that is repeated', async () => {
    const repeated = EVENTS.flatMap((event, index) => [
      event,
      ...EVENTS.slice(Math.max(0, index - 2), index + 1),
    ])
    const { client } = await answerServer([streaming(...lines(repeated))])

    const emitted = await lastValueFrom(client.responses.stream(request).pipe(toArray()))

    expect(emitted.map(({ event }) => event)).toEqual(EVENTS)
    expect(emitted.at(-2)?.text).toBe('A small stream.')
  })

  it.each(EVENTS.slice(0, -1).map(({ type }, index) => [type, index] as const))(
    'errors where %s (event %i) is missing, and does not ask again',
    async (_, missing) => {
      const { client, bodies } = await answerServer([
        streaming(...lines(EVENTS.filter((__, index) => index !== missing))),
      ])

      const error = await errorOf(client.responses.stream(request))

      expect(error).toBeInstanceOf(AnswerInterruptedError)
      expect(String(error)).toContain('events are missing')
      expect(bodies).toHaveLength(1)
    },
  )

  it('passes on events of an unknown type, with a number or without', async () => {
    const unknown = { type: 'response.reasoning.delta', delta: 5, error: 'of a tool' }
    const unnumbered = [...EVENTS.slice(0, 5), unknown, ...EVENTS.slice(5)]
    const numbered = unnumbered.map((event, sequence_number) => Object.assign({}, event, { sequence_number }))
    for (const events of [numbered, unnumbered]) {
      const { client } = await answerServer([streaming(...lines(events))])

      const emitted = await lastValueFrom(client.responses.stream(request).pipe(toArray()))

      expect(emitted[5]?.event).toEqual({ type: 'unknown', data: events[5] })
      expect(emitted).toHaveLength(EVENTS.length + 1)
    }
  })

  it('takes the text of response.output_text.done for its part', async () => {
    const done = { type: 'response.output_text.done', ...place, text: 'Another text.', sequence_number: 6 }
    const second = { ...place, content_index: 1 }
    const more = { type: 'response.output_text.delta', ...second, delta: ' And more.', sequence_number: 7 }
    const { client } = await answerServer([streaming(...lines([...EVENTS.slice(0, 6), done, more]))])
    const texts: string[] = []

    const error = await errorOf(client.responses.stream(request).forEach(({ text }) => texts.push(text)))

    expect(texts.slice(-2)).toEqual(['Another text.', 'Another text. And more.'])
    expect(error).toMatchObject({ text: 'Another text. And more.' })
  })

  it('errors with the response and the text so far after response.failed', async () => {
    const response = responseOf('', { status: 'failed', error: { code: 'no_credit', message: 'no credit' } })
    const failed = { type: 'response.failed', response, sequence_number: 5 }
    const { client, bodies } = await answerServer([streaming(...lines([...EVENTS.slice(0, 5), failed]))])

    const error = await errorOf(client.responses.stream(request))

    expect(error).toBeInstanceOf(ResponseFailedError)
    expect(error).toBeInstanceOf(AnswerFailedError)
    expect(error).toMatchObject({
      response,
      text: 'A small ',
      code: 'response_failed',
      serviceCode: 'no_credit',
      retryable: false,
    })
    expect(String(error)).toContain('no credit')
    expect(bodies).toHaveLength(1)
  })

  it('errors after an error event', async () => {
    const { client } = await answerServer([
      streaming(
        ...lines(EVENTS.slice(0, 5)),
        '{"type":"error","message":"overloaded","code":"c","sequence_number":5}',
      ),
    ])

    expect(await errorOf(client.responses.stream(request))).toMatchObject({
      name: 'AnswerFailedError',
      text: 'A small ',
      serviceCode: 'c',
    })
  })

  it.each([
    ['the stream ends before response.completed', streaming(...lines(EVENTS.slice(0, 5)))],
    ['the stream ends with [DONE] before it', streaming(...lines(EVENTS.slice(0, 5)), '[DONE]')],
    ['the connection breaks', cutting(...lines(EVENTS.slice(0, 5)))],
    ['an event is not JSON', streaming(...lines(EVENTS.slice(0, 5)), '{')],
    ['a delta is not a text', streaming(...lines([...EVENTS.slice(0, 5), { ...EVENTS[5], delta: 5 }]))],
    [
      'the completed response is null',
      streaming(...lines([...EVENTS.slice(0, 5), { ...EVENTS[7], sequence_number: 5, response: null }])),
    ],
    [
      'the completed response has no output',
      streaming(...lines([...EVENTS.slice(0, 5), { ...EVENTS[7], sequence_number: 5, response: {} }])),
    ],
    [
      'a number is a text',
      streaming(...lines([...EVENTS.slice(0, 5), { ...EVENTS[5], sequence_number: '5' }])),
    ],
  ])('errors with the text so far when %s, and does not ask again', async (_, reply) => {
    const { client, bodies } = await answerServer([reply])

    const error = await errorOf(client.responses.stream(request))

    expect(error).toBeInstanceOf(AnswerInterruptedError)
    expect(error).toMatchObject({ text: 'A small ', retryable: false })
    expect(bodies).toHaveLength(1)
  })

  it('answers or errors with a typed error, whatever the service streams', async () => {
    const wire = fc.record(
      {
        type: fc.oneof(fc.constantFrom(...EVENTS.map(({ type }) => type)), fc.jsonValue({ maxDepth: 1 })),
        sequence_number: fc.oneof(fc.nat(3), fc.jsonValue({ maxDepth: 0 })),
        response: fc.oneof(fc.constant(responseOf('x')), fc.jsonValue({ maxDepth: 2 })),
        delta: fc.oneof(fc.string(), fc.jsonValue({ maxDepth: 0 })),
        text: fc.jsonValue({ maxDepth: 0 }),
        item_id: fc.jsonValue({ maxDepth: 1 }),
        error: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(wire, { maxLength: 5 }), async (events) => {
        const { client } = await answerServer([streaming(...lines(events))])
        const outcome: unknown = await Promise.resolve(client.responses.stream(request)).catch(
          (error: unknown) => error,
        )
        const isTyped = outcome instanceof RequestError || Array.isArray(Object(outcome).output)
        expect(isTyped).toBe(true)
      }),
      { numRuns: 60 },
    )
  })
})

describe('client.responses.create', () => {
  it('emits the response', async () => {
    const { client, bodies } = await answerServer([(response) => answer(response, responseOf('Hi'))])

    expect(responseText(await client.responses.create(request))).toBe('Hi')
    expect(bodies).toEqual([{ ...request, stream: false }])
  })

  it('errors for a response that has failed, and for one without an output', async () => {
    const failed = await answerServer([
      (response) => answer(response, responseOf('', { status: 'failed', error: null })),
    ])
    const empty = await answerServer([(response) => answer(response, {})])

    expect(await errorOf(failed.client.responses.create(request))).toBeInstanceOf(ResponseFailedError)
    expect(await errorOf(empty.client.responses.create(request))).toHaveProperty(
      'cause',
      expect.any(ProtocolError),
    )
  })

  const Rivulet = z.object({ what: z.string() })

  it('sends a schema, and returns the text that it validates', async () => {
    const { client, bodies } = await answerServer([
      (response) => answer(response, responseOf('{"what":"a small stream"}')),
    ])

    const { content } = await client.responses.create(request, { schema: Rivulet })

    expectTypeOf(content).toEqualTypeOf<{ what: string }>()
    expect(content).toEqual({ what: 'a small stream' })
    expect(bodies).toMatchObject([{ text: { format: { type: 'json_schema', schema: { type: 'object' } } } }])
  })

  it('errors when the text does not match the schema', async () => {
    const { client } = await answerServer([(response) => answer(response, responseOf('{"what":5}'))])

    expect(await errorOf(client.responses.create(request, { schema: Rivulet }))).toBeInstanceOf(
      AnswerSchemaError,
    )
  })

  it('checks its arguments at the call', () => {
    const { responses } = createClient({ baseUrl: 'http://localhost', apiKey: 'k' })
    const formatted = { ...request, text: { format: { type: 'text' } } } as const

    expect(() => responses.create({ ...request, input: [] })).toThrow(ArgumentError)
    expect(() => responses.create(formatted, { schema: Rivulet })).toThrow('text.format must be left out')
  })
})

it('reads the text of a response from all of its parts, whatever else its output has', () => {
  const output: unknown = [
    null,
    { type: 'reasoning' },
    { content: [{ type: 'output_text', text: 'a' }, { type: 'refusal', text: 'no' }, 4] },
    { content: [{ type: 'output_text', text: 'b' }] },
  ]
  expect(responseText({ ...responseOf(''), output } as ResponseObject)).toBe('ab')
})
