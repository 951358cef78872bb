/** A program on Node: without the types of a browser. Compiled with each supported TypeScript. */
import { createServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import { DatabaseSync } from 'node:sqlite'
import { ConnectionError, createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { createDashboard } from 'rivulet/dashboard'
import { createGateway, groupView, runsView } from 'rivulet/gateway'
import { connect } from 'rivulet/live'
import type { ViewShape } from 'rivulet/live'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { STORE_LIMITS } from 'rivulet/log/store'
import { natsStore } from 'rivulet/log/nats'
import { deliver, ofType } from 'rivulet/operators'
import { instrument } from 'rivulet/otel'
import { useView } from 'rivulet/react'
import { alerts, defineRules, ruleStatus, runRules } from 'rivulet/rules'
import { createResearchService } from 'rivulet/service'
import { inMemory } from 'rivulet/streams'
import type { Exchange } from 'rivulet/transport'
import { createWebhookReceiver, nodeListener } from 'rivulet/webhooks'

await using service = await createResearchService({ docs: '.' })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
await using log = await openLog(sqliteStore('rivulet.db'))
export const instrumentation = instrument({ client, log })
const recording = log.record({ client, taskGroups: ['g'] })
recording.done.catch((error: unknown) => {
  if (error instanceof ConnectionError) process.stderr.write(error.message)
})

const database = new DatabaseSync('effects.db')
const insert = database.prepare('INSERT INTO run VALUES (?)')
log.consume(
  'ledger',
  { types: ['task_run.state'] },
  exactlyOnce(database, { effect: ({ data: { run } }) => void insert.run(run.run_id) }),
)
// @ts-expect-error It is no handler.
log.consume('ledger', { types: ['task_run.state'] }, {})
export const outputs = log.consume('outputs').pipe(
  ofType('task_run.state'),
  deliver(({ data }) => void process.stdout.write(data.run.run_id)),
)

const rules = defineRules({ version: 1, rules: [] })
export const running = runRules(log, rules)
export const raised = client.watch({ monitors: ['m'] }).pipe(alerts(rules))
export const counted = client.watch({ monitors: ['m'] }).pipe(
  inMemory('count', {
    key: (event) => event.source,
    init: () => 0,
    event: (state, _event, context) => context.set(state + 1),
  }),
)

const gateway = createGateway({
  log,
  views: { runs: runsView(), group: groupView() },
  tokens: { secret: 'secret' },
})
const dashboard = createDashboard({ log })
const receiver = createWebhookReceiver({ secrets: 'secret', inbox: log.inbox })
createServer(nodeListener(receiver)).listen(3000)
createSecureServer({}, nodeListener(gateway)).listen(3001)
export const handled: Promise<Response> = dashboard(new Request('http://localhost/'))

const live = connect<{ runs: ViewShape<{ n: number }> }>({ url: '/live', getToken: () => '' })
export const Rows = (): number => useView(live.view('runs')).rows.size
export const shared = natsStore({ servers: 'localhost', name: 'rivulet' })
export const limit: number = STORE_LIMITS.appendEntries

/** What users export without writing its type. */
export const surface = async () => ({
  client,
  areas: {
    monitors: client.monitors,
    tasks: client.tasks,
    groups: client.taskGroups,
    findAll: client.findAll,
  },
  following: client.watch({ monitors: ['m'] }).pipe(ofType('task_run.state')),
  listed: client.monitors.events('m'),
  followed: client.monitors.follow('m'),
  run: client.tasks.run('question'),
  streamed: client.responses.stream({ input: 'question', model: 'speed' }),
  chat: client.chat.stream({ messages: [{ role: 'user', content: 'question' }], model: 'speed' }),
  positioned: client.watch.positioned({ monitors: ['m'], from: () => null }),
  page: await log.read(await log.positionAt('start')),
  forgotten: await log.forget({ source: 's' }),
  stats: await log.stats(),
  recording,
  log,
  letters: log.deadLetters('ledger'),
  status: await ruleStatus(log),
  listener: nodeListener(gateway),
  gateway,
  service,
})
export const overHttp = (exchange: Exchange) => createClient({ exchange })
