import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient } from 'rivulet'
import type { ClientOptions, RunInput } from 'rivulet'
import { answer, serve } from '../support/serve.ts'

const WEBHOOK_BETA = 'webhook-2025-08-12'
const plain: RunInput = { input: 'x', processor: 'base' }
const posting: RunInput = {
  ...plain,
  webhook: { url: 'https://example.org/hook', event_types: ['task_run.status'] },
}

/** A client, and the recorded value of one header of its requests to add runs. */
async function recording(header: string, options: ClientOptions = {}) {
  const values: unknown[] = []
  const baseUrl = await serve((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.on('end', () => {
      values.push(request.headers[header])
      const { inputs } = JSON.parse(body) as { inputs: unknown[] }
      const run_ids = inputs.map((_, n) => `run_${values.length}_${n}`)
      answer(response, { status: {}, run_ids, run_cursor: '', event_cursor: '' })
    })
  })
  return { client: createClient({ baseUrl, apiKey: 'key', ...options }), values }
}

describe('adding runs with a webhook', () => {
  it('names the beta feature only in the requests that need it', async () => {
    const { client, values } = await recording('service-beta')
    const inputs = [...Array.from({ length: 1_001 }, () => plain), posting]

    await lastValueFrom(client.taskGroups.addRuns('g', { inputs }).pipe(toArray()))

    expect(values).toEqual([undefined, WEBHOOK_BETA])
  })

  it('names it in the configured header', async () => {
    const { client, values } = await recording('acme-beta', { betaHeader: 'acme-beta' })

    await lastValueFrom(client.taskGroups.addRuns('g', { inputs: [posting] }))

    expect(values).toEqual([WEBHOOK_BETA])
  })
})
