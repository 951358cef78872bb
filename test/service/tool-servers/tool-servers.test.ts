import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { McpServer, TaskRun, TaskRunResult } from '../../../src/protocol/task.ts'
import { createResearchService } from '../../../src/service/index.ts'
import type { ProcessorProgress } from '../../../src/service/processor/processor.ts'
import { withToolServers } from '../../../src/service/tool-servers/tool-servers.ts'
import { createWeb, type WebOptions } from '../../../src/service/web/safe-fetch.ts'
import { answer, serve } from '../../support/serve.ts'
import { answerTo, Caller, documentFolder, temporaryFolder } from '../running.ts'
import { SEARCH, toolServer } from './tool-server.ts'

const ANYWHERE: WebOptions = { isAllowed: () => true }
const SECRET = 'sk-very-secret'

/** Executes a run with these tool servers. */
async function run(
  servers: readonly (Partial<McpServer> & { readonly url: string })[],
  { web: options = ANYWHERE, timeout }: { web?: WebOptions; timeout?: number } = {},
) {
  const web = createWeb(options)
  onTestFinished(() => web.close())
  const processor = withToolServers(
    { run: async ({ input }) => answerTo(input.input) },
    { web, ...(timeout !== undefined && { timeout }) },
  )
  const messages: string[] = []
  const report = ({ message }: ProcessorProgress) => {
    if (message !== undefined) messages.push(`${message.kind}: ${message.text}`)
  }
  const mcp_servers = servers.map((server) => ({ type: 'url' as const, name: 'tools', ...server }))
  const task = { run_id: 'trun_1', input: { input: 'What is it?', mcp_servers }, context: [], report }
  const { output, warnings } = await processor.run(task, new AbortController().signal)
  return { output, warnings, messages, calls: output.mcp_tool_calls ?? [] }
}

describe('a run with tool servers', () => {
  it('calls the tool that takes only a query, with its input', async () => {
    const server = await toolServer()

    const { calls, output, warnings, messages } = await run([{ url: server.url, name: 'oracle' }])

    expect(calls).toEqual([
      {
        tool_call_id: expect.stringMatching(/^mcp_/),
        server_name: 'oracle',
        tool_name: 'search',
        arguments: '{"query":"What is it?"}',
        content: 'It is 42.',
      },
    ])
    expect(output).toMatchObject(answerTo('What is it?').output)
    expect(warnings).toBeUndefined()
    expect(messages).toEqual([
      'tool_call: Ask the tool server oracle for its tools',
      'tool_call: Call the tool search of the server oracle',
    ])
    expect(server.received.map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/list',
      'tools/call',
    ])
  })

  it('reads responses that are server-sent events, after other messages', async () => {
    const server = await toolServer({
      'tools/call': (response: ServerResponse, id: unknown) => {
        const result = {
          content: [
            { type: 'text', text: 'streamed' },
            { type: 'image', data: 'x' },
          ],
        }
        const messages = [{ method: 'notifications/progress' }, { id, result }]
        response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
        // An event without data, from which a client could resume.
        response.write('id: 1\ndata:\n\n')
        response.end(
          messages.map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`).join(''),
        )
      },
    })

    const { calls } = await run([server])

    expect(calls).toMatchObject([{ content: 'streamed\n[image]' }])
  })

  it('keeps the session and sends the headers of the run with each request', async () => {
    const server = await toolServer({
      initialize: (response: ServerResponse, id: unknown) => {
        response.setHeader('mcp-session-id', 'session-1')
        answer(response, { jsonrpc: '2.0', id, result: { protocolVersion: '2025-03-26' } })
      },
    })

    await run([{ url: server.url, headers: { Authorization: `Bearer ${SECRET}`, Host: 'other.test' } }])

    expect(server.received.map(({ headers }) => headers)).toMatchObject([
      { authorization: `Bearer ${SECRET}`, host: new URL(server.url).host },
      ...Array.from({ length: 3 }, () => ({
        authorization: `Bearer ${SECRET}`,
        'mcp-session-id': 'session-1',
        'mcp-protocol-version': '2025-03-26',
      })),
    ])
  })

  it.each([
    ['is not allowed', SEARCH, ['other']],
    ['has a second argument', tool({ query: 'string', limit: 'string' }), undefined],
    ['takes no string', tool({ query: 'number' }), undefined],
    ['takes a string that is no question', tool({ path: 'string' }), undefined],
    ['writes', { ...SEARCH, annotations: { readOnlyHint: false } }, undefined],
    ['has no name', { ...SEARCH, name: null }, undefined],
    ['has no schema', { name: 'search', inputSchema: null }, undefined],
  ])('calls no tool that %s, and warns', async (_, offered, allowed_tools) => {
    const server = await toolServer({ 'tools/list': { tools: [null, offered] } })

    const { calls, warnings } = await run([{ url: server.url, ...(allowed_tools && { allowed_tools }) }])

    expect(calls).toEqual([])
    expect(warnings).toMatchObject([
      { type: 'input_validation_warning', detail: { parameter: 'mcp_servers' } },
    ])
    expect(server.received.map(({ method }) => method)).not.toContain('tools/call')
  })

  it.each([
    [
      'refuses',
      'initialize',
      'The server responded with the status 401',
      (response: ServerResponse) => answer(response, { reason: SECRET }, 401),
    ],
    [
      'sends malformed JSON',
      'initialize',
      'The server sent malformed JSON',
      (response: ServerResponse) => response.writeHead(200).end(`{"${SECRET}`),
    ],
    [
      'sends another message',
      'initialize',
      'The server sent no response to initialize',
      (response: ServerResponse) => answer(response, { id: 99, result: {} }),
    ],
    [
      'sends an empty stream',
      'initialize',
      'The server sent no response to initialize',
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    ],
    ['sends no result', 'tools/list', 'The server sent no result of tools/list', null],
    ['sends no list', 'tools/list', 'The server sent no list of tools', { tools: 'all' }],
    [
      'breaks off',
      'tools/list',
      'The request failed (UND_ERR_SOCKET)',
      (response: ServerResponse) => response.socket?.destroy(),
    ],
    [
      'sends too much',
      'tools/list',
      'The response is longer than 1000000 bytes',
      (response: ServerResponse) => response.end('x'.repeat(1_100_000)),
    ],
    [
      'sends an error',
      'tools/call',
      'The server answered tools/call with an error: no',
      (response: ServerResponse, id: unknown) => answer(response, { id, error: { code: 1, message: 'no' } }),
    ],
    ['sends no content', 'tools/call', 'The tool sent no content', { content: null }],
    [
      'fails',
      'tools/call',
      'The tool failed: no luck',
      { content: [{ type: 'text', text: 'no luck' }], isError: true },
    ],
  ])('has a call with an error when the server %s', async (_, method, error, behaviour) => {
    const server = await toolServer({ [method]: behaviour })

    const { calls, output } = await run([{ url: server.url, headers: { key: SECRET } }])

    const tool_name = method === 'tools/call' ? 'search' : method
    expect(calls).toEqual([expect.objectContaining({ server_name: 'tools', tool_name, error })])
    expect(output).toMatchObject(answerTo('What is it?').output)
  })

  it('has a call with an error when the server does not respond in time', async () => {
    const server = await toolServer({ initialize: () => {} })

    const { calls } = await run([server], { timeout: 100 })

    expect(calls).toMatchObject([
      { tool_name: 'initialize', error: expect.stringMatching(/^No complete response within \d+ ms$/) },
    ])
  })

  it('has a call for each server, although one fails', async () => {
    const failing = await toolServer({ initialize: null })

    const { calls } = await run([failing, await toolServer()])

    expect(calls).toMatchObject([
      { error: 'The server sent no result of initialize' },
      { content: 'It is 42.' },
    ])
  })

  it('is a run of the service, whose trace has the calls and whose data has no credential', async () => {
    const server = await toolServer()
    const data = join(await temporaryFolder(), 'service.db')
    const docs = await documentFolder()
    const service = await createResearchService({ docs, data, allowPrivateAddresses: true })
    onTestFinished(() => service.close())
    const caller = new Caller(service, await service.listen())
    const headers = { authorization: `Bearer ${SECRET}` }
    const mcp_servers = [{ type: 'url', name: 'oracle', url: server.url, headers }]
    const input = { processor: 'base', input: 'What are tides?', enable_events: true, mcp_servers }

    const { body: created } = await caller.post<TaskRun>('/v1/tasks/runs', input)
    const path = `/v1/tasks/runs/${created.run_id}`
    const { body: result } = await caller.get<TaskRunResult>(`${path}/result`)
    const trace = await caller.events(`/v1beta/tasks/runs/${created.run_id}/events`)

    expect(result.output.mcp_tool_calls).toMatchObject([{ server_name: 'oracle', content: 'It is 42.' }])
    expect(JSON.stringify(trace)).toContain('Call the tool search of the server oracle')
    expect(server.received.at(-1)?.headers.authorization).toBe(headers.authorization)
    const stored = await Promise.all([data, `${data}-wal`].map((file) => readFile(file, 'latin1')))
    expect([...stored, JSON.stringify([created, result, trace])].join('\n')).not.toContain(SECRET)
  })

  it('has a call with an error when the address is private, and connects to nothing', async () => {
    const server = await toolServer()

    const { calls } = await run([server], { web: {} })

    expect(calls).toMatchObject([{ tool_name: 'initialize', error: expect.stringContaining('address') }])
    expect(server.received).toEqual([])
  })

  it('follows no redirect, so another origin receives no credential', async () => {
    let requests = 0
    const other = await serve((_, response) => {
      requests += 1
      response.end()
    })
    const server = await toolServer({
      initialize: (response: ServerResponse) => response.writeHead(307, { location: other }).end(),
    })

    const { calls } = await run([{ url: server.url, headers: { key: SECRET } }])

    expect(calls).toMatchObject([{ error: 'The server responded with the status 307' }])
    expect(requests).toBe(0)
  })

  it.each([
    ['content', { content: [{ type: 'text', text: `${'x'.repeat(9_990)} ${SECRET}` }] }],
    ['an error', { content: [{ type: 'text', text: `bad key ${SECRET}` }], isError: true }],
  ])('removes its credentials from %s that repeats them', async (_, result) => {
    const server = await toolServer({
      'tools/list': { tools: [{ ...SEARCH, name: `search ${SECRET}` }] },
      'tools/call': result,
    })

    const all = await run([{ url: server.url, headers: { authorization: `Bearer ${SECRET}` } }])

    expect(JSON.stringify(all)).not.toContain(SECRET.slice(0, 6))
    expect(all.calls).toMatchObject([{ tool_name: 'search [redacted]' }])
  })

  it('limits the content', async () => {
    const server = await toolServer({
      'tools/call': { content: [{ type: 'text', text: 'x'.repeat(100_000) }] },
    })

    const { calls } = await run([server])

    expect(calls[0]?.content).toHaveLength(10_000)
  })
})

function tool(properties: Record<string, string>) {
  const types = Object.entries(properties).map(([name, type]) => [name, { type }])
  return { name: 'search', inputSchema: { type: 'object', properties: Object.fromEntries(types) } }
}
