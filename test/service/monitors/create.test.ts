import type { Monitor } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { BATTERY, startMonitors } from './service.ts'

const TEXT_SCHEMA = { properties: { text: { type: 'string' } } }
const WEBHOOK = { url: 'http://127.0.0.1:9/hook', event_types: ['monitor.event.detected'] }

describe('POST /v1/monitors', () => {
  it('answers 201 with the monitor and its defaults', async () => {
    const { post, clock, monitors } = await startMonitors()

    const { status, body } = await post<Monitor>('', BATTERY)
    await monitors.settled()

    expect(status).toBe(201)
    expect(body).toEqual({
      type: 'event_stream',
      monitor_id: expect.stringMatching(/^monitor_[0-9a-f]{32}$/),
      status: 'active',
      frequency: '1h',
      processor: 'lite',
      created_at: new Date(clock.now()).toISOString(),
      settings: { query: 'solid battery' },
      output: null,
    })
  })

  it('keeps all fields of the request', async () => {
    const { post, get } = await startMonitors()
    const request = {
      type: 'event_stream',
      frequency: '30d',
      processor: 'core',
      settings: {
        query: 'solid battery',
        include_backfill: true,
        output_schema: { type: 'json', json_schema: TEXT_SCHEMA },
        advanced_settings: {
          location: 'ch',
          source_policy: { include_domains: ['.edu'], exclude_domains: ['x.org'], after_date: '2025-01-31' },
        },
      },
      webhook: WEBHOOK,
      metadata: { ['k'.repeat(16)]: 'v'.repeat(512) },
    }

    const created = await post<Monitor>('', request)
    const read = await get<Monitor>(`/${created.body.monitor_id}`)

    expect(created.body).toMatchObject(request)
    expect(read.body).toMatchObject(request)
  })

  it('treats null as an absent field', async () => {
    const { post } = await startMonitors()

    const { status, body } = await post<Monitor>('', {
      ...BATTERY,
      processor: null,
      webhook: null,
      metadata: null,
    })

    expect(status).toBe(201)
    expect(body.processor).toBe('lite')
    expect(body).not.toHaveProperty('webhook')
  })

  it.each([
    [{ ...BATTERY, type: undefined }, 'type: Field required'],
    [
      { ...BATTERY, type: 'diary' },
      "type: Invalid discriminator value. Expected 'event_stream' | 'snapshot'",
    ],
    [
      { ...BATTERY, frequency: '90m' },
      'frequency: Expected a frequency from 1h to 30d, such as 12h, 1d or 2w',
    ],
  ])('reports an invalid field: %#', async (request, message) => {
    const { post } = await startMonitors()

    expect((await post('', request)).body.error.message).toBe(`The request is not valid. ${message}`)
  })

  it.each(['1h', '720h', '30d', '4w', '12h'])('takes the frequency %s', async (frequency) => {
    const { post } = await startMonitors()

    expect((await post('', { ...BATTERY, frequency })).status).toBe(201)
  })

  const settings = (more: object) => ({ ...BATTERY, settings: { ...BATTERY.settings, ...more } })
  const advanced = (more: object) => settings({ advanced_settings: more })
  const webhook = (more: object) => ({ ...BATTERY, webhook: { ...WEBHOOK, ...more } })
  const schema = (json_schema: unknown) => settings({ output_schema: { type: 'json', json_schema } })

  it.each([
    ['no body', undefined, 'body'],
    ['no JSON', '{"type":', 'body'],
    ['a list', [], 'body'],
    ['no type', { ...BATTERY, type: undefined }, 'body.type'],
    ['another type', { ...BATTERY, type: 'diary' }, 'body.type'],
    ['no frequency', { ...BATTERY, frequency: undefined }, 'body.frequency'],
    ['a frequency below 1h', { ...BATTERY, frequency: '0h' }, 'body.frequency'],
    ['a frequency above 30d', { ...BATTERY, frequency: '31d' }, 'body.frequency'],
    ['a frequency above 30d in weeks', { ...BATTERY, frequency: '5w' }, 'body.frequency'],
    ['a frequency in minutes', { ...BATTERY, frequency: '90m' }, 'body.frequency'],
    ['another processor', { ...BATTERY, processor: 'ultra' }, 'body.processor'],
    ['no settings', { ...BATTERY, settings: undefined }, 'body.settings'],
    ['no query', { ...BATTERY, settings: {} }, 'body.settings.query'],
    ['an empty query', settings({ query: ' ' }), 'body.settings.query'],
    ['a query without a word', settings({ query: '???' }), 'body.settings.query'],
    [
      'a query with too many words',
      settings({ query: Array.from({ length: 33 }, (_, n) => `word${n}`).join(' ') }),
      'body.settings.query',
    ],
    [
      'a backfill that is no boolean',
      settings({ include_backfill: 'yes' }),
      'body.settings.include_backfill',
    ],
    [
      'a text schema',
      settings({ output_schema: { type: 'text', json_schema: TEXT_SCHEMA } }),
      'body.settings.output_schema.type',
    ],
    [
      'a schema that cannot be followed',
      schema({ properties: { n: { type: 'integer' } }, required: ['ghost'] }),
      'body.settings.output_schema.json_schema.properties.ghost',
    ],
    [
      'something that is no domain',
      advanced({ source_policy: { include_domains: ['https://x.org'] } }),
      'body.settings.advanced_settings.source_policy.include_domains.0',
    ],
    [
      'a day that does not exist',
      advanced({ source_policy: { after_date: '2025-02-30' } }),
      'body.settings.advanced_settings.source_policy.after_date',
    ],
    ['a country that is no code', advanced({ location: 'CHE' }), 'body.settings.advanced_settings.location'],
    ['a webhook without URL', webhook({ url: undefined }), 'body.webhook.url'],
    ['a webhook by file', webhook({ url: 'file:///etc/passwd' }), 'body.webhook.url'],
    ['a webhook with a password', webhook({ url: 'http://a:b@x.org/' }), 'body.webhook.url'],
    ['a webhook for nothing', webhook({ event_types: [] }), 'body.webhook.event_types'],
    ['an unknown event type', webhook({ event_types: ['task_run.status'] }), 'body.webhook.event_types.0'],
    ['metadata that is no text', { ...BATTERY, metadata: { a: 1 } }, 'body.metadata.a'],
    [
      'a metadata key of 17 characters',
      { ...BATTERY, metadata: { ['k'.repeat(17)]: '' } },
      `body.metadata.${'k'.repeat(17)}`,
    ],
    [
      'a metadata value of 513 characters',
      { ...BATTERY, metadata: { a: 'v'.repeat(513) } },
      'body.metadata.a',
    ],
  ])('answers 422 with an ErrorResponse to %s', async (_, request, loc) => {
    const { post, get } = await startMonitors()

    const { status, body } = await post('', request)

    expect(status).toBe(422)
    expect(body).toMatchObject({
      type: 'error',
      error: {
        ref_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        message: expect.stringContaining('not valid'),
      },
    })
    expect(body.error.detail).toMatchObject({ errors: [{ loc: loc.split('.') }] })
    expect((await get<{ monitors: unknown[] }>('')).body.monitors).toEqual([])
  })
})
