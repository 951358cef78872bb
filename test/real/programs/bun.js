// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
import { createApp } from './app.js'

const { RIVULET_BASE_URL: baseUrl, RIVULET_API_KEY: apiKey, RIVULET_WEBHOOK_SECRET: secret } = Bun.env
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: createApp({ baseUrl, apiKey, secret }),
})
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`)
