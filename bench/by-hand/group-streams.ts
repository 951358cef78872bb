import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import { request } from 'undici'
import type { Dispatcher } from 'undici'

/** A run that ended, in the envelope that Rivulet has for it. */
export interface RunEvent {
  readonly id: string
  readonly source: string
  readonly type: 'task_run.state'
  readonly time: string
  readonly data: RunState
  readonly received: string
  readonly via: 'stream'
  readonly cursor: string
}

/** A message of a group's stream of runs (§4.5), as far as it is read here. */
interface RunState {
  readonly type: string
  readonly event_id: string
  readonly run: { readonly run_id: string; readonly status: string; readonly modified_at: string }
}

/** A group's status (§4.3), as far as it is read here. */
interface Group {
  readonly status: { readonly num_task_runs: number; readonly is_active: boolean }
}

/** How to reach the service, and how to reconnect. */
export interface HandOptions {
  readonly apiKey: string
  /** Upper bound of the first delay, in ms. */
  readonly initialDelay: number
  /** Upper bound of every delay, in ms. */
  readonly maxDelay: number
}

const MAX_EVENT_LENGTH = 16 * 1024 * 1024
const TIMEOUTS = { headersTimeout: 30_000, bodyTimeout: 60_000 }

/**
 * Reads the runs of several groups until all have ended, without Rivulet: what a careful engineer writes by hand for what
 * `merge(...groups.map((group) => client.taskGroups.runs(group))).pipe(dedupe())` emits. Each run once, over all of the groups;
 * reconnects after a failure with backoff, and resumes after the last event.
 *
 * It makes the choices that cost least: a callback for each event, no iterator; the time of arrival once for each chunk; and the seen
 * ids in two generations of a set, since `map.keys().next()` passes each key that was deleted before: 26 µs for 100,000 ids.
 */
export async function readGroupsByHand(
  origin: string,
  groups: readonly string[],
  options: HandOptions,
  onEvent: (event: RunEvent) => void,
): Promise<void> {
  const seen = new RecentIds(100_000)
  await Promise.all(groups.map((group) => new GroupStream(origin, group, options, seen, onEvent).read()))
}

/** At least the last `capacity` ids, at most twice as many. */
class RecentIds {
  readonly #capacity: number
  #recent = new Set<string>()
  #older = new Set<string>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Remembers the id. Returns whether it is new. */
  add(id: string): boolean {
    if (this.#recent.has(id)) return false
    const isNew = !this.#older.has(id)
    this.#recent.add(id)
    if (this.#recent.size === this.#capacity) {
      this.#older = this.#recent
      this.#recent = new Set()
    }
    return isNew
  }
}

/** A response that is not a stream. */
class StatusError extends Error {
  readonly isTransient: boolean
  /** In ms. */
  readonly retryAfter: number | undefined

  constructor({ statusCode, headers }: Dispatcher.ResponseData) {
    super(`answered with ${statusCode}`)
    this.isTransient = statusCode === 429 || statusCode >= 500
    const seconds = Number(headers['retry-after'])
    this.retryAfter = seconds > 0 ? seconds * 1_000 : undefined
  }
}

class GroupStream {
  readonly #url: string
  readonly #options: HandOptions
  readonly #headers: Readonly<Record<string, string>>
  readonly #seen: RecentIds
  readonly #onEvent: (event: RunEvent) => void
  /** The last event id, which the service resumes after. */
  #cursor: string | undefined
  /** Number of distinct runs. */
  #runs = 0
  /** The server's `retry:`, in ms. */
  #retry = 0
  /** Failures since the last new run. */
  #failures = 0

  constructor(
    origin: string,
    group: string,
    options: HandOptions,
    seen: RecentIds,
    onEvent: (event: RunEvent) => void,
  ) {
    this.#url = `${origin}/v1beta/tasks/groups/${encodeURIComponent(group)}`
    this.#options = options
    this.#headers = { 'x-api-key': options.apiKey }
    this.#seen = seen
    this.#onEvent = onEvent
  }

  async read(): Promise<void> {
    for (;;) {
      let retryAfter: number | undefined
      try {
        await this.#readConnection()
        if (await this.#isDone()) return
      } catch (error) {
        if (error instanceof StatusError) {
          if (!error.isTransient) throw error
          retryAfter = error.retryAfter
        }
      }
      await delay(retryAfter ?? this.#backoff())
    }
  }

  /** Full jitter, and never before the server's `retry:`. */
  #backoff(): number {
    const { initialDelay, maxDelay } = this.#options
    const longest = Math.min(maxDelay, initialDelay * 2 ** Math.min(this.#failures++, 30))
    return Math.max(this.#retry, Math.random() * longest)
  }

  async #readConnection(): Promise<void> {
    const url = new URL(`${this.#url}/runs`)
    if (this.#cursor !== undefined) url.searchParams.set('last_event_id', this.#cursor)
    const headers = { ...this.#headers, accept: 'text/event-stream' }
    const response = await request(url, { headers, ...TIMEOUTS })
    if (response.statusCode !== 200) {
      await response.body.dump()
      throw new StatusError(response)
    }
    let received = ''
    const parser = createParser({
      maxBufferSize: MAX_EVENT_LENGTH,
      onEvent: ({ data }) => this.#take(data, received),
      onRetry: (retry) => (this.#retry = retry),
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded') throw error
      },
    })
    const decoder = new TextDecoder()
    for await (const bytes of response.body) {
      received = new Date().toISOString()
      parser.feed(decoder.decode(bytes, { stream: true }))
    }
  }

  /** A message that is not JSON ends the connection, as one that broke. */
  #take(json: string, received: string): void {
    const data: RunState = JSON.parse(json)
    if (data.type !== 'task_run.state') return
    const { run_id, status, modified_at } = data.run
    const id = `${run_id}:${status}`
    this.#cursor = data.event_id
    if (!this.#seen.add(id)) return
    this.#runs += 1
    this.#failures = 0
    this.#onEvent({
      id,
      source: `/v1/tasks/runs/${encodeURIComponent(run_id)}`,
      type: 'task_run.state',
      time: modified_at,
      data,
      received,
      via: 'stream',
      cursor: data.event_id,
    })
  }

  /** Whether the group has ended and each of its runs was emitted. */
  async #isDone(): Promise<boolean> {
    const response = await request(this.#url, { headers: this.#headers, ...TIMEOUTS })
    if (response.statusCode !== 200) {
      await response.body.dump()
      throw new StatusError(response)
    }
    const { status } = (await response.body.json()) as Group
    return !status.is_active && this.#runs >= status.num_task_runs
  }
}
