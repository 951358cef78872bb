import type { IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { createClient, MissingHeadersError } from 'rivulet'
import type { AddRunsRequest, RetryOptions } from 'rivulet'
import { answer, openStream, serve, sse } from '../../support/serve.ts'

/** Retries the one run of a group, which a service sends with these fields. */
async function retry(state: { readonly run?: object; readonly input: unknown }, options?: RetryOptions) {
  const added: unknown[] = []
  const run = { run_id: 'r', status: 'failed', is_active: false, processor: 'p', ...state.run }
  const status = { num_task_runs: 1, task_run_status_counts: { failed: 1 }, is_active: false }
  const add = async (request: IncomingMessage) =>
    added.push(...((await json(request)) as AddRunsRequest).inputs)
  const baseUrl = await serve((request, response) => {
    if (request.method === 'POST') {
      return void add(request).then(() => answer(response, { status, run_ids: ['new'], run_cursor: '1' }))
    }
    if (!request.url?.includes('/runs')) return answer(response, { taskgroup_id: 'g', status })
    openStream(response)
    const event = { type: 'task_run.state', event_id: '1', run, input: state.input }
    return response.end(sse(event))
  })
  const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })
  const retried = await client.taskGroups.retry('g', options)
  return { retried, added }
}

const MARKS = { rivulet_retry_of: 'r', rivulet_first: 'r', rivulet_attempt: '2' }

describe('retry of a service of another make', () => {
  it.each([
    [
      'null for what was left out, at any depth',
      {
        input: {
          input: { company: null },
          metadata: null,
          task_spec: { input_schema: null, output_schema: { type: 'text', description: null } },
          source_policy: { include_domains: null },
          mcp_servers: null,
        },
      },
      {
        input: { company: null },
        task_spec: { output_schema: { type: 'text' } },
        source_policy: {},
        metadata: MARKS,
      },
    ],
    [
      'null in what is free: schemas and metadata',
      {
        input: {
          input: 'a',
          metadata: { note: null },
          task_spec: {
            input_schema: { default: null },
            output_schema: { type: 'json', json_schema: { properties: { a: { default: null } } } },
          },
        },
      },
      {
        input: 'a',
        metadata: { note: null, ...MARKS },
        task_spec: {
          input_schema: { default: null },
          output_schema: { type: 'json', json_schema: { properties: { a: { default: null } } } },
        },
      },
    ],
    [
      'the metadata with the run alone',
      { run: { metadata: { row: 1, rivulet_key: 'k' } }, input: { input: 'a' } },
      { input: 'a', metadata: { row: 1, ...MARKS } },
    ],
    [
      'without what the service has a default for',
      {
        input: {
          input: 'a',
          task_spec: { output_schema: { json_schema: { type: 'object' } } },
          mcp_servers: [{ url: 'https://tools.example/', name: 'a' }],
          webhook: { url: 'https://hook.example/' },
          of_another_make: { note: null },
        },
      },
      {
        input: 'a',
        task_spec: { output_schema: { type: 'json', json_schema: { type: 'object' } } },
        mcp_servers: [{ type: 'url', url: 'https://tools.example/', name: 'a', headers: {} }],
        webhook: { url: 'https://hook.example/', event_types: ['task_run.status'] },
        of_another_make: { note: null },
        metadata: MARKS,
      },
    ],
    [
      'with types that are null',
      {
        input: {
          input: 'a',
          task_spec: { output_schema: { type: null } },
          webhook: { url: 'https://hook.example/', event_types: null },
        },
      },
      {
        input: 'a',
        task_spec: { output_schema: { type: 'auto' } },
        webhook: { url: 'https://hook.example/', event_types: ['task_run.status'] },
        metadata: MARKS,
      },
    ],
  ])('adds the input again as it was given: %s', async (_, state, expected) => {
    const { added } = await retry(state, { mcpHeaders: () => ({}) })

    expect(added).toEqual([expected])
  })

  it.each([
    { input: 'a', webhook: 'https://hook.example/' },
    { input: 'a', mcp_servers: [null] },
    { input: 'a', task_spec: { output_schema: { unknown: true } } },
    { input: 'a', task_spec: { output_schema: { type: 'constructor' } } },
    { input: 5 },
    {},
  ])('refuses an input that no request may have: %o', async (input) => {
    await expect(retry({ input })).rejects.toMatchObject({
      name: 'ProtocolError',
      message: expect.stringContaining('the input of the run r cannot be added again'),
    })
  })

  it('does not show a path or a query of a tool server without headers, which may be secret', async () => {
    const url = 'https://tools.example/secret/mcp?token=secret'
    const error: unknown = await retry({
      input: { input: 'a', mcp_servers: [{ type: 'url', url, name: 'a' }] },
    }).then(undefined, (thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(MissingHeadersError)
    expect(error).toMatchObject({ message: expect.stringContaining('https://tools.example'), urls: [url] })
    expect(JSON.stringify({ ...Object(error), message: Object(error).message })).not.toContain('secret')
  })
})
