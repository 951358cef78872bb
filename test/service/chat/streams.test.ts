import { join } from 'node:path'
import OpenAI from 'openai'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { CHAT_MODELS } from '../../../src/protocol/chat.ts'
import type { ChatChunk, ChatRequest as OurRequest, ErrorResponse } from '../../../src/protocol/index.ts'
import type { Fault, Processor } from '../../../src/service/index.ts'
import { openApiDocument } from '../../../src/service/openapi/document.ts'
import { IGNORED } from '../../../src/service/openapi/endpoints/chat.ts'
import { type Caller, documentFolder, HeldProcessor, running, temporaryFolder } from '../running.ts'
import { Wire, wire } from '../wire.ts'

const PATH = '/v1beta/chat/completions'
const bodyOf = (content: string, more: object = {}) =>
  JSON.stringify({ model: 'base', messages: [{ role: 'user', content }], stream: true, ...more })

/** A processor with this answer in prose. */
const saying = (content: string): Processor => ({
  run: async () => ({
    output: { type: 'text', content, basis: [{ field: 'output', reasoning: 'It was asked' }] },
  }),
})

/** The data of each message, which have no other fields. */
function messagesOf(text: string): string[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => block.replace(/^data: /, ''))
}

function chunksIn(text: string): ChatChunk[] {
  return messagesOf(text)
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data))
}

const contentIn = (chunks: readonly ChatChunk[]) =>
  chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')

function openAi({ service, url }: Caller): OpenAI {
  return new OpenAI({
    apiKey: 'unused',
    baseURL: `${url}/v1beta`,
    defaultHeaders: { 'x-api-key': service.apiKey },
    maxRetries: 0,
  })
}

describe('a streamed chat completion', () => {
  it('sends the role, the content in words, the end with its basis and interaction, and [DONE]', async () => {
    const answer = await wire(
      await running({ processor: saying('Tides rise  twice\na day.') }),
      PATH,
      'POST',
      bodyOf('x'),
    )
    const chunks = chunksIn(answer.content.toString())

    expect(answer.header('content-type')).toBe('text/event-stream')
    expect(chunks.map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: 'assistant', content: '' },
      ...['Tides', ' rise', '  twice', '\na', ' day.'].map((content) => ({ content })),
      {},
    ])
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason ?? null)).toEqual([
      ...chunks.slice(1).map(() => null),
      'stop',
    ])
    expect(chunks.at(-1)).toMatchObject({
      basis: [{ field: 'output' }],
      interaction_id: expect.stringMatching(/^intr_/),
    })
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
    expect(messagesOf(answer.content.toString()).at(-1)).toBe('[DONE]')
    expect(answer.chunked.isComplete).toBe(true)
  })

  it.each([
    ['long words', 'x'.repeat(3_000)],
    ['white space', `a${' '.repeat(1_000)}\n\n\tb `],
    ['surrogate pairs', '🌊'.repeat(300)],
    ['half a surrogate pair', 'a\ud83c b'],
    ['text that looks like an event', 'data: [DONE]\n\ndata: {"x":1}\r\n'],
  ])('has exactly the content, with %s', async (_, content) => {
    const answer = await wire(await running({ processor: saying(content) }), PATH, 'POST', bodyOf('x'))
    expect(contentIn(chunksIn(answer.content.toString()))).toBe(content)
  })

  it('sends its headers and the role before the answer is there', async () => {
    const processor = new HeldProcessor()
    const answer = new Wire(await running({ processor }), PATH, 'POST', bodyOf('x'))
    const { complete } = await processor.next()
    await answer.events(1)
    const before = chunksIn(answer.content.toString())
    complete()
    await answer.closed

    expect(contentIn(before)).toBe('')
    expect(before).toHaveLength(1)
    expect(contentIn(chunksIn(answer.content.toString()))).toBe('Answer to x')
  })

  it('ends with an error and without [DONE] when the processor fails', async () => {
    const answer = await wire(await running(), PATH, 'POST', bodyOf('fail'))
    const messages = messagesOf(answer.content.toString())

    expect(messages).toHaveLength(2)
    const error: ErrorResponse = JSON.parse(messages[1] ?? '')
    expect(error).toEqual({
      type: 'error',
      error: {
        ref_id: expect.any(String),
        message: 'The question was not answered: It was asked to fail',
        detail: null,
      },
    })
  })

  it('ends with an error, which the service reports, when the turn cannot be stored', async () => {
    const errors: unknown[] = []
    const data = join(await temporaryFolder(), 'service.sqlite')
    const { DatabaseSync } = await import('node:sqlite')
    const caller = await running({ data, onError: (error) => errors.push(error) })
    const other = new DatabaseSync(data)
    other.exec(
      "CREATE TRIGGER full BEFORE INSERT ON interactions BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    )
    other.close()
    const answer = await wire(caller, PATH, 'POST', bodyOf('x'))

    expect(messagesOf(answer.content.toString()).at(-1)).toContain('ref_id')
    expect(String(errors[0])).toContain('the disk is full')
  })

  it('aborts the processor when the client disconnects', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const client = new AbortController()
    const headers = { 'x-api-key': caller.service.apiKey, 'content-type': 'application/json' }
    await fetch(caller.url + PATH, { method: 'POST', headers, body: bodyOf('x'), signal: client.signal })
    const { signal } = await processor.next()
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    client.abort()

    await expect(aborted).resolves.toBeDefined()
  })

  it('is answered after a restart from what was stored', async () => {
    const data = join(await temporaryFolder(), 'service.sqlite')
    const docs = await documentFolder()
    const first = await running({ data, docs })
    const answer = await wire(first, PATH, 'POST', bodyOf('one'))
    const { interaction_id } = chunksIn(answer.content.toString()).at(-1) ?? {}
    await first.service.close()
    const processor = new HeldProcessor()
    const second = await running({ data, docs, processor })
    const next = new Wire(second, PATH, 'POST', bodyOf('two', { previous_interaction_id: interaction_id }))
    const { task, complete } = await processor.next()
    complete()
    await next.closed

    expect(task.context).toEqual([{ question: 'one', answer: 'Answer to one' }])
  })
})

describe('a fault in the stream of a chat', () => {
  it.each<[string, Fault, number]>([
    ['cut after two messages', { kind: 'cut', path: PATH, after: 2 }, 2],
    ['cut within a message', { kind: 'cut', path: PATH, after: 2, at: 'line' }, 2],
    ['closed after two messages', { kind: 'close', path: PATH, after: 2 }, 2],
  ])('%s leaves no [DONE]', async (_, fault, count) => {
    const caller = await running({ faults: [fault] })
    const answer = await wire(caller, PATH, 'POST', bodyOf('x'))
    const text = answer.content.toString()

    expect(text).not.toContain('[DONE]')
    expect(messagesOf(text.slice(0, text.lastIndexOf('\n\n')))).toHaveLength(count)
  })

  it('malformed cuts the JSON of one message and continues', async () => {
    const caller = await running({ faults: [{ kind: 'malformed', path: PATH, after: 1, times: 1 }] })
    const messages = messagesOf((await wire(caller, PATH, 'POST', bodyOf('x'))).content.toString())

    expect(() => JSON.parse(messages[1] ?? '')).toThrow(SyntaxError)
    expect(messages.at(-1)).toBe('[DONE]')
  })
})

describe('the common client', () => {
  it('gets a completion, whole and streamed', async () => {
    const { chat } = openAi(await running({ processor: saying('Two tides a day.') }))
    const request = { model: 'core', messages: [{ role: 'user' as const, content: 'x' }], temperature: 0 }
    const whole = await chat.completions.create(request)
    let streamed = ''
    for await (const { choices } of await chat.completions.create({ ...request, stream: true })) {
      streamed += choices[0]?.delta.content ?? ''
    }

    expect([whole.choices[0]?.message.content, streamed]).toEqual(['Two tides a day.', 'Two tides a day.'])
  })

  it('gets the usage of a completion, and of a stream that asks for it, with instructions of a developer', async () => {
    const { chat } = openAi(await running({ processor: saying('Two tides a day.') }))
    const messages = [
      { role: 'developer' as const, content: 'Be brief.' },
      { role: 'user' as const, content: 'How many tides?' },
    ]
    const request = { model: 'base', messages, stream: true as const }
    const usagesOf = async (more: object) => {
      const usages: unknown[] = []
      for await (const chunk of await chat.completions.create({ ...request, ...more }))
        usages.push(chunk.usage)
      return usages
    }
    const usage = { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 }

    await expect(chat.completions.create({ ...request, stream: false })).resolves.toMatchObject({ usage })
    expect(await usagesOf({ stream_options: { include_usage: true } })).toEqual([
      ...Array.from({ length: 6 }, () => null),
      usage,
    ])
    expect(new Set(await usagesOf({}))).toEqual(new Set([undefined]))
  })

  it('lists the models', async () => {
    const caller = await running()
    const { data } = await openAi(caller).models.list()

    expect(data.map(({ id, object }) => [id, object])).toEqual(CHAT_MODELS.map((id) => [id, 'model']))
    expect((await caller.get('/v1/models')).body).toMatchObject({ object: 'list', data })
  })

  it('finds each of its parameters in the OpenAPI document', () => {
    const { ChatRequest } = openApiDocument({ betaHeader: 'service-beta' }).components.schemas
    type Parameter = keyof OpenAI.ChatCompletionCreateParams

    expectTypeOf<Exclude<Parameter, (typeof IGNORED)[number] | keyof OurRequest>>().toBeNever()
    for (const name of IGNORED) {
      expect(ChatRequest).toHaveProperty(['properties', name], { description: 'Accepted and ignored' })
    }
  })

  it('throws for an unknown model and for an error within a stream', async () => {
    const { chat } = openAi(await running())
    const ask = (model: string) =>
      chat.completions.create({ model, messages: [{ role: 'user', content: 'fail' }], stream: true })

    await expect(ask('gpt')).rejects.toThrow('There is no model gpt')
    await expect(async () => {
      for await (const _ of await ask('base'));
    }).rejects.toThrow('It was asked to fail')
  })
})
