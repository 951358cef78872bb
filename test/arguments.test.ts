import { EMPTY } from 'rxjs'
import { describe, expect, it } from 'vitest'
import * as rivulet from 'rivulet'
import * as dashboard from 'rivulet/dashboard'
import * as gateway from 'rivulet/gateway'
import * as live from 'rivulet/live'
import { memoryStore, openLog } from 'rivulet/log'
import * as operators from 'rivulet/operators'
import * as otel from 'rivulet/otel'
import * as react from 'rivulet/react'
import * as streams from 'rivulet/streams'
import * as webhooks from 'rivulet/webhooks'

// What a user without a type checker could write.
// oxlint-disable-next-line typescript/no-explicit-any
type Untyped = any

/** The argument that the error names, and a call with a wrong one. */
type WrongCall = readonly [argument: string, call: () => unknown]

const wrong: Untyped = undefined
const log = await openLog(memoryStore())
const secret = 'a secret of at least thirty-two bytes'
const secrets = 'webhook-secret'
const functions = { key: () => 'k', init: () => 0, event: () => {} }
const aView = { version: 1, key: () => ['a'], reduce: () => 1 }
const items = gateway.view(aView)
const client = rivulet.createClient({ baseUrl: 'http://127.0.0.1', apiKey: null })
const started = gateway.createGateway({ log, views: { items }, tokens: { secret } })
const getToken = () => 'token'
const page = live.connect<{ items: live.ViewShape<unknown, 'item'> }>({ url: '/live', getToken })

const gatewayOf = (options: Untyped) => () =>
  gateway.createGateway({ log, views: { items }, tokens: { secret }, ...options })
const dashboardOf = (options: Untyped) => () => dashboard.createDashboard({ log, ...options })
const viewOf = (options: Untyped) => () => gateway.view({ ...aView, ...options })
const receiverOf = (options: Untyped) => () => webhooks.createWebhookReceiver({ secrets, ...options })
const sinkOf = (options: Untyped) => () => webhooks.httpSink({ url: 'https://x.example', ...options })
const connectTo = (options: Untyped) => () => live.connect({ url: '/live', getToken, ...options })
const signed = (webhook: Untyped) => () => webhooks.signWebhook({ body: '{}', secrets, ...webhook })
const verified = (content: Untyped, header: Untyped = 'v1,') => {
  return () => webhooks.verifySignature({ id: 'm', timestamp: '1', body: '{}', ...content }, header, secrets)
}

/** A call with a number for each of these options. */
const wrongOptions = (make: (options: Untyped) => unknown, ...names: string[]): readonly WrongCall[] =>
  names.map((name) => [name, () => make({ [name]: 5 })])

/** Calls of a ready-made view. */
const ages = (make: Untyped): readonly WrongCall[] => [
  ['options', () => make(null)],
  ['timeToLiv', () => make({ timeToLiv: 1 })],
  ['timeToLive', () => make({ timeToLive: -1 })],
]

const WRONG_CALLS: Readonly<Record<string, Readonly<Record<string, readonly WrongCall[]>>>> = {
  rivulet: {
    checkOutput: [['schema', () => rivulet.checkOutput(wrong, wrong)]],
    createClient: [
      ['options', () => rivulet.createClient(5 as Untyped)],
      ['baseURL', () => rivulet.createClient({ baseURL: 'http://127.0.0.1' } as Untyped)],
      ['observer', () => client.observe(wrong)],
      ['observer.request', () => client.observe({ request: 5 } as Untyped)],
    ],
    createMonitorClient: [['retrys', () => rivulet.createMonitorClient({ retrys: 1 } as Untyped)]],
    outputSchema: [['schema', () => rivulet.outputSchema(wrong)]],
    responseText: [['response', () => rivulet.responseText(wrong)]],
  },
  'rivulet/dashboard': {
    createDashboard: [
      ['options', () => dashboard.createDashboard(wrong)],
      ['log', () => dashboard.createDashboard({} as Untyped)],
      ['log', dashboardOf({ log: 'rivulet.db' })],
      ['keys', dashboardOf({ keys: 'k' })],
      ['key', dashboardOf({ key: 'short' })],
      ['client', dashboardOf({ client: {} })],
      ['documents', dashboardOf({ documents: {} })],
      ['origins', dashboardOf({ origins: [] })],
    ],
  },
  'rivulet/gateway': {
    activityView: ages(gateway.activityView),
    alertsView: ages(gateway.alertsView),
    createGateway: [
      ['options', () => gateway.createGateway(wrong)],
      ['log', () => gateway.createGateway({} as Untyped)],
      ['log', gatewayOf({ log: {} })],
      ['views', gatewayOf({ views: undefined })],
      ['views.items', gatewayOf({ views: { items: aView } })],
      ['views.items', gatewayOf({ views: { items: undefined } })],
      ['tokens', gatewayOf({ tokens: undefined })],
      ['tokens.secret', gatewayOf({ tokens: {} })],
      ['origin', gatewayOf({ origin: 'https://app.example' })],
      ['origins', gatewayOf({ origins: 'https://app.example' })],
      ['name', gatewayOf({ name: 'a/b' })],
      ['path', gatewayOf({ path: 5 })],
      ['client', gatewayOf({ client: {} })],
      ['client.taskGroups', gatewayOf({ client: { search: () => {} } })],
      ['holdsRetention', gatewayOf({ holdsRetention: 1 })],
      ['heartbeat', gatewayOf({ heartbeat: 0 })],
      ['maxConnections', gatewayOf({ maxConnections: 0 })],
      ['observer', () => started.observe(wrong)],
      ...['request', 'refused', 'connected', 'encoded', 'sent'].map((name): WrongCall => [
        `observer.${name}`,
        () => started.observe({ [name]: 5 } as Untyped),
      ]),
      ['grant', () => started.grant(wrong)],
      ['grant', () => started.ticket(wrong)],
      ['revocation', () => started.revoke(wrong)],
      ['views', () => started.snapshot({ sub: 'a' }, wrong)],
    ],
    findAllView: ages(gateway.findAllView),
    findAllsView: ages(gateway.findAllsView),
    groupView: ages(gateway.groupView),
    groupsView: ages(gateway.groupsView),
    monitorView: ages(gateway.monitorView),
    nodeListener: [['handler', () => gateway.nodeListener(wrong)]],
    runView: ages(gateway.runView),
    runsView: ages(gateway.runsView),
    searchesView: ages(gateway.searchesView),
    view: [
      ['options', () => gateway.view(wrong)],
      ['version', () => gateway.view({} as Untyped)],
      ['version', viewOf({ version: 0 })],
      ['types', viewOf({ types: 'task_run.state' })],
      ['where', viewOf({ where: true })],
      ['params', viewOf({ params: 'group' })],
      ['params', viewOf({ params: [1] })],
      ['key', viewOf({ key: 'id' })],
      ['reduce', viewOf({ reduce: undefined })],
      ['source', viewOf({ source: '/v1/monitors/m' })],
      ['startAt', viewOf({ startAt: 'now' })],
      ['timeToLive', viewOf({ timeToLive: '1d' })],
      ['reducer', viewOf({ reducer: () => 1 })],
    ],
  },
  'rivulet/live': {
    connect: [
      ['url', () => live.connect(wrong)],
      ['url', () => live.connect({} as Untyped)],
      ['url', connectTo({ url: 5 })],
      ['getToken', connectTo({ getToken: 'token' })],
      ['option', connectTo({ shared: false })],
      ['params.item', () => page.view('items', { item: 5 } as Untyped)],
      ['view', () => page.view('items', { item: '\uD800' })],
    ],
    viewAddress: [['view', () => live.viewAddress(wrong)]],
  },
  'rivulet/operators': {
    batch: [
      ['options', () => operators.batch(wrong)],
      ['size', () => operators.batch({ wait: 1 } as Untyped)],
      ['size', () => operators.batch({ size: 0, wait: 1 })],
      ['wait', () => operators.batch({ size: 1 } as Untyped)],
      ['wait', () => operators.batch({ size: 1, wait: Infinity })],
      ['key', () => operators.batch({ size: 1, wait: 1, key: 'source' } as Untyped)],
      ['scheduler', () => operators.batch({ size: 1, wait: 1, scheduler: 5 } as Untyped)],
    ],
    dedupe: [
      ['options', () => operators.dedupe(5 as Untyped)],
      ...wrongOptions(operators.dedupe, 'onDuplicate', 'scheduler'),
    ],
    deliver: [['handler', () => operators.deliver(wrong)]],
    iterate: [['source', () => operators.iterate(wrong)]],
    mergeWebhooks: [
      ['deliveries', () => operators.mergeWebhooks(wrong)],
      ...wrongOptions(
        (options) => operators.mergeWebhooks(EMPTY, options),
        'expandMonitor',
        'expandRun',
        'onError',
        'onDuplicate',
        'scheduler',
      ),
    ],
    ofType: [['types', () => operators.ofType(wrong)]],
    reconnect: [
      ['options', () => operators.reconnect(5 as Untyped)],
      ['options', () => operators.reconnect(null as Untyped)],
      ['maxFailure', () => operators.reconnect({ maxFailure: 1 } as Untyped)],
      ...wrongOptions(
        operators.reconnect,
        'retryable',
        'done',
        'progress',
        'serverDelay',
        'onReconnect',
        'random',
        'scheduler',
      ),
    ],
    underGate: [['gate', () => operators.underGate({} as Untyped)]],
  },
  'rivulet/otel': {
    instrument: [
      ['options', () => otel.instrument(wrong)],
      ['options', () => otel.instrument({})],
      ['client', () => otel.instrument({ client: {} as Untyped })],
      ['log', () => otel.instrument({ log: {} as Untyped })],
      ['gateway', () => otel.instrument({ gateway: {} as Untyped })],
      ['meter', () => otel.instrument({ log, meter: {} as Untyped })],
      ['tracer', () => otel.instrument({ log, tracer: {} as Untyped })],
      ['propagate', () => otel.instrument({ log, propagate: 1 as Untyped })],
      ['clients', () => otel.instrument({ log, clients: [] } as Untyped)],
    ],
  },
  'rivulet/streams': {
    aggregate: [
      ['name', () => streams.aggregate('' as Untyped, streams.tumbling(1), { n: streams.count() })],
      ['values', () => streams.aggregate('a', streams.tumbling(1), {})],
    ],
    average: [['value', () => streams.average(wrong)]],
    collect: [['most', () => streams.collect((item) => item, 0)]],
    count: [['where', () => streams.count(5 as Untyped)]],
    define: [
      ['name', () => streams.define('', { version: 1 }, wrong)],
      ['versoin', () => streams.define('d', { versoin: 1 } as Untyped, wrong)],
      ['stages[0]', () => streams.define('d', { version: 1 }, wrong)],
    ],
    distinct: [['value', () => streams.distinct(wrong)]],
    enrich: [['table', () => streams.enrich('e', wrong)]],
    from: [['types[0]', () => streams.from(5 as Untyped)]],
    hopping: [['every', () => streams.hopping('1m', '2m')]],
    join: [['right', () => streams.join('j', wrong, { within: 1 })]],
    keyBy: [['key', () => streams.keyBy(wrong)]],
    latest: [['value', () => streams.latest(wrong)]],
    latestBy: [['key', () => streams.latestBy('l', wrong)]],
    map: [['value', () => streams.map(wrong)]],
    max: [['value', () => streams.max(wrong)]],
    min: [['value', () => streams.min(wrong)]],
    orderByTime: [['lateness', () => streams.orderByTime({ lateness: -1 })]],
    percentile: [['p', () => streams.percentile(() => 1, 101)]],
    session: [['gap', () => streams.session(0)]],
    sum: [['value', () => streams.sum(wrong)]],
    testStream: [['definition', () => streams.testStream(wrong)]],
    tumbling: [['size', () => streams.tumbling('0s')]],
    where: [['wanted', () => streams.where(wrong)]],
    inMemory: [
      ['name', () => streams.inMemory(wrong, functions)],
      ['functions', () => streams.inMemory('p', wrong)],
      ['key', () => streams.inMemory('p', {} as Untyped)],
      ['options', () => streams.inMemory('p', functions, 5 as Untyped)],
    ],
  },
  'rivulet/webhooks': {
    createWebhookReceiver: [
      ['createWebhookReceiver', () => webhooks.createWebhookReceiver(wrong)],
      ['secrets', () => webhooks.createWebhookReceiver({} as Untyped)],
      ['secret', receiverOf({ secret: 's' })],
      ['inbox', receiverOf({ inbox: {} })],
      ['clock', receiverOf({ clock: 5 })],
    ],
    httpSink: [
      ['options', () => webhooks.httpSink(wrong)],
      ['url', () => webhooks.httpSink({} as Untyped)],
      ['url', sinkOf({ url: 'http://x.example' })],
      ['secret', sinkOf({ secret: 's' })],
      ['secrets', sinkOf({ secrets: [] })],
      ['auth', sinkOf({ auth: {} })],
      ['auth', sinkOf({ url: 'https://u:p@x.example', auth: { bearer: 't' } })],
      ['auth.bearer', sinkOf({ auth: { bearer: 'a b' } })],
      ['headers', sinkOf({ headers: 'x-api-key: k' })],
      ['headers', sinkOf({ headers: new Headers({ 'x-api-key': 'k' }) })],
      ['headers.x-api-key', sinkOf({ headers: { 'x-api-key': 'a\r\nb: c' } })],
      ['headers', sinkOf({ auth: { bearer: 't' }, headers: { authorization: 'Key k' } })],
      ['allowInsecure', sinkOf({ allowInsecure: 'yes' })],
      ['timeout', sinkOf({ timeout: 0 })],
      ['timeout', sinkOf({ timeout: Infinity })],
      ['fetch', sinkOf({ fetch: 5 })],
      ['event', () => webhooks.httpSink({ url: 'https://x.example' })(wrong)],
      ['signal', () => webhooks.httpSink({ url: 'https://x.example' })([], 5 as Untyped)],
    ],
    memoryInbox: [
      ['options', () => webhooks.memoryInbox(5 as Untyped)],
      ['maxPendings', () => webhooks.memoryInbox({ maxPendings: 1 } as Untyped)],
      ['maxPending', () => webhooks.memoryInbox({ maxPending: 0 })],
    ],
    nodeListener: [['handler', () => webhooks.nodeListener({} as Untyped)]],
    signWebhook: [
      ['webhook', () => webhooks.signWebhook(wrong)],
      ['body', signed({ body: undefined })],
      ['secrets', signed({ secrets: [] })],
      ['secret', signed({ secret: 's' })],
      ['id', signed({ id: 'ä' })],
      ['timestamp', signed({ timestamp: -1 })],
    ],
    signedRequest: [['secrets', () => webhooks.signedRequest('http://127.0.0.1', {}, {} as Untyped)]],
    verifySignature: [
      ['content', () => webhooks.verifySignature(wrong, 'v1,', secrets)],
      ['content.id', verified({ id: undefined })],
      ['content.timestamp', verified({ timestamp: 1 })],
      ['body', verified({ body: {} })],
      ['signatureHeader', verified({}, 5)],
      ['secrets', () => webhooks.verifySignature({ id: 'm', timestamp: '1', body: '' }, 'v1,', wrong)],
    ],
  },
}

/**
 * Functions without a wrong argument that a check could find: they read data of any kind, texts, or a component's props.
 */
const UNCHECKED = [
  'findAllEvent',
  'findAllSource',
  'gapEvent',
  'groupEvent',
  'groupSource',
  'monitorEvent',
  'monitorSource',
  'runEvent',
  'runSource',
  'gateOf',
  'inlineSnapshot',
  'keepPosition',
  'monitorsView',
  'prefetchView',
  'rowKey',
  'rowPath',
  'useAddRuns',
  'useSearch',
  'useStatus',
  'useSuspenseView',
  'useView',
]

const cases = Object.entries(WRONG_CALLS).flatMap(([entry, calls]) =>
  Object.entries(calls).flatMap(([name, list]) =>
    list.map(([argument, call]) => [`${name} of ${entry}`, argument, call] as const),
  ),
)

describe('a wrong argument', () => {
  it.each(cases)('of %s is reported as %s', async (_, argument, call) => {
    // Some calls throw, and some reject.
    const calling = async () => await call()

    await expect(calling()).rejects.toThrow(rivulet.ArgumentError)
    await expect(calling()).rejects.toMatchObject({ argument })
  })

  it('is tried of each exported function', () => {
    const entries = { rivulet, dashboard, gateway, live, operators, otel, react, streams, webhooks }
    const exported = Object.entries(entries).flatMap(([entry, values]) =>
      Object.entries(values)
        .filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name))
        .map(([name]) => `${entry}: ${name}`),
    )
    const tried = new Set(
      Object.entries(WRONG_CALLS).flatMap(([entry, calls]) =>
        Object.keys(calls).map((name) => `${entry.replace('rivulet/', '')}: ${name}`),
      ),
    )

    const missing = exported.filter((name) => !tried.has(name))
    expect(missing.map((name) => name.split(': ')[1]).toSorted()).toEqual(UNCHECKED.toSorted())
  })
})
