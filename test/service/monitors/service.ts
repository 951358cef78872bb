import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { onTestFinished } from 'vitest'
import type { Monitor, MonitorEvent, PaginatedMonitorEvents } from '../../../src/protocol/monitor.ts'
import type { ErrorResponse } from '../../../src/protocol/problem.ts'
import type { WebhookPayload } from '../../../src/protocol/webhook.ts'
import { ManualClock } from '../../../src/service/clock.ts'
import type { Corpus } from '../../../src/service/corpus/corpus.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { HttpProblem } from '../../../src/service/http/problem.ts'
import { createIsolated } from '../../../src/service/isolated/isolated.ts'
import { Memories } from '../../../src/service/memory/memories.ts'
import { Monitors } from '../../../src/service/monitors/monitors.ts'
import { ProcessorSlots } from '../../../src/service/processor/slots.ts'
import type { Outbox } from '../../../src/service/webhooks/outbox.ts'
import { serve } from '../../support/serve.ts'
import { FakeCorpus } from './fake-corpus.ts'
import { TrackedRuns } from './tracked-runs.ts'

/** A response with its JSON body; undefined if the body is empty. */
export interface Answer<Body> {
  readonly status: number
  readonly body: Body
}

/** The request that most tests create their monitor with. */
export const BATTERY = {
  type: 'event_stream',
  frequency: '1h',
  settings: { query: 'solid battery' },
}

/** Dependencies that a test may pass instead of new ones. */
export interface ServiceParts {
  readonly clock?: ManualClock
  readonly file?: string
  readonly outbox?: Outbox
  readonly runs?: TrackedRuns
  readonly onError?: (error: unknown) => void
}

/** Monitors of a fake corpus, behind a real HTTP server, with a manual clock. */
export function startMonitors(parts: ServiceParts = {}) {
  return startMonitorsOver(new FakeCorpus(), parts)
}

/** The same with the given corpus. */
export async function startMonitorsOver<C extends Corpus>(corpus: C, parts: ServiceParts = {}) {
  const { file = ':memory:', clock = new ManualClock(), runs = new TrackedRuns(), onError } = parts
  const posted: { url: string; payload: WebhookPayload }[] = []
  const outbox = parts.outbox ?? { post: (url, payload) => void posted.push({ url, payload }) }
  const database = openDatabase(file)
  const isolated = createIsolated()
  const monitors = new Monitors({
    database,
    clock,
    corpus,
    isolated,
    outbox,
    memories: new Memories(database, clock),
    processor: runs,
    slots: new ProcessorSlots(4),
    completedRun: (id) => runs.completed.get(id),
    ...(onError && { onError }),
  })
  const app = new Hono()
  app.route('/v1/monitors', monitors.routes())
  app.onError((error, c) => {
    if (!(error instanceof HttpProblem)) throw error
    return Response.json(error.body, { status: error.status, headers: c.res.headers })
  })
  const baseUrl = await serve(getRequestListener(app.fetch))
  monitors.start()

  let stopped = false
  async function stop() {
    if (stopped) return
    stopped = true
    await monitors.close()
    await isolated.close()
    database.close()
  }
  onTestFinished(stop)

  async function call<Body>(method: string, path: string, body?: unknown): Promise<Answer<Body>> {
    const init =
      typeof body === 'string' ? { body } : body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(`${baseUrl}/v1/monitors${path}`, { method, ...init })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }

  const get = <Body = ErrorResponse>(path: string) => call<Body>('GET', path)
  const post = <Body = ErrorResponse>(path: string, body?: unknown) => call<Body>('POST', path, body)

  /** Creates a monitor and waits for its first execution. */
  async function create(request: unknown = BATTERY): Promise<string> {
    const { status, body } = await post<Monitor>('', request)
    if (status !== 201) throw new Error(`not created: ${JSON.stringify(body)}`)
    await monitors.settled()
    return body.monitor_id
  }

  /** Advances the clock and waits for due executions. */
  async function advance(ms: number): Promise<void> {
    clock.advance(ms)
    await monitors.settled()
  }

  /** Runs a monitor now and waits for the execution. */
  async function trigger(id: string): Promise<void> {
    await post(`/${id}/trigger`)
    await monitors.settled()
  }

  async function events(
    id: string,
    query = 'limit=100&include_completions=true',
  ): Promise<readonly MonitorEvent[]> {
    return (await page(id, query)).events
  }

  async function page(id: string, query: string): Promise<PaginatedMonitorEvents> {
    const { status, body } = await get<PaginatedMonitorEvents>(`/${id}/events?${query}`)
    if (status !== 200) throw new Error(`no page: ${JSON.stringify(body)}`)
    return body
  }

  return {
    monitors,
    corpus,
    clock,
    runs,
    database,
    posted,
    get,
    post,
    create,
    advance,
    trigger,
    events,
    page,
    stop,
  }
}

/** A short description of each event. */
export function summaries(events: readonly MonitorEvent[]): unknown[] {
  return events.map((event) => {
    if (event.event_type === 'event_stream') return event.output.content
    return event.event_type
  })
}
