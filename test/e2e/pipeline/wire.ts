import type { SchedulerLike } from 'rxjs'
import { ConnectionError } from 'rivulet'
import type { Exchange, Flow, ResponseSink, WireRequest } from '../../../src/transport/exchange.ts'
import { cycle } from './cycle.ts'

/** The fault of one request. `after` is the number of bytes of the body before it. */
export type Fault =
  | { readonly kind: 'none' }
  | { readonly kind: 'refused' }
  /** No response, until the client times out after this many ms. */
  | { readonly kind: 'silent'; readonly patience: number }
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: number }
  /** A proxy's page. */
  | { readonly kind: 'page' }
  /** The connection breaks. */
  | { readonly kind: 'cut'; readonly after: number }
  /** The body ends properly, but too early. */
  | { readonly kind: 'short'; readonly after: number }
  /** One event of a stream has truncated JSON. */
  | { readonly kind: 'malformed'; readonly event: number }

/** The script of the network. All lists but the first repeat in a cycle. */
export interface WireScript {
  /** For each request in turn; no faults after the last one. */
  readonly faults: readonly Fault[]
  /** The delay from a request to its response, in ms. */
  readonly latencies: readonly number[]
  /** The size of a chunk, in bytes. */
  readonly chunks: readonly number[]
  /** The delay between chunks, in ms. */
  readonly pauses: readonly number[]
}

/** A request, as the service receives it. */
export interface ServiceRequest {
  readonly path: string
  readonly query: URLSearchParams
}

/** An event of a stream, with its number. */
interface StreamEvent {
  readonly type: string
  readonly event_id: string
  readonly [more: string]: unknown
}

/** A stream's connection on the service's side. */
export interface Connection {
  /** Sends one event. */
  send(event: StreamEvent): void
  close(): void
  /** Whether the client has disconnected. */
  readonly over: boolean
}

/** A service's response: JSON, or a function that writes to a stream's connection. */
export type Reply =
  | { readonly status: number; readonly body: unknown }
  | { readonly open: (connection: Connection) => void }

/** The network between client and service: an exchange in virtual time with faults. */
export class ScriptedWire {
  readonly exchange: Exchange
  #faults: Fault[]

  constructor(scheduler: SchedulerLike, script: WireScript, serve: (request: ServiceRequest) => Reply) {
    this.#faults = [...script.faults]
    const latency = cycle(script.latencies, 0)
    const chunk = cycle(script.chunks, Infinity)
    const pause = cycle(script.pauses, 0)
    this.exchange = (request, sink) => {
      const fault = this.#faults.shift() ?? { kind: 'none' }
      const response = new ScriptedResponse(scheduler, sink, chunk, pause, fault)
      const later = fault.kind === 'silent' ? fault.patience : latency()
      response.schedule(() => answer(request, response, fault, serve), later)
      return response
    }
  }

  /** Removes all further faults. */
  clearFaults(): void {
    this.#faults = []
  }
}

function answer(
  request: WireRequest,
  response: ScriptedResponse,
  fault: Fault,
  serve: (request: ServiceRequest) => Reply,
): void {
  const { pathname, searchParams } = new URL(request.path, request.origin)
  if (fault.kind === 'refused') return response.break(new ConnectionError('refused', 'refused', request))
  if (fault.kind === 'silent')
    return response.break(new ConnectionError('headers_timeout', 'silent', request))
  if (fault.kind === 'page') return response.whole(200, 'text/html', '<p>Welcome</p>')
  if (fault.kind === 'status') {
    const { status, retryAfter } = fault
    const body = { type: 'error', error: { ref_id: 'r', message: 'no' } }
    return response.whole(status, 'application/json', JSON.stringify(body), retryAfter)
  }
  const broken = new ConnectionError('broken', 'broken', request)
  if (fault.kind === 'cut') response.limit(fault.after, () => response.break(broken))
  if (fault.kind === 'short') response.limit(fault.after, () => response.stop())
  const reply = serve({ path: pathname, query: searchParams })
  if ('open' in reply) {
    response.begin(200, 'text/event-stream')
    return reply.open(response)
  }
  return response.whole(reply.status, 'application/json', JSON.stringify(reply.body))
}

const encoder = new TextEncoder()

/** One response, sent chunk by chunk while its reader wants it. */
class ScriptedResponse implements Flow, Connection {
  over = false
  readonly #scheduler: SchedulerLike
  readonly #sink: ResponseSink
  readonly #chunk: () => number
  readonly #pause: () => number
  #malformed: number
  #waiting = new Uint8Array()
  #left = Infinity
  #onLimit = () => {}
  #begun = false
  #ended = false
  #paused = false
  #pumping = false

  constructor(
    scheduler: SchedulerLike,
    sink: ResponseSink,
    chunk: () => number,
    pause: () => number,
    fault: Fault,
  ) {
    this.#scheduler = scheduler
    this.#sink = sink
    this.#chunk = chunk
    this.#pause = pause
    this.#malformed = fault.kind === 'malformed' ? fault.event : -1
  }

  schedule(work: () => void, delay: number): void {
    this.#scheduler.schedule(() => {
      if (!this.over) work()
    }, delay)
  }

  begin(status: number, type: string, retryAfter?: number): void {
    const headers = new Map([['content-type', type]])
    if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter))
    this.#begun = true
    this.#sink.head(status, (name) => headers.get(name))
    this.#pump()
  }

  whole(status: number, type: string, body: string, retryAfter?: number): void {
    this.#write(body)
    this.#ended = true
    this.begin(status, type, retryAfter)
  }

  send(event: StreamEvent): void {
    const whole = JSON.stringify(event)
    const data = this.#malformed-- === 0 ? whole.slice(0, whole.length / 2) : whole
    this.#write(`id: ${event.event_id}\nevent: ${event.type}\ndata: ${data}\n\n`)
  }

  close(): void {
    this.#ended = true
    this.#pump()
  }

  /** Calls `onLimit` after this many bytes of the body. */
  limit(bytes: number, onLimit: () => void): void {
    this.#left = bytes
    this.#onLimit = onLimit
  }

  break(error: ConnectionError): void {
    this.over = true
    this.#sink.error(error)
  }

  stop(): void {
    this.over = true
    this.#sink.end()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#pump()
  }

  abort(): void {
    this.over = true
  }

  #write(text: string): void {
    const bytes = encoder.encode(text)
    const joined = new Uint8Array(this.#waiting.length + bytes.length)
    joined.set(this.#waiting)
    joined.set(bytes, this.#waiting.length)
    this.#waiting = joined
    this.#pump()
  }

  #pump(): void {
    if (this.#pumping || !this.#begun) return
    if (this.#waiting.length === 0 && !this.#ended) return
    this.#pumping = true
    this.schedule(() => {
      this.#pumping = false
      this.#step()
    }, this.#pause())
  }

  #step(): void {
    if (this.#paused) return
    if (this.#waiting.length === 0) {
      if (this.#ended) this.stop()
      return
    }
    const size = Math.min(this.#chunk(), this.#waiting.length, this.#left)
    const bytes = this.#waiting.slice(0, size)
    this.#waiting = this.#waiting.slice(size)
    this.#left -= size
    if (size > 0) this.#sink.chunk(bytes)
    // The bytes were valid only until the reader returned.
    bytes.fill(0)
    if (this.over) return
    if (this.#left === 0) this.#onLimit()
    else this.#pump()
  }
}
