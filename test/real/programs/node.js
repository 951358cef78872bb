// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
import { createServer } from 'node:http'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createResearchService } from 'rivulet/service'
import { nodeListener } from 'rivulet/webhooks'
import { createApp } from './app.js'

const { RIVULET_BASE_URL: baseUrl, RIVULET_API_KEY: apiKey, RIVULET_WEBHOOK_SECRET: secret } = process.env
const app = createApp({ baseUrl, apiKey, secret })
const refusals = async () => {
  const attempts = [openLog(sqliteStore('refused.db')), createResearchService({ docs: '.' })]
  const outcomes = await Promise.allSettled(attempts)
  return Response.json(outcomes.map(({ reason }) => `${reason}`))
}
const server = createServer(
  nodeListener((request) => (new URL(request.url).pathname === '/refusals' ? refusals() : app(request))),
)
server.listen(0, '127.0.0.1', () =>
  process.stdout.write(`${JSON.stringify({ port: server.address().port })}\n`),
)
