import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { ArgumentError, createClient } from 'rivulet'
import { createWebhookReceiver } from 'rivulet/webhooks'
import type { ResearchClient } from 'rivulet'

const exchange = () => {
  throw new Error('a request was made')
}
const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key', exchange })
const group = (input: object) => ({ inputs: [{ input: 'x' }, input] })
const monitor = (change: object) => ({
  type: 'event_stream',
  frequency: '1d',
  settings: { query: 'q' },
  ...change,
})

// What a user without a type checker could write.
// oxlint-disable-next-line typescript/no-explicit-any
type Untyped = any

describe('an invalid argument is refused at the call', () => {
  it.each<[string, (client: Untyped) => unknown]>([
    ['limit', (c) => c.monitors.events('m', { limit: 0 })],
    ['limit', (c) => c.monitors.events('m', { limit: 101 })],
    ['limit', (c) => c.monitors.events('m', { limit: 2.5 })],
    ['limit', (c) => c.monitors.follow('m', { limit: 101 })],
    ['monitorId', (c) => c.monitors.events('')],
    ['monitorId', (c) => c.monitors.events('..')],
    ['monitorId', (c) => c.monitors.cancel(undefined)],
    ['monitorId', (c) => c.monitors.follow('a\nb')],
    ['include_completions', (c) => c.monitors.events('m', { include_completions: 'yes' })],
    ['pollInterval', (c) => c.monitors.follow('m', { pollInterval: -1 })],
    ['frequency', (c) => c.monitors.create(monitor({ frequency: '59m' }))],
    ['frequency', (c) => c.monitors.create(monitor({ frequency: '0h' }))],
    ['frequency', (c) => c.monitors.create(monitor({ frequency: '31d' }))],
    ['frequency', (c) => c.monitors.create(monitor({ frequency: '5w' }))],
    ['metadata', (c) => c.monitors.create(monitor({ metadata: { seventeen_letters: 'x' } }))],
    ['metadata.k', (c) => c.monitors.create(monitor({ metadata: { k: 'x'.repeat(513) } }))],
    ['webhook.url', (c) => c.monitors.create(monitor({ webhook: { url: 'ftp://x', event_types: ['a'] } }))],
    ['webhook', (c) => c.monitors.create(monitor({ webhook: 'https://x.example' }))],
    ['processor', (c) => c.monitors.create(monitor({ processor: 'huge' }))],
    ['status', (c) => c.monitors.list({ status: 'asleep' })],
    ['status', (c) => c.monitors.list({ status: [] })],
    ['type[1]', (c) => c.monitors.list({ type: ['snapshot', 'x'] })],
    ['sginal', (c) => c.monitors.get('m', { sginal: null })],
    ['sginal', (c) => c.monitors.trigger('m', { sginal: null })],
    ['statuss', (c) => c.monitors.list({ statuss: 'active' })],
    ['pollIntervall', (c) => c.monitors.follow('m', { pollIntervall: 1 })],
    ['cusror', (c) => c.monitors.events('m', { cusror: 'c' })],
    ['webhook', (c) => c.watch({ monitors: ['m'], webhook: {} })],
    ['limits', (c) => c.watch({ monitors: [{ id: 'm', limits: 1 }] })],
    ['include_out', (c) => c.watch({ taskGroups: [{ id: 'g', include_out: true }] })],
    ['settings.query', (c) => c.monitors.create(monitor({ settings: {} }))],
    [
      'settings.advanced_settings.location',
      (c) => c.monitors.create(monitor({ settings: { query: 'q', advanced_settings: { location: 'DEU' } } })),
    ],
    ['memory_scope_key', (c) => c.monitors.create(monitor({ memory_scope_key: '' }))],
    [
      'inputs[1].memory_scope_key',
      (c) => c.taskGroups.addRuns('g', group({ input: 'x', memory_scope_key: 7 })),
    ],
    ['memory_scope_key', (c) => c.tasks.create({ input: 'x', processor: 'base', memory_scope_key: ' ' })],
    ['memory_scope_key', (c) => c.memory.retrieve({ memory_scope_key: 'x'.repeat(513) })],
    ['since', (c) => c.memory.retrieve({ since: '2026-01-01' })],
    ['kind', (c) => c.memory.retrieve({ kind: 'search' })],
    ['limit', (c) => c.memory.retrieve({ limit: 0 })],
    ['sginal', (c) => c.memory.retrieve({}, { sginal: null })],
    ['events', (c) => c.memory.follow({ events: [] })],
    ['pollInterval', (c) => c.memory.follow({ pollInterval: -1 })],
    ['queri', (c) => c.memory.follow({ queri: 'x' })],
    ['id', (c) => c.memory.evict({ kind: 'task' })],
    ['kind', (c) => c.memory.evict({ id: 'r' })],
    ['scope', (c) => c.memory.clear({ scope: 'blue' })],
    ['scope', (c) => c.memory.retrieve({ scope: 'blue' })],
    ['scope', (c) => c.memory.evict({ id: 'r', kind: 'task', scope: 'blue' })],
    ['memory_scope_key', (c) => c.memory.retrieve({ memory_scope_key: 'blue\uD800' })],
    ['entity_type', (c) => c.findAll.entitySearch('x', {})],
    ['objective', (c) => c.findAll.entitySearch('', { entity_type: 'people' })],
    ['match_limit', (c) => c.findAll.entitySearch('x', { entity_type: 'people', match_limit: 4 })],
    ['match_limits', (c) => c.findAll.entitySearch('x', { entity_type: 'people', match_limits: 5 })],
    ['groupId', (c) => c.taskGroups.events('')],
    ['groupId', (c) => c.taskGroups.addRuns('', group({ input: 'x' }))],
    ['status', (c) => c.taskGroups.runs('g', { status: 'done' })],
    ['timeout', (c) => c.taskGroups.events('g', { timeout: 0 })],
    ['timeout', (c) => c.taskGroups.events('g', { timeout: 1e15 })],
    ['options', (c) => c.taskGroups.events('g', null)],
    ['options', (c) => c.taskGroups.progress('g', null)],
    ['options', (c) => c.taskGroups.runs('g', null)],
    ['taskGroups.get', (c) => c.taskGroups.get('g', null)],
    ['taskGroups.create', (c) => c.taskGroups.create(null)],
    ['taskGroups.addRuns', (c) => c.taskGroups.addRuns('g', group({ input: 'x' }), null)],
    ['taskGroups.execute', (c) => c.taskGroups.execute('g', group({ input: 'x' }), null)],
    ['groupId', (c) => c.taskGroups.retry('')],
    ['taskGroups.retry', (c) => c.taskGroups.retry('g', null)],
    ['statuses', (c) => c.taskGroups.retry('g', { statuses: 'failed' })],
    ['statuses', (c) => c.taskGroups.retry('g', { statuses: [] })],
    ['statuses[1]', (c) => c.taskGroups.retry('g', { statuses: ['failed', 'completed'] })],
    ['where', (c) => c.taskGroups.retry('g', { where: 'x' })],
    ['mcpHeaders', (c) => c.taskGroups.retry('g', { mcpHeaders: {} })],
    ['settleDelay', (c) => c.taskGroups.retry('g', { settleDelay: -1 })],
    ['groupId', (c) => c.taskGroups.errors('')],
    ['taskGroups.errors', (c) => c.taskGroups.errors('g', null)],
    ['options', (c) => c.monitors.events('m', null)],
    ['options', (c) => c.monitors.follow('m', null)],
    ['options', (c) => c.monitors.list(null)],
    ['options', (c) => c.monitors.get('m', null)],
    ['search', (c) => c.search({ search_queries: ['q'] }, null)],
    ['options', (c) => c.get('/v1/x', null)],
    ['options', (c) => c.stream('/v1/x', null)],
    ['options', (c) => c.watch(null)],
    ['options', () => createClient(null as Untyped)],
    ['createWebhookReceiver', () => createWebhookReceiver(undefined as Untyped)],
    ['createWebhookReceiver', () => createWebhookReceiver(null as Untyped)],
    ['metadata', (c) => c.taskGroups.create({ metadata: new Map([['a', 1]]) })],
    ['metadata', (c) => c.taskGroups.create({ metadata: new Date() })],
    ['metadata', (c) => c.taskGroups.create({ metadata: new URL('https://x.example') })],
    ['metadata', (c) => c.monitors.create(monitor({ metadata: new Map([['a', 'b']]) }))],
    ['inputs[1].input', (c) => c.taskGroups.addRuns('g', group({ input: new Set(['x']) }))],
    ['inputs', (c) => c.taskGroups.addRuns('g', { inputs: [] })],
    ['inputs[1].input', (c) => c.taskGroups.addRuns('g', group({}))],
    [
      'inputs[1].source_policy.after_date',
      (c) => c.taskGroups.addRuns('g', group({ input: 'x', source_policy: { after_date: '2026-02-30' } })),
    ],
    [
      'inputs[1].advanced_settings.location',
      (c) => c.taskGroups.addRuns('g', group({ input: 'x', advanced_settings: { location: '1' } })),
    ],
    [
      'inputs[1].webhook.url',
      (c) =>
        c.taskGroups.addRuns('g', group({ input: 'x', webhook: { url: 'nowhere', event_types: ['a'] } })),
    ],
    [
      'inputs[1].webhook.event_types[0]',
      (c) =>
        c.taskGroups.addRuns(
          'g',
          group({ input: 'x', webhook: { url: 'https://x.example', event_types: [5] } }),
        ),
    ],
    ['search_queries', (c) => c.search({ search_queries: [] })],
    ['search_queries[0]', (c) => c.search({ search_queries: [' '] })],
    ['mode', (c) => c.search({ search_queries: ['q'], mode: 'slow' })],
    [
      'advanced_settings.max_results',
      (c) => c.search({ search_queries: ['q'], advanced_settings: { max_results: 0 } }),
    ],
    [
      'advanced_settings.source_policy.after_date',
      (c) =>
        c.search({ search_queries: ['q'], advanced_settings: { source_policy: { after_date: '1.1.2026' } } }),
    ],
    [
      'advanced_settings.source_policy.include_domains[0]',
      (c) =>
        c.search({
          search_queries: ['q'],
          advanced_settings: { source_policy: { include_domains: ['not a domain'] } },
        }),
    ],
    [
      'advanced_settings.source_policy.exclude_domains[0]',
      (c) =>
        c.search({
          search_queries: ['q'],
          advanced_settings: { source_policy: { exclude_domains: [undefined] } },
        }),
    ],
    [
      'advanced_settings.excerpt_settings.max_chars_per_result',
      (c) =>
        c.search({
          search_queries: ['q'],
          advanced_settings: { excerpt_settings: { max_chars_per_result: 0 } },
        }),
    ],
    ['max_results', (c) => c.searchBeta({ objective: 'x', max_results: 1.5 })],
    ['request', (c) => c.searchBeta({})],
    ['options', (c) => c.watch({})],
    ['monitors[0]', (c) => c.watch({ monitors: [''] })],
    ['monitors', (c) => c.watch({ monitors: 'm' })],
    ['taskGroups[1]', (c) => c.watch({ taskGroups: ['g', null] })],
    ['monitorId', (c) => c.monitors.get('\ud800')],
    ['wake', (c) => c.monitors.follow('m', { wake: 5 })],
    ['pollInterval', (c) => c.monitors.follow('m', { pollInterval: 2 ** 31 })],
    ['signal', (c) => c.monitors.events('m', { signal: {} })],
    [
      'settings.include_backfill',
      (c) => c.monitors.create(monitor({ settings: { query: 'q', include_backfill: 'yes' } })),
    ],
    [
      'webhook.event_types[0]',
      (c) => c.monitors.create(monitor({ webhook: { url: 'https://x.example', event_types: [5] } })),
    ],
    ['headers', (c) => c.get('/v1/x', { headers: { 'x-api-key': 'other' } })],
    ['hold', (c) => c.watch({ taskGroups: ['g'], webhooks: { deliveries: c.diagnostics }, hold: -1 })],
    ['path', (c) => c.get('//elsewhere.example/')],
    ['path', (c) => c.get('/v1/../admin')],
    ['path', (c) => c.post('/v1/x?y=1')],
    ['path', (c) => c.stream('v1/x')],
    ['search_queries', (c) => c.search({ objective: 'x' })],
  ])('%s', (argument, call) => {
    const refused = () => call(client satisfies ResearchClient)

    expect(refused).toThrow(ArgumentError)
    expect(refused).toThrow(expect.objectContaining({ argument }))
  })

  it.each([{ a: 1 }, Object.create(null), runInNewContext('({ a: 1 })')])(
    'a plain object is accepted as metadata: %#',
    (metadata) => {
      expect(() => client.taskGroups.create({ metadata })).not.toThrow()
    },
  )

  it('names the expected and the given value', () => {
    const refused = () => client.monitors.events('m', { limit: 500 })

    expect(refused).toThrow('limit must be an integer from 1 to 100, got 500')
  })

  it.each<[string, (client: Untyped) => unknown]>([
    [
      'watch has nothing to watch: give it monitors, taskGroups, runs, findAlls or webhooks',
      (c) => c.watch({}),
    ],
    [
      'watch has nothing to watch: give it monitors, taskGroups, runs, findAlls or webhooks',
      (c) => c.watch({ monitors: [], taskGroups: [] }),
    ],
    ['monitors must be an array, or an Observable of arrays, got null', (c) => c.watch({ monitors: null })],
    ['taskGroups must be an array, or an Observable of arrays, got "g"', (c) => c.watch({ taskGroups: 'g' })],
    ['webhooks must be an object, got null', (c) => c.watch({ webhooks: null })],
    ['webhooks.deliveries must be an Observable, got undefined', (c) => c.watch({ webhooks: {} })],
    ['request has neither objective nor search_queries; it needs one of them', (c) => c.searchBeta({})],
    [
      'webhook.url must be a percent-encoded http or https URL without credentials, got a string (not shown)',
      (c) => c.monitors.create(monitor({ webhook: { url: 'https://u:p@x.example', event_types: ['a'] } })),
    ],
    [
      'webhook.url must be a percent-encoded http or https URL without credentials, got an empty string',
      (c) => c.monitors.create(monitor({ webhook: { url: '', event_types: ['a'] } })),
    ],
    ['body must be a JSON value, got a bigint', (c) => c.post('/v1/x', 1n)],
    ['body must be a JSON value, got a function', (c) => c.post('/v1/x', () => 1)],
    [
      'headers must be an object, got a string (not shown)',
      () => createClient({ baseUrl: 'http://127.0.0.1', apiKey: 'key', headers: 'x' as Untyped }),
    ],
  ])('has the message: %s', (message, call) => {
    expect(() => call(client)).toThrow(ArgumentError)
    expect(() => call(client)).toThrow(expect.objectContaining({ message }))
  })
})

describe('an unknown option is refused by name, with the nearest known one', () => {
  const inputs = [{ input: 'x' }]
  it.each<[string, (client: Untyped) => unknown]>([
    [
      'search has no option signl; did you mean signal?',
      (c) => c.search({ search_queries: ['q'] }, { signl: 1 }),
    ],
    ['searchBeta has no option timeout', (c) => c.searchBeta({ objective: 'o' }, { timeout: 1 })],
    [
      'taskGroups.create has no option metdata; did you mean metadata?',
      (c) => c.taskGroups.create({ metdata: {} }),
    ],
    [
      'taskGroups.get has no option Signal; did you mean signal?',
      (c) => c.taskGroups.get('g', { Signal: 1 }),
    ],
    [
      'taskGroups.addRuns has no option exactly_once; did you mean exactlyOnce?',
      (c) => c.taskGroups.addRuns('g', { inputs }, { exactly_once: true }),
    ],
    [
      'taskGroups.execute has no option retryfailed; did you mean retryFailed?',
      (c) => c.taskGroups.execute('g', inputs, { retryfailed: 2 }),
    ],
    [
      'taskGroups.retry has no option status; did you mean statuses?',
      (c) => c.taskGroups.retry('g', { status: 'failed' }),
    ],
  ])('%s', (message, call) => {
    expect(() => call(client)).toThrow(ArgumentError)
    expect(() => call(client)).toThrow(message)
  })
})

describe('createClient', () => {
  it('reads the address and the key from the environment', () => {
    process.env['RIVULET_BASE_URL'] = 'http://127.0.0.1:1'
    process.env['RIVULET_API_KEY'] = 'key'
    try {
      expect(() => createClient()).not.toThrow()
    } finally {
      delete process.env['RIVULET_BASE_URL']
      delete process.env['RIVULET_API_KEY']
    }
  })

  it('names the missing setting', () => {
    expect(() => createClient({ baseUrl: 'http://127.0.0.1:1' })).toThrow('RIVULET_API_KEY')
    expect(() => createClient({ apiKey: 'key' })).toThrow('RIVULET_BASE_URL')
  })

  it.each([-1, Number.NaN, '1s'])('refuses an initialDelay of %s', (initialDelay) => {
    const options = { baseUrl: 'http://127.0.0.1:1', apiKey: 'key', initialDelay } as { initialDelay: number }

    expect(() => createClient(options)).toThrow(ArgumentError)
  })
})
