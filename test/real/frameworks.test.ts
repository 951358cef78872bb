import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it, onTestFinished } from 'vitest'

const SECRET = 'a secret of thirty-two bytes or more'
const PROGRAM = resolve(import.meta.dirname, 'frameworks-server.js')

/** Starts a gateway and a receiver of webhooks in this framework. */
async function started(framework: string): Promise<{ readonly origin: string; readonly token: string }> {
  const args = ['--conditions=rivulet-source', PROGRAM, framework, SECRET]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the server ended with ${code}`)
  })
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), ended])
  ended.catch(() => {})
  const { port, token } = JSON.parse(String(line))
  return { origin: `http://127.0.0.1:${port}`, token }
}

/** The status of a view's stream, and its first words. */
async function followed(origin: string, token: string) {
  const ending = new AbortController()
  const { status, body } = await fetch(`${origin}/live/stream`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ views: [{ view: 'group', params: { group: 'g' } }] }),
    signal: ending.signal,
  })
  const first = await body?.getReader().read()
  ending.abort()
  return `${status} ${Buffer.from(first?.value ?? [])
    .toString()
    .slice(0, 11)}`
}

/** The status of a delivery. */
async function delivered(origin: string, secret: string): Promise<number> {
  const body = JSON.stringify({ type: 'task_run.status', timestamp: '2026-01-01T00:00:00Z', data: {} })
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const signature = createHmac('sha256', secret).update(`msg_1.${timestamp}.${body}`).digest('base64')
  const { status } = await fetch(`${origin}/hooks/research`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'msg_1',
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  })
  return status
}

describe('a gateway and a receiver of webhooks below a path', () => {
  it.each(['express', 'express-router', 'fastify', 'koa', 'nest', 'hono'])(
    'stream and verify in %s',
    async (framework) => {
      const { origin, token } = await started(framework)

      expect(await followed(origin, token)).toBe('200 event: open')
      expect(await delivered(origin, SECRET)).toBe(204)
      expect(await delivered(origin, 'forged')).toBe(401)
      expect((await fetch(`${origin}/other`)).status).toBe(404)
    },
  )
})
