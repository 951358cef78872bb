import { describe, expect, it, vi } from 'vitest'
import type { Processor } from '../../../src/service/index.ts'
import { deviationOf, JSON_TYPE, STREAM_TYPE, webhookDeviationOf } from '../../support/held-answers.ts'
import { running } from '../running.ts'

/** The deviations of the services of this file, which must not fail its tests. */
const deviations = vi.hoisted((): string[] => [])
vi.mock(import('../../../src/service/app.ts'), async (original) => {
  const { createApp } = await original()
  const { heldToDocument } = await import('../../support/held-answers.ts')
  return {
    createApp: (options) =>
      heldToDocument(createApp(options), options.faults, (deviation) => deviations.push(deviation)),
  }
})

const found = () => deviations.splice(0)

/** A processor whose output has a property that the interface does not have. */
const deviating: Processor = {
  run: async () => ({
    output: Object.assign({ type: 'text', content: 'x', basis: [] } as const, { certainty: 1 }),
  }),
}

describe('a response of the service in a test', () => {
  it('is in the document', async () => {
    const { get, post, group, events } = await running()
    const id = await group()
    await post('/v1/search', { search_queries: ['tides'] })
    await get('/v1/nothing')
    await post(`/v1/tasks/groups/${id}/runs`, { inputs: [{ input: 'a' }] })
    await events(`/v1beta/tasks/groups/${id}/runs?include_input=true&include_output=true`)

    expect(found()).toEqual([])
  })

  it('is reported if it has an unknown property', async () => {
    const { post, get } = await running({ processor: deviating })
    const { body } = await post<{ run_id: string }>('/v1/tasks/runs', { input: 'x', processor: 'base' })
    await get(`/v1/tasks/runs/${body.run_id}/result`)

    expect(found()).toEqual([expect.stringMatching(/result 200 application\/json.*additional properties/s)])
  })

  it('is reported if a message of a stream has an unknown property', async () => {
    const { group, add, events } = await running({ processor: deviating })
    const id = await group()
    await add(id, 'one')
    await events(`/v1beta/tasks/groups/${id}/runs?include_output=true`)

    expect(found()).toEqual([expect.stringMatching(/runs 200 text\/event-stream.*additional properties/s)])
  })

  it('is not reported if a fault damaged it', async () => {
    const caller = await running({ faults: [{ kind: 'malformed', times: 1 }] })
    await caller
      .send('/v1/monitors', { headers: { 'x-api-key': caller.service.apiKey } })
      .catch(() => undefined)

    expect(found()).toEqual([])
  })
})

describe('a deviation', () => {
  const search = { method: 'POST', path: '/v1/search', status: 200, contentType: JSON_TYPE }
  const problem = '{"type":"error","error":{"ref_id":"1","message":"m"}}'

  it.each([
    ['a missing field', search, '{}', 'results'],
    ['a wrong type', search, '{"results":[{"url":"u","excerpts":"x"}]}', 'excerpts must be array'],
    ['an unknown field', search, '{"results":[],"total":1}', 'additional properties'],
    ['an unknown field within', search, '{"results":[{"url":"u","excerpts":[],"score":1}]}', 'additional'],
    ['text that is no JSON', search, '{', 'is not JSON'],
    ['a status without a row', { ...search, status: 418 }, problem, 'is not in the document'],
    [
      'a type of content without a row',
      { ...search, contentType: STREAM_TYPE },
      '{}',
      'is not in the document',
    ],
    ['the error format of another area', { ...search, status: 422 }, '{"detail":[]}', 'error'],
    ['a success of no endpoint', { ...search, path: '/v2' }, '{}', 'is not in the document'],
    [
      'a body of a response that has none',
      { ...search, path: '/v1/monitors/m/trigger', status: 204 },
      '{}',
      'has a body',
    ],
  ])('is %s', (_, answer, text, expected) => {
    expect(deviationOf({ ...answer, text })).toContain(expected)
  })

  it('is not an error that the document has', () => {
    expect(deviationOf({ ...search, status: 422, text: problem })).toBeUndefined()
  })
})

describe('a deviation of Retry-After', () => {
  const text = '{"type":"error","error":{"ref_id":"1","message":"m"}}'
  const refused = { method: 'POST', path: '/v1/tasks/runs', contentType: JSON_TYPE, text }

  it.each([402, 429, 503])('is a %i without it, or with one that is no integer', (status) => {
    expect(deviationOf({ ...refused, status, retryAfter: '1' })).toBeUndefined()
    expect(deviationOf({ ...refused, status })).toContain('has no Retry-After')
    expect(deviationOf({ ...refused, status, retryAfter: 'soon' })).toContain('a wrong Retry-After')
  })

  it('is one that the document does not declare', () => {
    expect(deviationOf({ ...refused, status: 401, retryAfter: '1' })).toContain('undeclared Retry-After')
  })
})

describe('a deviation of a webhook', () => {
  const headers = { 'webhook-id': 'whk_1', 'webhook-timestamp': '1', 'webhook-signature': 'v1,x' }
  const timestamp = '2026-01-01T00:00:00.000Z'
  const body = {
    type: 'monitor.event.detected',
    timestamp,
    data: { monitor_id: 'monitor_1', event: { event_group_id: 'mevtgrp_1' } },
  }

  it('is an unknown property, an unknown type, a missing header or text that is no JSON', () => {
    const deviation = (sent: unknown, given: Record<string, string> = headers) =>
      webhookDeviationOf({ headers: given, body: JSON.stringify(sent) })
    const { 'webhook-signature': _, ...unsigned } = headers

    expect(deviation(body)).toBeUndefined()
    expect(deviation({ ...body, data: { ...body.data, score: 1 } })).toContain('additional properties')
    expect(deviation({ ...body, type: 'monitor.of.tomorrow' })).toContain('not in the document')
    expect(deviation(body, unsigned)).toContain('webhook-signature')
    expect(deviation(body, { ...headers, 'webhook-timestamp': 'now' })).toContain('webhook-timestamp')
    expect(webhookDeviationOf({ headers, body: '{' })).toContain('not in the document')
  })
})
