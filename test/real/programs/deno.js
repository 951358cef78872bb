// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
import process from 'node:process'
import { createApp } from './app.js'

const {
  RIVULET_BASE_URL: baseUrl,
  RIVULET_API_KEY: apiKey,
  RIVULET_WEBHOOK_SECRET: secret,
} = Deno.env.toObject()
const server = Deno.serve(
  { hostname: '127.0.0.1', port: 0, onListen: () => {} },
  createApp({ baseUrl, apiKey, secret }),
)
process.stdout.write(`${JSON.stringify({ port: server.addr.port })}\n`)
