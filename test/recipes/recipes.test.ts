import { once } from 'node:events'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serve as serveFetch } from '@hono/node-server'
import { gapEvent } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { createResearchService, type Processor } from 'rivulet/service'
import { signedRequest } from 'rivulet/webhooks'
import type { WebhookReceiver } from 'rivulet/webhooks'
import { firstValueFrom } from 'rxjs'
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { append } from '../log/append.ts'
import { serve } from '../support/serve.ts'

// The other programs are tests themselves.
const SECRET = 'the secret of the recipes'
const PROGRAMS = readdirSync(import.meta.dirname).filter((name) => name !== 'recipes.test.ts')
const read = (url: string) => readFileSync(new URL(url, import.meta.url), 'utf8')

const payload = { type: 'task_run.status', timestamp: '2026-01-01T00:00:00Z', data: { run_id: 'trun_1' } }
const signed = (url: string, secrets = SECRET) => signedRequest(url, payload, { secrets })

/** Posts a webhook to a recipe, and one with a wrong signature. */
async function post(url: string, { deliveries }: WebhookReceiver) {
  const delivery = firstValueFrom(deliveries)
  const accepted = await fetch(await signed(url))
  const refused = await fetch(await signed(url, 'another secret'))
  return { accepted: accepted.status, refused: refused.status, delivered: (await delivery).payload }
}

/** Answers with the question. */
const echoing: Processor = {
  run: async ({ input }) => ({ output: { type: 'text', content: String(input.input), basis: [] } }),
}

const expected = { accepted: 204, refused: 401, delivered: payload }

beforeAll(() => {
  vi.stubEnv('RIVULET_WEBHOOK_SECRET', SECRET)
  return () => vi.unstubAllEnvs()
})

describe('the pages of docs', () => {
  const blocks = globSync('docs/**/*.md').flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = '']) => ({
      page,
      text,
    })),
  )

  it('contain each program of this folder verbatim, once', () => {
    const pages = PROGRAMS.map((name) => {
      const program = read(name)
      return [name, blocks.filter(({ text }) => text === program).length]
    })

    expect(pages).toEqual(PROGRAMS.map((name) => [name, 1]))
    expect(PROGRAMS).toContain('express.ts')
  })

  it('contain no other program that is a test', () => {
    const programs = new Set(PROGRAMS.map(read))
    const tests = blocks.filter(({ text }) => text.includes("from 'vitest'"))

    expect(tests.filter(({ text }) => !programs.has(text)).map(({ page }) => page)).toEqual([])
    expect(tests.map(({ page }) => page)).toContain('docs/guides/testing.md')
  })
})

describe('the webhook receiver', () => {
  it('for Hono accepts valid signatures and refuses others', async () => {
    const { app, receiver } = await import('./hono.ts')
    const server = serveFetch({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined

    expect(await post(`http://127.0.0.1:${port}/webhooks`, receiver)).toEqual(expected)
  })

  it('for Express is a handler of request, response and next', async () => {
    const { receiver, webhooks } = await import('./express.ts')
    // Calls the handlers of a route like Express: one after another, with `next`.
    const handlers = [
      (_: IncomingMessage, response: ServerResponse, next: () => void) => {
        response.setHeader('x-powered-by', 'a router')
        next()
      },
      webhooks as (request: IncomingMessage, response: ServerResponse, next: () => void) => void,
    ]
    const url = await serve((request, response) => {
      const call = (index: number): void => handlers[index]?.(request, response, () => call(index + 1))
      call(0)
    })

    expect(await post(`${url}/webhooks`, receiver)).toEqual(expected)
  })

  it('for Next is a route handler that starts at its first request and emits deliveries', async () => {
    vi.stubEnv('RIVULET_WEBHOOK_SECRET', '')
    const { POST } = await import('./next.ts')
    vi.stubEnv('RIVULET_WEBHOOK_SECRET', SECRET)
    const written = new Promise((resolve) => {
      const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
        resolve(text)
        return true
      })
      onTestFinished(() => spy.mockRestore())
    })
    const request = await signed('https://site.example/webhooks')
    const id = request.headers.get('webhook-id')

    expect((await POST(request)).status).toBe(204)
    expect((await POST(await signed('https://site.example/webhooks', 'another secret'))).status).toBe(401)
    expect(await written).toBe(`${id}\n`)
  })
})

describe('the program for', () => {
  it("OpenAI's clients asks a service for its models, a chat and a response, with the key in x-api-key alone", async () => {
    await using service = await createResearchService({ docs: import.meta.dirname, processor: echoing })
    const headers: unknown[] = []
    vi.stubEnv('RIVULET_BASE_URL', await service.listen())
    vi.stubEnv('RIVULET_API_KEY', service.apiKey)
    const send = globalThis.fetch
    vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
      headers.push(new Headers(init.headers).get('authorization'))
      return send(url, init)
    })
    onTestFinished(() => void vi.unstubAllGlobals())
    const { chats, responses } = await import('./openai.ts')
    const [model] = (await chats.models.list()).data
    const messages = [{ role: 'user' as const, content: 'Why?' }]
    const { choices } = await chats.chat.completions.create({ model: model?.id ?? '', messages })
    const { id, output_text } = await responses.create({ model: 'research', input: 'Why not?' })

    expect([choices[0]?.message.content, output_text]).toEqual(['Why?', 'Why not?'])
    expect((await responses.retrieve(id)).output_text).toBe('Why not?')
    expect(headers).toEqual([null, null, null, null])
  })

  it('logging logs what the client handles, and each entry once', async () => {
    let requests = 0
    const url = await serve((_, response) => {
      requests += 1
      response.writeHead(requests === 1 ? 503 : 200, { 'content-type': 'application/json' }).end('{}')
    })
    vi.stubEnv('RIVULET_BASE_URL', url)
    vi.stubEnv('RIVULET_API_KEY', 'key_of_the_recipes')
    const { client, logEntries, logger } = await import('./logging.ts')
    const lines: unknown[] = []
    const { promise: isLogged, resolve: logged } = Promise.withResolvers<void>()
    vi.spyOn(logger, 'warn').mockImplementation((line: unknown) => void lines.push(line))
    vi.spyOn(logger, 'info').mockImplementation((line: unknown) => {
      lines.push(line)
      logged()
    })
    await client.get('/v1/monitors')
    const store = memoryStore()
    await append(store, [
      gapEvent('/v1/monitors/m', { from: null, to: null, reason: 'expired' }, 'poll', 'key'),
    ])
    const log = await openLog(store)
    onTestFinished(() => log.close())
    logEntries(log)
    await isLogged

    expect(lines).toMatchObject([
      { method: 'GET', path: '/v1/monitors', attempt: 1 },
      { type: 'stream.gap', source: '/v1/monitors/m', revision: 1 },
    ])
    expect(JSON.stringify(lines)).not.toContain('key_of_the_recipes')
  })

  it('metrics serves those of a client and a log', async () => {
    const url = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
    const folder = mkdtempSync(join(tmpdir(), 'rivulet-recipe-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    vi.stubEnv('RIVULET_BASE_URL', url)
    vi.stubEnv('RIVULET_API_KEY', 'key_of_the_recipes')
    vi.stubEnv('EVENT_LOG', join(folder, 'rivulet.db'))
    vi.stubEnv('METRICS_PORT', '0')
    const { client, log, metrics, telemetry } = await import('./metrics.ts')
    onTestFinished(async () => {
      telemetry.dispose()
      metrics.close()
      await log.close()
    })
    if (!metrics.listening) await once(metrics, 'listening')
    await client.get('/v1/monitors')
    const { port } = Object(metrics.address())
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()

    expect(text).toMatch(/^http_client_request_duration_count\{.*url_template="\/v1\/monitors".*\} 1$/m)
  })
})
