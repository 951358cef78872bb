// A page of one's own over a log. With rolldown, react and react-dom installed, run this file and open the address that it prints.
import { createServer } from 'node:http'
import { createClient, groupSource } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { createGateway, groupsView, groupView, nodeListener } from 'rivulet/gateway'
import { createResearchService } from 'rivulet/service'
import { rolldown } from 'rolldown'

const service = await createResearchService({ docs: 'node_modules/rxjs' })
const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
const log = await openLog(memoryStore())
const { taskgroup_id: group } = await client.taskGroups.create()

/** @type {import('rivulet/gateway').GatewayClient['taskGroups']['addRuns']} */
async function addRuns(id, request, options) {
  const added = await client.taskGroups.addRuns(id, request, options)
  // A recording of a group ends with its runs, so the next runs begin another one, which waits for the one before.
  log.record({ client, taskGroups: [id], wait: AbortSignal.timeout(600_000) }).done.catch(console.error)
  return added
}
const first = { inputs: [{ input: 'What does RxJS do?', processor: 'base' }] }
await addRuns(group, first, { signal: AbortSignal.timeout(60_000) })

export const views = { groups: groupsView(), group: groupView() }
const granted = { search: client.search, taskGroups: { addRuns } }
const gateway = createGateway({ log, views, client: granted, tokens: { secret: crypto.randomUUID() } })
const live = nodeListener(gateway)
// What the user of your session may see and do.
const requests = { addRuns: { groups: [group], processors: ['base'] } }
const grant = { sub: 'user_1', views: ['groups', 'group'], sources: [groupSource(group)], requests }

const transform = { define: { 'process.env.NODE_ENV': '"production"' } }
const bundle = await rolldown({ input: `${import.meta.dirname}/page.jsx`, platform: 'browser', transform })
const [{ code }] = (await bundle.generate({ codeSplitting: false })).output
const html = '<!doctype html><title>Questions</title><script type="module" src="/page.js"></script>'
const server = createServer(async (request, response) => {
  if (request.url?.startsWith('/live/')) live(request, response)
  else if (request.url === '/token') response.end(await gateway.grant(grant))
  else if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(code)
  else response.setHeader('content-type', 'text/html').end(html)
})
server.listen(Number(process.env.PORT ?? 3000), 'localhost', () => {
  console.log(`http://localhost:${Object(server.address()).port}/`)
})
