import Parallel from 'parallel-web'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { of } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it, vi } from 'vitest'
import type { Routes } from '../../src/service/app.ts'
import { research } from '../e2e/research.ts'
import { codeIn, plain, rowsOf } from '../support/markdown-table.ts'
import { recordingService } from './recording-service.ts'

/** The routes of the embedded services of this file, with the last one at the end. */
const apps = vi.hoisted((): Routes[] => [])
vi.mock(import('../../src/service/app.ts'), async (original) => {
  const { createApp } = await original()
  return {
    createApp: (options) => {
      const app = createApp(options)
      apps.push(app)
      return app
    },
  }
})

/** One row of the table "All endpoints". */
interface Row {
  /** `GET /v1/monitors/{id}`. */
  readonly endpoint: string
  readonly client: readonly string[]
  readonly served: boolean
  readonly sdk: readonly string[]
}

const rows = rowsOf('docs/reference/wire.md', 'Endpoint', 'All endpoints').map(
  ([endpoint, , client, served, sdk]): Row => ({
    endpoint: plain(endpoint),
    client: codeIn(client),
    served: served?.startsWith('yes') === true,
    sdk: codeIn(sdk),
  }),
)

/** A request in the table's notation, with the names of its ids instead of `m`, `g` and `r`. */
function endpointOf({ method, path }: { readonly method: string; readonly path: string }): string {
  const single = path.replace(/(?<=\/groups\/\w+\/runs\/)r$/, '{run_id}')
  return `${method} ${single.replaceAll(/\/(m|g|failed|r|r2|r3|f)(?=\/|$)/g, '/{id}')}`
}

/** A route of the service in the table's notation. Groups are also served under `/v1beta`, which the table has for one route only. */
function endpointOfRoute({ method, path }: { readonly method: string; readonly path: string }): string {
  const single = path.replace(/(?<=\/groups\/:\w+\/runs\/):run_id/, '{run_id}')
  return `${method} ${single.replaceAll(/:\w+/g, '{id}').replace(/^\/v1beta\/tasks\//, '/v1/tasks/')}`
}

const findAll = {
  objective: 'x',
  entity_type: 'companies',
  match_conditions: [{ name: 'x', description: 'x' }],
}
const enrichment = { output_schema: { type: 'json', json_schema: {} } } as const

/** Calls each method of our client. */
const CLIENT: Readonly<Record<string, (client: ResearchClient) => Observable<unknown>>> = {
  search: (c) => c.search({ search_queries: ['x'] }),
  'search.each': (c) => c.search.each(['x']),
  searchBeta: (c) => c.searchBeta({ objective: 'x' }),
  extract: (c) => c.extract({ urls: ['https://example.org'] }),
  'chat.complete': (c) => c.chat.complete({ model: 'x', messages: [{ role: 'user', content: 'x' }] }),
  'chat.stream': (c) => c.chat.stream({ model: 'x', messages: [{ role: 'user', content: 'x' }] }),
  'responses.create': (c) => c.responses.create({ model: 'x', input: 'x' }),
  'responses.stream': (c) => c.responses.stream({ model: 'x', input: 'x' }),
  'monitors.events': (c) => c.monitors.events('m'),
  'monitors.follow': (c) => c.monitors.follow('m'),
  'monitors.cancel': (c) => c.monitors.cancel('m'),
  'monitors.create': (c) =>
    c.monitors.create({ type: 'event_stream', frequency: '1d', settings: { query: 'x' } }),
  'monitors.list': (c) => c.monitors.list(),
  'monitors.get': (c) => c.monitors.get('m'),
  'monitors.snapshots': (c) => c.monitors.snapshots('m'),
  'monitors.update': (c) => c.monitors.update('m', { frequency: '2d' }),
  'monitors.trigger': (c) => c.monitors.trigger('m'),
  'taskGroups.create': (c) => c.taskGroups.create(),
  'taskGroups.get': (c) => c.taskGroups.get('g'),
  'taskGroups.getRun': (c) => c.taskGroups.getRun('g', 'r'),
  'taskGroups.addRuns': (c) => c.taskGroups.addRuns('g', { inputs: [{ input: 'x' }] }),
  'taskGroups.execute': (c) => c.taskGroups.execute('g', [{ input: 'x' }]),
  'taskGroups.retry': (c) => c.taskGroups.retry('failed'),
  'taskGroups.errors': (c) => c.taskGroups.errors('failed'),
  'taskGroups.events': (c) => c.taskGroups.events('g'),
  'taskGroups.runs': (c) => c.taskGroups.runs('g'),
  'taskGroups.progress': (c) => c.taskGroups.progress('g'),
  'tasks.run': (c) => c.tasks.run('x'),
  'tasks.create': (c) => c.tasks.create({ input: 'x', processor: 'base' }),
  'tasks.get': (c) => c.tasks.get('r'),
  'tasks.input': (c) => c.tasks.input('r'),
  'tasks.result': (c) => c.tasks.result('r'),
  'tasks.events': (c) => c.tasks.events('r3'),
  'findAll.run': (c) => c.findAll.run('x'),
  'findAll.ingest': (c) => c.findAll.ingest({ objective: 'x' }),
  'findAll.create': (c) => c.findAll.create({ ...findAll, generator: 'base', match_limit: 5 }),
  'findAll.get': (c) => c.findAll.get('f'),
  'findAll.cancel': (c) => c.findAll.cancel('f'),
  'findAll.extend': (c) => c.findAll.extend('f', { additional_match_limit: 1 }),
  'findAll.enrich': (c) => c.findAll.enrich('f', enrichment),
  'findAll.schema': (c) => c.findAll.schema('f'),
  'findAll.result': (c) => c.findAll.result('f'),
  'findAll.events': (c) => c.findAll.events('f'),
  'findAll.entitySearch': (c) => c.findAll.entitySearch('x', { entity_type: 'people' }),
  'memory.retrieve': (c) => c.memory.retrieve(),
  'memory.follow': (c) => c.memory.follow(),
  'memory.evict': (c) => c.memory.evict({ id: 'r', kind: 'task' }),
  'memory.clear': (c) => c.memory.clear(),
  watch: (c) =>
    c.watch({
      monitors: ['m'],
      taskGroups: ['g'],
      runs: ['r3'],
      findAlls: ['f'],
      hold: 0,
      webhooks: {
        deliveries: of({
          id: 'w',
          timestamp: 0,
          payload: { type: 'task_run.status', data: { run_id: 'r2', status: 'completed' } },
        }),
      },
    }),
  'watch.positioned': (c) =>
    c.watch.positioned({ monitors: ['m'], taskGroups: ['g'], runs: ['r3'], findAlls: ['f'] }),
}

/** Calls each method of the SDK. */
const SDK: Readonly<Record<string, (sdk: Parallel) => PromiseLike<unknown>>> = {
  search: (s) => s.search({ search_queries: ['x'] }),
  extract: (s) => s.extract({ urls: [] }),
  'monitor.create': (s) =>
    s.monitor.create({ type: 'event_stream', frequency: '1d', settings: { query: 'x' } }),
  'monitor.retrieve': (s) => s.monitor.retrieve('m'),
  'monitor.update': (s) => s.monitor.update('m', {}),
  'monitor.list': (s) => s.monitor.list(),
  'monitor.cancel': (s) => s.monitor.cancel('m'),
  'monitor.events': (s) => s.monitor.events('m'),
  'monitor.trigger': (s) => s.monitor.trigger('m'),
  'taskGroup.create': (s) => s.taskGroup.create({}),
  'taskGroup.retrieve': (s) => s.taskGroup.retrieve('g'),
  'taskGroup.addRuns': (s) => s.taskGroup.addRuns('g', { inputs: [] }),
  'taskGroup.events': (s) => s.taskGroup.events('g'),
  'taskGroup.getRuns': (s) => s.taskGroup.getRuns('g'),
  'taskGroup.retrieveRun': (s) => s.taskGroup.retrieveRun('r', { taskgroup_id: 'g' }),
  'taskRun.create': (s) => s.taskRun.create({ input: 'x', processor: 'base' }),
  'taskRun.retrieve': (s) => s.taskRun.retrieve('r'),
  'taskRun.events': (s) => s.taskRun.events('r'),
  'taskRun.result': (s) => s.taskRun.result('r'),
  'taskRun.retrieveInput': (s) => s.taskRun.retrieveInput('r'),
  'beta.findall.ingest': (s) => s.beta.findall.ingest({ objective: 'x' }),
  'beta.findall.create': (s) => s.beta.findall.create({ ...findAll, generator: 'base', match_limit: 5 }),
  'beta.findall.retrieve': (s) => s.beta.findall.retrieve('f'),
  'beta.findall.cancel': (s) => s.beta.findall.cancel('f'),
  'beta.findall.extend': (s) => s.beta.findall.extend('f', { additional_match_limit: 1 }),
  'beta.findall.enrich': (s) => s.beta.findall.enrich('f', enrichment),
  'beta.findall.schema': (s) => s.beta.findall.schema('f'),
  'beta.findall.result': (s) => s.beta.findall.result('f'),
  'beta.findall.events': (s) => s.beta.findall.events('f'),
  'beta.findall.entitySearch': (s) => s.beta.findall.entitySearch({ objective: 'x', entity_type: 'people' }),
  'beta.memory.retrieve': (s) => s.beta.memory.retrieve({}),
  'beta.memory.evict': (s) => s.beta.memory.evict({ id: 'r', kind: 'task' }),
  'beta.memory.clear': (s) => s.beta.memory.clear({}),
}

/** The names in a column of the table, sorted. */
function inColumn(column: 'client' | 'sdk'): string[] {
  return [...new Set(rows.flatMap((row) => row[column]))].toSorted()
}

/** The methods of an object's own class, each prefixed with the object's name. */
function methodsOf(name: string, object: object): string[] {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(object))
  return methods.filter((method) => method !== 'constructor').map((method) => `${name}.${method}`)
}

describe('the table of all endpoints', () => {
  it('names each method of the client', () => {
    const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })
    const all = Object.entries(client).flatMap(([name, value]) => {
      // The untyped calls accept any path, and diagnostics and observers request nothing.
      if (/^(get|post|stream|diagnostics|observe)$/.test(name)) return []
      const methods = Object.keys(value).map((method) => `${name}.${method}`)
      return typeof value === 'function' ? [name].concat(methods) : methods
    })

    expect(inColumn('client')).toEqual(all.toSorted())
  })

  it('has a call of each method that it names, so that its request is checked', () => {
    expect(Object.keys(CLIENT).toSorted()).toEqual(inColumn('client'))
    expect(Object.keys(SDK).toSorted()).toEqual(inColumn('sdk'))
  })

  it("names each method of the SDK's resources that the interface has", () => {
    const sdk = new Parallel({ apiKey: 'key' })
    const all = [
      ...methodsOf('monitor', sdk.monitor),
      ...methodsOf('taskGroup', sdk.taskGroup),
      ...methodsOf('taskRun', sdk.taskRun),
      ...methodsOf('beta.findall', sdk.beta.findall),
      ...methodsOf('beta.memory', sdk.beta.memory),
    ]

    const inTable = rows.flatMap((row) => row.sdk)
    expect(inTable.filter((name) => name.includes('.')).toSorted()).toEqual(all.toSorted())
  })

  it.each(Object.entries(CLIENT))('has the request of %s of the client', async (name, call) => {
    const { baseUrl, requests, until } = await recordingService()
    const wanted = rows.filter((row) => row.client.includes(name)).map(({ endpoint }) => endpoint)
    const failed = Promise.withResolvers<never>()

    const subscription = call(createClient({ baseUrl, apiKey: 'key' })).subscribe({ error: failed.reject })
    const requested = () => requests.map(endpointOf)
    await Promise.race([failed.promise, until(() => wanted.every((one) => requested().includes(one)))])
    subscription.unsubscribe()

    const known = rows.filter((row) => row.client.length > 0).map(({ endpoint }) => endpoint)
    expect(known).toEqual(expect.arrayContaining(requested()))
  })

  it.each(Object.entries(SDK))('has the request of %s of the SDK', async (name, call) => {
    const { baseUrl, requests } = await recordingService()
    await call(new Parallel({ apiKey: 'key', baseURL: baseUrl, maxRetries: 0 }))

    const expected = rows.filter((row) => row.sdk.includes(name)).map(({ endpoint }) => endpoint)
    expect(requests.map(endpointOf)).toEqual(expected)
  })

  it('has what the embedded service serves', async () => {
    const { service } = await research()
    const served = await Promise.all(
      rows.map(async ({ endpoint }) => {
        const [method = '', path = ''] = endpoint.split(' ')
        const url = service.url + path.replace('{id}', 'none').replace('{run_id}', 'none')
        const answer = await fetch(url, { method, headers: { 'x-api-key': service.apiKey } })
        return { endpoint, served: !(await answer.text()).includes('There is nothing at') }
      }),
    )

    expect(served).toEqual(rows.map(({ endpoint, served: documented }) => ({ endpoint, served: documented })))
  })

  it('has each route of the embedded service', async () => {
    await research()
    const routes = apps.at(-1)?.routes.filter(({ method }) => method !== 'ALL') ?? []

    const documented = rows.filter(({ served }) => served).map(({ endpoint }) => endpoint)
    const withoutVersion = documented.map((endpoint) => endpoint.replace(' /v1beta/tasks/', ' /v1/tasks/'))
    expect([...new Set(routes.map(endpointOfRoute))].toSorted()).toEqual(
      [...new Set(withoutVersion)].toSorted(),
    )
  })
})
