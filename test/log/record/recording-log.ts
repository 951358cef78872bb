import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { ClientOptions, Diagnostic } from 'rivulet'
import type { Entry, EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { VirtualTimeScheduler } from 'rxjs'
import { onTestFinished } from 'vitest'
import { answer, queryOf } from '../../support/serve.ts'
import { simulatedStore } from '../../../src/log/memory/store.ts'

/** Time that a test moves. */
export class TestTime extends VirtualTimeScheduler {
  #suspended = 0

  constructor() {
    super()
    this.now = () => this.frame + this.#suspended
  }

  /** The process is suspended: its timers are late by this time, in ms. */
  suspend(duration: number): void {
    this.#suspended += duration
  }

  advance(duration: number): void {
    const end = this.frame + duration
    this.maxFrames = end
    this.flush()
    this.frame = end
  }
}

/** Resolves once the condition is true. The test's own timeout ends a wait for what never happens. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

/** Enough turns for whatever is under way to end, where a test shows that nothing happens. */
export async function settled(): Promise<void> {
  for (let n = 0; n < 100; n++) await turn()
}

/** A research service of one test: monitors with lists of events, and results of runs. */
class ScriptedService {
  readonly requests: string[] = []
  /** The groups of each monitor's events, newest first. */
  readonly monitors = new Map<string, string[]>()
  /** Runs that have a result. */
  readonly results = new Set<string>()
  /** Answers a request instead; false to answer as usual. */
  intercept: (path: string, response: ServerResponse) => boolean = () => false
  url = ''
  #server = createServer((request, response) => this.#respond(request, response))
  #port = 0

  async start(): Promise<void> {
    this.#server = createServer((request, response) => this.#respond(request, response))
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve))
    const address = this.#server.address()
    if (typeof address === 'object') this.#port = address?.port ?? 0
    this.url = `http://127.0.0.1:${this.#port}`
  }

  /** Goes away. It may be started again at the same address. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, search } = new URL(request.url ?? '/', 'http://localhost')
    this.requests.push(`${pathname}${search}`)
    if (this.intercept(`${pathname}${search}`, response)) return
    const [, , kind, id = '', ...rest] = pathname.split('/')
    if (kind === 'monitors' && rest[0] === 'events') {
      const groups = this.monitors.get(id)
      if (groups === undefined) return answer(response, { message: 'no such monitor' }, 404)
      const wanted = queryOf(request).get('event_group_id')
      const listed = groups.filter((group) => wanted === null || wanted === group)
      return answer(response, { events: listed.map((group) => eventOf(group)) })
    }
    if (kind === 'tasks' && rest[1] === 'result' && this.results.has(rest[0] ?? '')) {
      return answer(response, {
        run: run(rest[0] ?? ''),
        output: { type: 'text', content: 'found', basis: [] },
      })
    }
    if (kind === 'monitors') return answer(response, { monitor_id: id, status: 'active' })
    answer(response, { message: 'not found' }, 404)
  }
}

const eventOf = (group: string) => ({
  event_type: 'event_stream',
  event_id: `${group}-event`,
  event_group_id: group,
  event_date: null,
  output: { type: 'text', content: group, basis: [] },
})

/** A completed run, without its output. */
export const run = (id: string, more: object = {}) => ({
  run_id: id,
  status: 'completed',
  is_active: false,
  processor: 'base',
  metadata: {},
  created_at: '2026-01-01T00:00:00Z',
  modified_at: '2026-01-01T00:00:01Z',
  ...more,
})

/** Bodies of webhooks. */
export const detected = (monitor_id: string, event_group_id: string) => ({
  type: 'monitor.event.detected',
  timestamp: '2026-01-01T00:00:00Z',
  data: { monitor_id, event: { event_group_id } },
})
export const completed = (monitor_id: string, timestamp: string) => ({
  type: 'monitor.execution.completed',
  timestamp,
  data: { monitor_id, event: { timestamp } },
})
export const ended = (id: string, more: object = {}) => ({
  type: 'task_run.status',
  timestamp: '2026-01-01T00:00:00Z',
  data: run(id, more),
})

/** A service, a client and an open log. */
export async function recordingLog(options: ClientOptions = {}, root = simulatedStore()) {
  const service = new ScriptedService()
  await service.start()
  onTestFinished(() => service.stop())
  const time = new TestTime()
  const client = createClient({
    baseUrl: service.url,
    apiKey: 'key-of-a-test',
    initialDelay: 10,
    retries: 0,
    random: () => 1,
    scheduler: time,
    ...options,
  })
  const diagnostics: Diagnostic[] = []
  client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
  const open = async (store: LogStore = root.connect()) => {
    const log = await openLog(store)
    onTestFinished(() => log.close())
    return { store, log }
  }
  const store = root.connect()
  const { log } = await open(store)
  return {
    service,
    client,
    time,
    diagnostics,
    root,
    open,
    store,
    log,
    put: (id: string, payload: unknown) =>
      log.inbox.put({ id, timestamp: 1_760_000_000, payload }, JSON.stringify(payload)),
    isDrained: async () => (await store.inbox.pending(null, 1)).length === 0,
    pending: async () => (await store.inbox.pending(null, 10_000)).map(({ id }) => id),
    entries: () => entriesOf(log),
  }
}

/** All entries, but for those of reachability and time. */
export async function entriesOf(log: EventLog): Promise<readonly Entry[]> {
  return (await allEntriesOf(log)).filter(({ via }) => via !== 'log')
}

/** All entries. */
export async function allEntriesOf(log: EventLog): Promise<readonly Entry[]> {
  const entries: Entry[] = []
  let position = await log.positionAt('start')
  for (;;) {
    const page = await log.read(position, { limit: 1_000 })
    entries.push(...page.entries)
    position = page.position
    if (page.isEnd) return entries
  }
}

/** Ids of entries. */
export const idsOf = (entries: readonly { readonly id: string }[]) => entries.map(({ id }) => id)
