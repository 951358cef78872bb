import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { createClient } from 'rivulet'
import type { ClientOptions, ResearchClient } from 'rivulet'
import { iterate } from 'rivulet/operators'
import type { Observable } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { answer, openStream, serve } from '../support/serve.ts'
import { settled } from '../support/settled.ts'

/** Far more than the buffers of a socket hold. */
const EVENTS = 1_000
const FILLING = 'x'.repeat(64 * 1024)

const run = { run_id: 'r', status: 'queued', is_active: true }
const findAllRun = {
  findall_id: 'f',
  status: { status: 'running', is_active: true, metrics: {}, termination_reason: null },
}
const findAllRequest = {
  objective: 'find them',
  entity_type: 'companies',
  match_conditions: [{ name: 'n', description: 'd' }],
  generator: 'base',
  match_limit: 5,
} as const

function message(path: string, n: number): string {
  if (path.includes('/findall/')) {
    const output = { founded: { type: 'enrichment', value: n }, filling: FILLING }
    const data = {
      candidate_id: `c${n}`,
      name: 'c',
      url: 'https://c.example',
      match_status: 'matched',
      output,
    }
    const event = { type: 'findall.candidate.enriched', event_id: String(n), timestamp: null, data }
    return `id: ${n}\ndata: ${JSON.stringify(event)}\n\n`
  }
  return `data: ${JSON.stringify({ type: 'task_run.progress_msg.plan', message: `${n} ${FILLING}` })}\n\n`
}

/** A service whose runs never end. `stream` answers the requests for their events. */
async function endless(
  stream: (request: IncomingMessage, response: ServerResponse) => void,
  options: ClientOptions = {},
) {
  const requests: string[] = []
  const baseUrl = await serve((request, response) => {
    const { method = '', url = '' } = request
    requests.push(`${method} ${url}`)
    request.resume().on('end', () => {
      if (url.includes('/events')) {
        openStream(response)
        return stream(request, response)
      }
      if (url.endsWith('/enrich')) return answer(response, { match_conditions: [] })
      answer(response, url.includes('/findall/') ? findAllRun : run)
    })
  })
  return { client: createClient({ baseUrl, apiKey: 'key', initialDelay: 0, ...options }), requests }
}

async function flooding() {
  const flood = { sent: 0 }
  const { client } = await endless(({ url = '' }, response) => {
    function* messages() {
      while (flood.sent < EVENTS) yield message(url, ++flood.sent)
    }
    Readable.from(messages(), { highWaterMark: 1 }).pipe(response, { end: false })
  })
  return { client, flood }
}

const enrich = z.object({ founded: z.number() })
const asynchronous = { enrich: enrich.refine(async () => true) }

const SOURCES: readonly [string, (client: ResearchClient) => Observable<unknown>][] = [
  ['tasks.events', ({ tasks }) => tasks.events('r')],
  ['tasks.run', ({ tasks }) => tasks.run('x')],
  ['tasks.run with a timeout', ({ tasks }) => tasks.run('x', { timeout: 600_000 })],
  ['findAll.events', ({ findAll }) => findAll.events('f')],
  ['findAll.run', ({ findAll }) => findAll.run(findAllRequest)],
  ['findAll.run with a schema', ({ findAll }) => findAll.run(findAllRequest, { enrich })],
  ['findAll.run with an asynchronous schema', ({ findAll }) => findAll.run(findAllRequest, asynchronous)],
  ['watch of a run', (client) => client.watch({ runs: ['r'] })],
  ['watch of a FindAll run', (client) => client.watch({ findAlls: ['f'] })],
]

describe.each(SOURCES)('%s', (_, of) => {
  it('is read no faster than a loop consumes it', async () => {
    const { client, flood } = await flooding()
    const loop = iterate(of(client), { highWaterMark: 2 })
    onTestFinished(async () => void (await loop.return?.()))
    await loop.next()

    await settled(() => flood.sent)

    expect(flood.sent).toBeLessThan(EVENTS)
  })

  it('destroys the socket of its stream when it is unsubscribed from, and emits nothing more', async () => {
    const opened = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    const { client } = await endless((_request, response) => {
      response.on('close', () => closed.resolve())
      opened.resolve()
    })
    let ended = false
    const subscription = of(client).subscribe({
      error: () => (ended = true),
      complete: () => (ended = true),
    })
    await opened.promise

    subscription.unsubscribe()

    await closed.promise
    expect(ended).toBe(false)
  })
})

describe('a creation that waits for its quota', () => {
  const one = { requests: 1, window: 600_000 }

  it.each<[string, (client: ResearchClient) => Observable<unknown>]>([
    ['tasks.create', ({ tasks }) => tasks.create({ input: 'x', processor: 'base' })],
    ['tasks.run', ({ tasks }) => tasks.run('x')],
    ['findAll.create', ({ findAll }) => findAll.create(findAllRequest)],
    ['findAll.run', ({ findAll }) => findAll.run(findAllRequest, { cancelOnUnsubscribe: true })],
    [
      'monitors.create',
      ({ monitors }) =>
        monitors.create({ type: 'event_stream', frequency: '1d', settings: { query: 'What is new?' } }),
    ],
  ])('by %s is not sent after it was unsubscribed from, and frees its place', async (_, create) => {
    const waits: string[] = []
    const quotas = { runs: one, findAll: one, monitors: one }
    const { client, requests } = await endless(() => {}, { quotas })
    client.diagnostics.subscribe(({ kind }) => waits.push(kind))
    const creations = () => requests.filter((line) => line.startsWith('POST'))
    const first = create(client).subscribe()
    onTestFinished(() => first.unsubscribe())

    const second = create(client).subscribe()
    await expect.poll(() => waits).toEqual(['quota'])
    second.unsubscribe()
    const third = create(client).subscribe()
    onTestFinished(() => third.unsubscribe())

    // The queue was empty again, so that it forms a second time.
    await expect.poll(() => waits).toEqual(['quota', 'quota'])
    await expect.poll(creations).toHaveLength(1)
  })
})
