import type { ChatCompletion } from 'rivulet'
import type { Processor } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { answerTo, type Caller, HeldProcessor, running } from '../running.ts'

const PATH = '/v1beta/chat/completions'
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: string) => ({ role: 'assistant', content })

function ask(caller: Caller, messages: readonly unknown[], more: object = {}) {
  return caller.post<ChatCompletion>(PATH, { model: 'base', messages, ...more })
}

/** The documents of the caller, answered by extraction. */
function extracting(): Promise<Caller> {
  return running({ processor: undefined })
}

describe('a chat completion', () => {
  it('answers the last message of the user from the documents, with its basis', async () => {
    const caller = await extracting()
    const { status, body } = await ask(caller, [user('Why do tides rise and fall?')])

    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl_/),
      object: 'chat.completion',
      created: Date.UTC(2026, 0, 1) / 1_000,
      model: 'base',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: expect.stringContaining('the moon and the sun pull') },
          finish_reason: 'stop',
        },
      ],
      basis: [
        expect.objectContaining({
          field: 'output',
          citations: [expect.objectContaining({ url: 'https://sea.example.edu/tides.md' })],
        }),
      ],
      interaction_id: expect.stringMatching(/^intr_/),
      usage: { prompt_tokens: 6, completion_tokens: 25, total_tokens: 31 },
    })
  })

  it('has no basis with the model speed, which is executed as lite', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const answer = ask(caller, [user('x')], { model: 'speed' })
    const run = await processor.next()
    run.complete()
    const { body } = await answer

    expect(run.task.input.processor).toBe('lite')
    expect(body.model).toBe('speed')
    expect(body).not.toHaveProperty('basis')
    expect(body.choices[0]?.message.content).toBe('Answer to x')
  })

  it('says that no answer was found instead of having no content', async () => {
    const { body } = await ask(await extracting(), [user('zxqv')])
    expect(body.choices[0]?.message.content).toMatch(/^The documents do not say/)
  })

  it('gives the processor the earlier messages as turns, and the system messages as instructions', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const answer = ask(caller, [
      { role: 'system', content: 'Be brief' },
      user('one'),
      assistant('1'),
      user('ignored?'),
      user([
        { type: 'text', text: 'two' },
        { type: 'text', text: 'three' },
      ]),
    ])
    const { task, complete } = await processor.next()
    complete()
    await answer

    expect(task).toMatchObject({
      run_id: expect.stringMatching(/^chatcmpl_/),
      input: { input: 'two\nthree', processor: 'base', task_spec: { output_schema: { type: 'text' } } },
      instructions: 'Be brief',
      context: [
        { question: 'one', answer: '1' },
        { question: 'ignored?', answer: '' },
      ],
    })
  })

  it('accepts and ignores sampling parameters, and null for what is absent', async () => {
    const { status } = await ask(await running(), [user('x')], {
      temperature: 0.2,
      top_p: 1,
      max_tokens: 5,
      stop: ['x'],
      stream_options: { include_usage: true },
      response_format: null,
      previous_interaction_id: null,
      stream: null,
    })
    expect(status).toBe(200)
  })

  it('continues from an earlier answer, with the messages of its request, and a run continues from it', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const first = ask(caller, [user('one'), assistant('1'), user('two')])
    ;(await processor.next()).complete()
    const { interaction_id } = (await first).body
    const second = ask(caller, [user('three')], { previous_interaction_id: interaction_id })
    const { task, complete } = await processor.next()
    complete()
    const third = (await second).body.interaction_id
    await caller.post('/v1/tasks/runs', {
      input: 'four',
      processor: 'base',
      previous_interaction_id: third,
    })
    const run = await processor.next()

    const turns = [
      { question: 'one', answer: '1' },
      { question: 'two', answer: 'Answer to two' },
    ]
    expect(task.context).toEqual(turns)
    expect(run.task.context).toEqual([...turns, { question: 'three', answer: 'Answer to three' }])
  })

  it('waits for the run that it continues, without a slot that the run needs', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor, concurrency: 1 })
    const { body: run } = await caller.post<{ interaction_id: string }>('/v1/tasks/runs', {
      input: 'one',
      processor: 'base',
    })
    const answer = ask(caller, [user('two')], { previous_interaction_id: run.interaction_id })
    ;(await processor.next()).complete()
    const { task, complete } = await processor.next()
    complete()

    expect((await answer).status).toBe(200)
    expect(task.context).toEqual([{ question: 'one', answer: 'Answer to one' }])
  })
})

describe('the content of a chat completion', () => {
  const schema = {
    type: 'object',
    properties: { cause: { type: 'string', description: 'why tides rise' } },
    required: ['cause'],
  }

  it('satisfies its JSON schema, with a basis for each field', async () => {
    const { body } = await ask(await extracting(), [user('Tides')], {
      response_format: { type: 'json_schema', json_schema: { name: 'cause', schema } },
    })

    expect(JSON.parse(body.choices[0]?.message.content ?? '')).toEqual({
      cause: expect.stringContaining('moon'),
    })
    expect(body.basis?.map(({ field }) => field)).toEqual(['cause'])
  })

  it('is a JSON object with json_object, also if the processor answers in prose', async () => {
    const { body } = await ask(await running(), [user('x')], { response_format: { type: 'json_object' } })
    expect(body.choices[0]?.message.content).toBe('{"answer":"Answer to x"}')
  })

  it('is refused if the processor answers in prose where a schema is given', async () => {
    const { status, body } = await ask(await running(), [user('x')], {
      response_format: { type: 'json_schema', json_schema: { schema } },
    })
    expect([status, JSON.stringify(body)]).toEqual([500, expect.stringContaining('text')])
  })
})

describe('a chat completion is refused', () => {
  it.each([
    ['with 404 for an unknown model', { model: 'gpt' }, 404, 'There is no model gpt'],
    ['without messages', { messages: [] }, 422, 'messages'],
    ['without a message of the user', { messages: [assistant('x')] }, 422, 'messages'],
    ['with a last question that is blank', { messages: [user('x'), user(' ')] }, 422, 'messages'],
    ['with a part that is not text', { messages: [user([{ type: 'image_url' }])] }, 422, 'messages'],
    ['with an unknown interaction', { previous_interaction_id: 'intr_none' }, 422, 'previous_interaction_id'],
    ['with a question that is too long', { messages: [user('x'.repeat(25_001))] }, 422, 'more than 25000'],
    ['with an unknown format', { response_format: { type: 'xml' } }, 422, 'response_format'],
  ])('%s', async (_, body, status, message) => {
    const caller = await running()
    const answer = await caller.post(PATH, { model: 'base', messages: [user('x')], ...body })
    expect(answer).toMatchObject({
      status,
      body: { type: 'error', error: { message: expect.stringContaining(message) } },
    })
  })

  it('with a 500 that has the message of a processor that failed', async () => {
    const { status, body } = await (await running()).post(PATH, { model: 'base', messages: [user('fail')] })
    expect([status, body.error.message]).toEqual([500, 'The question was not answered: It was asked to fail'])
  })

  it.each([
    ['null', null],
    ['content that is no string', { type: 'text', content: 1, basis: [] }],
    ['an unknown type', { type: 'image', content: 'x', basis: [] }],
  ])('with a 500 when the processor returns %s', async (_, output) => {
    const processor = { run: async () => ({ output }) } as unknown as Processor
    const { status } = await ask(await running({ processor }), [user('x')])
    expect(status).toBe(500)
  })

  it('after 300 requests in a minute, with those for responses', async () => {
    const caller = await running()
    const statuses: number[] = []
    for (let count = 0; count < 300; count++) {
      const body = count % 2 === 0 ? { model: 'base', messages: [user('x')] } : { model: 'm', input: 'x' }
      statuses.push((await caller.post(count % 2 === 0 ? PATH : '/v1/responses', body)).status)
    }
    const { status, headers } = await ask(caller, [user('x')])

    expect(new Set(statuses)).toEqual(new Set([200]))
    expect([status, headers.get('retry-after')]).toEqual([429, '60'])
  })
})

describe('the processor of a chat', () => {
  it('is aborted when the client disconnects', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const client = new AbortController()
    const answer = fetch(caller.url + PATH, {
      method: 'POST',
      headers: { 'x-api-key': caller.service.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'base', messages: [user('x')] }),
      signal: client.signal,
    })
    const { signal } = await processor.next()
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    client.abort()

    await expect(answer).rejects.toThrow('abort')
    await expect(aborted).resolves.toBeDefined()
  })

  it('has the slot of a free execution before queued runs', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor, concurrency: 1 })
    const run = (input: string) => caller.post('/v1/tasks/runs', { input, processor: 'base' })
    await run('first')
    const first = await processor.next()
    await run('queued')
    const answer = ask(caller, [user('chat')])
    // The service has the chat once it has answered a later request of the same kind.
    await caller.post(PATH, { model: 'none', messages: [user('x')] })
    first.complete()
    const second = await processor.next()
    second.complete()
    await answer
    const third = await processor.next()

    expect([second, third].map(({ task }) => task.input.input)).toEqual(['chat', 'queued'])
  })

  it('does not delay the closing of the service, whose client gets a 503', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const answer = ask(caller, [user('x')])
    const { signal } = await processor.next()
    await caller.service.close()

    expect((await answer).status).toBe(503)
    expect(signal.aborted).toBe(true)
  })
})

it('a chat answers with the output of a custom processor', async () => {
  const processor: Processor = {
    run: async ({ input }) => ({
      output: { ...answerTo(input.input).output, type: 'json', content: { custom: true } },
    }),
  }
  const { body } = await ask(await running({ processor }), [user('x')])
  expect(body.choices[0]?.message.content).toBe('{"custom":true}')
})
