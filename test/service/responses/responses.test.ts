import OpenAI, { NotFoundError } from 'openai'
import type { ChatCompletion, ResponseEvent, ResponseObject, TaskRun } from 'rivulet'
import type { Processor } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { answerTo, type Caller, HeldProcessor, running } from '../running.ts'
import { wire } from '../wire.ts'

const PATH = '/v1/responses'

function ask(caller: Caller, input: unknown, more: object = {}) {
  return caller.post<ResponseObject>(PATH, { model: 'research', input, ...more })
}

function eventsIn(text: string): ResponseEvent[] {
  return [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, type, data = '']) => {
    const event: ResponseEvent = JSON.parse(data)
    expect(event.type).toBe(type)
    return event
  })
}

const textOf = ({ output }: ResponseObject) => output[0]?.content[0]?.text ?? ''
const citationsOf = ({ output }: ResponseObject) => output[0]?.content[0]?.annotations ?? []

describe('a response', () => {
  it('answers from the documents, with citations of the paragraphs that they support', async () => {
    const { status, body } = await ask(await running({ processor: undefined }), 'Why do tides rise and fall?')
    const [citation] = citationsOf(body)

    expect(status).toBe(200)
    expect(body).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: 'response',
      created_at: Date.UTC(2026, 0, 1) / 1_000,
      status: 'completed',
      model: 'research',
      error: null,
      previous_response_id: null,
      output: [{ type: 'message', role: 'assistant', status: 'completed' }],
    })
    expect(citation).toMatchObject({ type: 'url_citation', url: 'https://sea.example.edu/tides.md' })
    expect(textOf(body).slice(citation?.start_index, citation?.end_index)).toContain('the moon and the sun')
  })

  it('cites each paragraph from the page whose excerpt contains it, and the whole text otherwise', async () => {
    const processor: Processor = {
      run: async () => ({
        output: {
          type: 'text',
          content: 'First 🌊 point.\n\nSecond point.',
          basis: [
            {
              field: 'output',
              reasoning: '',
              citations: [
                { url: 'https://b.example', excerpts: ['Before. Second\npoint. After'] },
                { url: 'https://a.example', title: 'A', excerpts: ['First 🌊 point.'] },
                { url: 'https://c.example' },
              ],
            },
          ],
        },
      }),
    }
    const { body } = await ask(await running({ processor }), 'x')
    const cited = citationsOf(body).map(({ url, start_index, end_index }) => [
      url,
      textOf(body).slice(start_index, end_index),
    ])

    expect(cited).toEqual([
      ['https://a.example', 'First 🌊 point.'],
      ['https://c.example', 'First 🌊 point.\n\nSecond point.'],
      ['https://b.example', 'Second point.'],
    ])
  })

  it('cites the value of a field whose name has a dot, and of an element of a list', async () => {
    const processor: Processor = {
      run: async () => ({
        output: {
          type: 'json',
          content: { 'engines.node': '>=22', people: [{ name: 'Ada' }], 'people.1': 'Bob' },
          basis: ['engines.node', 'people.0.name', 'people.1'].map((field) => ({
            field,
            reasoning: '',
            citations: [{ url: `https://a.example/${field}` }],
          })),
        },
      }),
    }
    const { body } = await ask(await running({ processor }), 'x', {
      text: { format: { type: 'json_schema', name: 'any', schema: { type: 'object' } } },
    })
    const cited = citationsOf(body).map(({ url, start_index, end_index }) => [
      url,
      textOf(body).slice(start_index, end_index),
    ])

    expect(cited).toEqual([
      ['https://a.example/engines.node', '">=22"'],
      ['https://a.example/people.0.name', '[{"name":"Ada"}]'],
      ['https://a.example/people.1', '"Bob"'],
    ])
  })

  it('with a JSON schema has content that satisfies it, and citations of the values', async () => {
    const schema = {
      type: 'object',
      properties: { cause: { type: 'string', description: 'why tides rise' } },
      required: ['cause'],
    }
    const { body } = await ask(await running({ processor: undefined }), 'Tides', {
      text: { format: { type: 'json_schema', name: 'cause', schema } },
    })
    const { cause } = JSON.parse(textOf(body))
    const [citation] = citationsOf(body)

    expect(cause).toContain('moon')
    expect(textOf(body).slice(citation?.start_index, citation?.end_index)).toBe(JSON.stringify(cause))
  })

  it.each([
    ['low', 'lite'],
    ['medium', 'base'],
    ['high', 'core'],
    [undefined, 'base'],
  ])('of the effort %s is executed by the processor %s', async (effort, expected) => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const answer = ask(caller, 'x', { reasoning: { effort } })
    const { task, complete } = await processor.next()
    complete()
    await answer
    expect(task.input.processor).toBe(expected)
  })

  it('continues an earlier one, and accepts its output as input', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const first = ask(caller, 'one')
    ;(await processor.next()).complete()
    const { id, output } = (await first).body
    const second = ask(caller, 'two', { previous_response_id: id, instructions: 'Be brief' })
    const continued = await processor.next()
    continued.complete()
    const input = [{ role: 'user', content: 'one' }, ...output, { role: 'user', content: 'two' }]
    const third = ask(caller, input)
    const resent = await processor.next()
    resent.complete()
    await third

    const context = [{ question: 'one', answer: 'Answer to one' }]
    expect((await second).body.previous_response_id).toBe(id)
    expect(continued.task).toMatchObject({ context, instructions: 'Be brief' })
    expect(resent.task).toMatchObject({ context, input: { input: 'two' } })
  })

  it('that continues an unknown one is a 404', async () => {
    const { status, body } = await (
      await running()
    ).post(PATH, { model: 'm', input: 'x', previous_response_id: 'resp_none' })
    expect([status, body]).toEqual([
      404,
      {
        type: 'error',
        error: {
          ref_id: expect.any(String),
          message: 'There is no response, interaction or run resp_none to continue',
          detail: { param: 'previous_response_id', code: 'previous_response_not_found' },
        },
      },
    ])
  })

  it.each([
    ['an empty input', { input: [] }, 'input'],
    ['an unknown effort', { reasoning: { effort: 'extreme' } }, 'effort'],
  ])('is refused with %s', async (_, body, message) => {
    const answer = await (await running()).post(PATH, { model: 'm', input: 'x', ...body })
    expect([answer.status, answer.body.error.message]).toEqual([422, expect.stringContaining(message)])
  })
})

it('the last 1,000 chats and responses are kept, with their turns', async () => {
  const caller = await running({ quotas: false })
  const previous = (await caller.post<TaskRun>('/v1/tasks/runs', { input: 'one' })).body.interaction_id
  const first = (await ask(caller, 'one', { previous_response_id: previous })).body
  const chat = { model: 'lite', messages: ['two', 'three'].map((content) => ({ role: 'user', content })) }
  const second = (await caller.post<ChatCompletion>('/v1beta/chat/completions', chat)).body
  const third = (await ask(caller, 'four', { previous_response_id: first.id })).body
  const fill = async (count: number) => {
    for (let left = count; left > 0; left -= 100)
      await Promise.all(Array.from({ length: Math.min(left, 100) }, () => ask(caller, 'x')))
  }
  const statusOf = async (previous_response_id: string | null | undefined) =>
    (await ask(caller, 'y', { previous_response_id })).status

  await fill(997)
  // Each of these drops the oldest one.
  expect([await statusOf(first.id), await statusOf(first.id)]).toEqual([200, 404])
  expect((await caller.get(`${PATH}/${first.id}`)).status).toBe(404)
  expect([await statusOf(second.interaction_id), await statusOf(second.interaction_id)]).toEqual([200, 404])
  expect([await statusOf(third.id), await statusOf(previous)]).toEqual([200, 200])
})

describe('a streamed response', () => {
  const stream = (input: string) => JSON.stringify({ model: 'research', input, stream: true })

  it('sends its events in order, numbered from 0, and the deltas are exactly the text', async () => {
    const answer = await wire(await running(), PATH, 'POST', stream('a b'))
    const events = eventsIn(answer.content.toString())
    const last = events.at(-1)
    const deltas = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : ''))

    expect(events.map(({ type }) => type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      ...['Answer', ' to', ' a', ' b'].map(() => 'output_text.delta'),
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index))
    expect(deltas.join('')).toBe('Answer to a b')
    expect(last?.type === 'response.completed' && textOf(last.response)).toBe('Answer to a b')
  })

  it('ends with response.failed when the processor fails', async () => {
    const answer = await wire(await running(), PATH, 'POST', stream('fail'))
    const events = eventsIn(answer.content.toString())

    expect(events.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.failed',
    ])
    expect(events.at(-1)).toMatchObject({
      sequence_number: 2,
      response: { status: 'failed', error: { message: expect.stringContaining('It was asked to fail') } },
    })
  })

  it('ends with response.failed when the service closes', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const answer = wire(caller, PATH, 'POST', stream('x'))
    await processor.next()
    await caller.service.close()

    expect(eventsIn((await answer).content.toString()).at(-1)?.type).toBe('response.failed')
  })

  it('that is cut has neither response.completed nor response.failed', async () => {
    const caller = await running({ faults: [{ kind: 'cut', path: PATH, after: 5 }] })
    const answer = await wire(caller, PATH, 'POST', stream('x'))
    const types = eventsIn(answer.content.toString()).map(({ type }) => type)

    expect(types).toHaveLength(5)
    expect(types).not.toContain('response.completed')
  })
})

it('the common client gets a response, whole and streamed', async () => {
  const { service, url } = await running({ processor: { run: async ({ input }) => answerTo(input.input) } })
  const { responses } = new OpenAI({
    apiKey: 'unused',
    baseURL: `${url}/v1`,
    defaultHeaders: { 'x-api-key': service.apiKey },
    maxRetries: 0,
  })
  const whole = await responses.create({ model: 'research', input: [{ role: 'user', content: 'x' }] })
  const stream = responses.stream({ model: 'research', input: 'y', previous_response_id: whole.id })
  const streamed = await stream.finalResponse()

  expect([whole.output_text, streamed.output_text]).toEqual(['Answer to x', 'Answer to y'])
  await expect(responses.retrieve(whole.id)).resolves.toEqual(whole)
  await expect(responses.retrieve(streamed.id)).resolves.toMatchObject({
    id: streamed.id,
    output_text: 'Answer to y',
    previous_response_id: whole.id,
  })
  await expect(responses.retrieve('resp_none')).rejects.toBeInstanceOf(NotFoundError)
})
