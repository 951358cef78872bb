import type { ServerResponse } from 'node:http'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { reconnect } from 'rivulet/operators'
import { lastValueFrom } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { answer, serve } from '../../support/serve.ts'

const findAllRequest = {
  objective: 'find them',
  entity_type: 'companies',
  match_conditions: [{ name: 'n', description: 'd' }],
  generator: 'base',
  match_limit: 5,
} as const
const UNANSWERED = 'not answered in time'
const question = { model: 'speed', messages: [{ role: 'user', content: 'x' }] } as const
const enrichment = { output_schema: { type: 'json', json_schema: {} } } as const

const calls: readonly [string, (client: ResearchClient) => Observable<unknown>][] = [
  ['tasks.create', ({ tasks }) => tasks.create({ input: 'x', processor: 'base' })],
  ['tasks.run', ({ tasks }) => tasks.run('x')],
  ['taskGroups.create', ({ taskGroups }) => taskGroups.create()],
  [
    'taskGroups.addRuns',
    ({ taskGroups }) => taskGroups.addRuns('g', { inputs: [{ input: 'x', processor: 'base' }] }),
  ],
  ['findAll.create', ({ findAll }) => findAll.create(findAllRequest)],
  ['findAll.run', ({ findAll }) => findAll.run(findAllRequest)],
  ['findAll.extend', ({ findAll }) => findAll.extend('f', { additional_match_limit: 5 })],
  ['findAll.enrich', ({ findAll }) => findAll.enrich('f', enrichment)],
  [
    'monitors.create',
    ({ monitors }) =>
      monitors.create({ type: 'event_stream', frequency: '1d', settings: { query: 'What is new?' } }),
  ],
  ['monitors.trigger', ({ monitors }) => monitors.trigger('m')],
]

/** They wait for 10 minutes at least, so that none of these tests waits for their timeout. */
const answers: typeof calls = [
  ['chat.complete', ({ chat }) => chat.complete(question)],
  ['chat.stream', ({ chat }) => chat.stream(question)],
  ['responses.create', ({ responses }) => responses.create({ model: 'm', input: 'x' })],
  ['responses.stream', ({ responses }) => responses.stream({ model: 'm', input: 'x' })],
]

const uncertain: readonly [string, (response: ServerResponse) => void][] = [
  ['whose answer is lost', (response) => response.destroy()],
  ['answered with 500', (response) => answer(response, { error: { ref_id: 'r', message: 'no' } }, 500)],
  ['answered with 502 by a proxy', (response) => response.writeHead(502).end('bad gateway')],
  ['answered with 503 by a proxy', (response) => response.writeHead(503).end('unavailable')],
  ['answered with 408', (response) => answer(response, { error: { ref_id: 'r', message: 'late' } }, 408)],
  [UNANSWERED, () => {}],
  ['answered with no JSON', (response) => response.writeHead(200).end('<html>')],
]

/** A client, and the number of requests that its service received. */
async function counting(respond: (response: ServerResponse, nth: number) => void) {
  let requests = 0
  const baseUrl = await serve((request, response) => {
    request.resume().on('end', () => respond(response, ++requests))
  })
  const timeouts = { headers: 200 }
  const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, timeouts })
  return { client, sent: () => requests }
}

describe.each([...calls, ...answers])('%s', (name, call) => {
  const isAnswer = answers.some(([known]) => known === name)
  const cases = uncertain.filter(([what]) => !isAnswer || what !== UNANSWERED)

  it.each(cases)('is not sent again by reconnect either, for a request %s', async (__, respond) => {
    const { client, sent } = await counting(respond)
    const retried = call(client).pipe(reconnect({ initialDelay: 0, maxFailures: 3 }))

    await expect(lastValueFrom(retried)).rejects.toMatchObject({ retryable: false })
    expect(sent()).toBe(1)
  })

  it('is sent again while the service says that it has not acted on the request', async () => {
    const refusal = { error: { ref_id: 'r', message: 'not now' } }
    const { client, sent } = await counting((response, nth) =>
      answer(response, refusal, nth === 1 ? 503 : nth === 2 ? 429 : 422),
    )

    await expect(lastValueFrom(call(client))).rejects.toMatchObject({ retryable: false })
    expect(sent()).toBe(3)
  })
})
