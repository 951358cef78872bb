// Records a group, and posts each run that has ended to an HTTP service, which verifies signatures and ignores duplicates.
import { createServer } from 'node:http'
import { createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { createResearchService } from 'rivulet/service'
import { httpSink, nodeListener, verifySignature } from 'rivulet/webhooks'

const secrets = 'the secret that both sides have'
const inputs = ['What does RxJS do?', 'How is RxJS installed?'].map((input) => ({ input, processor: 'base' }))

// The HTTP service. A real one keeps the keys in a unique column, written in the transaction of the effect.
const handled = new Set()
const done = Promise.withResolvers()
let requests = 0
const server = createServer(
  nodeListener(async (request) => {
    const header = (/** @type {string} */ name) => request.headers.get(`webhook-${name}`) ?? ''
    const body = await request.text()
    const content = { id: header('id'), timestamp: header('timestamp'), body }
    if (!(await verifySignature(content, header('signature'), secrets)))
      return new Response(null, { status: 401 })
    // It is overloaded at first: the sink tries again, with the same key.
    if ((requests += 1) === 1) return new Response(null, { status: 503, headers: { 'retry-after': '1' } })
    if (!handled.has(content.id)) {
      const { type, data } = JSON.parse(body)
      console.log(type, data.run.run_id, data.run.status)
      handled.add(content.id)
    }
    if (handled.size === inputs.length) done.resolve(undefined)
    return new Response(null, { status: 204 })
  }),
)
const url = await new Promise((resolve) =>
  server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${Object(server.address()).port}/runs`)),
)

const service = await createResearchService({ docs: 'node_modules/rxjs' })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const { taskgroup_id } = await client.taskGroups.create()
await client.taskGroups.addRuns(taskgroup_id, { inputs })
const log = await openLog(memoryStore())
await log.record({ client, taskGroups: [taskgroup_id] }).done

const job = log.consume(
  'billing',
  { types: ['task_run.state'], revisions: 'first', retries: Infinity, deadLetters: 'log' },
  httpSink({ url, secrets }),
)
await done.promise
await job.stop()
await log.close()
await service.close()
server.close()
console.log(`${requests} requests`)
