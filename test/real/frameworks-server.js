// @ts-nocheck -- The frameworks have types where their packages are installed, for `npm run test:real` alone.
// Serves a gateway below `/live` and a receiver of webhooks at `/hooks/research` in the framework that the first argument names, with
// the secret of the second one. Prints its port and a token of the gateway.
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { memoryLog, openLog } from 'rivulet'
import { createGateway, groupView, nodeListener } from 'rivulet/gateway'
import { createWebhookReceiver } from 'rivulet/webhooks'
import { servers } from './frameworks/servers.js'

const [, , framework = '', secret = ''] = process.argv
const log = await openLog(memoryLog())
const gateway = createGateway({ log, views: { group: groupView() }, tokens: { secret } })
const receiver = createWebhookReceiver({ secrets: secret })

function hono() {
  const app = new Hono()
  app.all('/live/*', ({ req }) => gateway(req.raw))
  app.post('/hooks/research', ({ req }) => receiver.handle(req.raw))
  return createServer(getRequestListener(app.fetch))
}

const listeners = { live: nodeListener(gateway), hooks: nodeListener(receiver) }
const server = framework === 'hono' ? hono() : await servers[framework](listeners)
server.listen(0, '127.0.0.1', async () => {
  const token = await gateway.grant({ sub: 'ada', views: ['group'], sources: ['/v1/tasks/groups/g'] })
  process.stdout.write(`${JSON.stringify({ port: server.address().port, token })}\n`)
})
