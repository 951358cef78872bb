import { Socket } from 'node:net'
import { Agent, buildConnector } from 'undici'
import type { Dispatcher } from 'undici'
import { Decoding } from './decoding.ts'
import type { DecodedSink } from './decoding.ts'
import type { Exchange, ResponseSink, WireRequest } from './exchange.ts'
import { Incoming } from './incoming.ts'
import type { Wire } from './incoming.ts'

/** HTTP on Node: undici's dispatch, without a Node stream in between. Each exchange has its own sockets. */
export function createExchange(): Exchange {
  let dialling: UndiciCall | undefined
  // A call has its own connect timeout, so the connector has none. HTTP/1.1, where a paused stream blocks only its own socket.
  const dial = buildConnector({ timeout: 0, allowH2: false })
  const agent = new Agent({
    allowH2: false,
    connect(options, callback) {
      const socket: unknown = dial(options, callback)
      if (dialling !== undefined && socket instanceof Socket) dialling.socket = socket
    },
  })
  const dispatch = (call: UndiciCall, options: Dispatcher.DispatchOptions) => {
    // Undici requests a new connection before dispatch returns. So the call learns which socket is connecting for it, and can
    // destroy it on abort.
    dialling = call
    try {
      agent.dispatch(options, call)
    } finally {
      dialling = undefined
    }
  }
  return (request, sink) => {
    const call = new UndiciCall(request, sink)
    // Asynchronously: the caller must have its flow before anything can fail, and undici's parser is not reentrant while it
    // is within another response's chunk.
    queueMicrotask(() => {
      if (!call.incoming.over) call.start(dispatch)
    })
    return call.incoming
  }
}

/** One request in flight. */
class UndiciCall implements Wire, Dispatcher.DispatchHandler, DecodedSink {
  readonly incoming: Incoming
  /** The socket that is being connected for this call, while it is. */
  socket: Socket | undefined
  readonly #request: WireRequest
  /** Set when the connection is made, right before undici writes the request. While undefined, nothing was sent. */
  #controller: Dispatcher.DispatchController | undefined
  #decoding: Decoding | undefined
  /** Whether the socket is paused, by the reader or by the decoder's backpressure. */
  #paused = false
  #empty = true
  /** The socket delivers no more. */
  #ended = false
  /** Why the connection broke. */
  #brokenBy: Error | undefined

  constructor(request: WireRequest, sink: ResponseSink) {
    this.#request = request
    this.incoming = new Incoming(request, sink, this)
  }

  start(dispatch: (call: UndiciCall, options: Dispatcher.DispatchOptions) => void): void {
    const { origin, path, method, headers, body } = this.#request
    this.incoming.connecting()
    // Disabled, since undici's own timeouts keep running while a flow is paused.
    dispatch(this, {
      origin,
      path,
      method,
      headers: uncached(headers),
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.socket = undefined
    if (this.incoming.over) return this.destroy()
    if (this.incoming.paused) controller.pause()
    this.incoming.sending()
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // An interim response, such as 103; the final response follows.
    if (status < 200) return
    const header = (name: string) => {
      const value = headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    }
    const coding = header('content-encoding')
    const known = coding === undefined || coding === 'identity' || this.#decode(controller, status, headers)
    this.incoming.head(status, header)
    if (!known) this.incoming.malformed(`answered in the content coding ${coding}, which is not known`)
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Buffer): void {
    // Undici flushes its parser with no bytes when it is resumed.
    if (bytes.byteLength === 0) return
    if (this.#decoding === undefined) return this.incoming.chunk(bytes)
    this.#empty = false
    this.incoming.alive()
    this.#decoding.write(bytes)
  }

  onResponseEnd(): void {
    this.#ended = true
    // An empty body is not valid gzip.
    if (this.#decoding === undefined || this.#empty) this.#finish()
    else this.#decoding.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#ended = true
    if (this.incoming.over) return this.#decoding?.destroy()
    if (this.#controller === undefined) {
      const timedOut =
        'code' in error && (error.code === 'UND_ERR_CONNECT_TIMEOUT' || error.code === 'ETIMEDOUT')
      return this.incoming.broken(timedOut ? 'connect_timeout' : 'refused', error)
    }
    // Bytes before the disconnect are reported first. Otherwise a stream that breaks often would never make progress.
    this.#brokenBy = error
    if (this.#decoding === undefined || this.#empty) this.#finish()
    else this.#decoding.end()
  }

  decoded(bytes: Uint8Array): void {
    this.incoming.chunk(bytes)
  }

  decodedAll(): void {
    this.#finish()
  }

  undecodable(error: Error): void {
    if (this.#brokenBy === undefined && !isTruncated(error)) {
      this.incoming.malformed('answered with a body that is not in its content coding', error)
    } else {
      this.incoming.broken('broken', this.#brokenBy ?? error)
    }
  }

  pause(): void {
    if (this.#decoding === undefined) this.#pauseSocket()
    else this.#decoding.pause()
  }

  resume(): void {
    if (this.#decoding === undefined) return this.#resumeSocket()
    // `resume` emits decoded bytes synchronously, and the reader may be within another chunk.
    queueMicrotask(() => {
      if (!this.incoming.over && !this.incoming.paused) this.#decoding?.resume()
    })
  }

  destroy(): void {
    const reason = new Error('aborted')
    this.#controller?.abort(reason)
    // With an error, since undici would otherwise wait for this connection forever.
    this.socket?.destroy(reason)
    this.#decoding?.destroy()
  }

  /**
   * Pauses after undici has parsed the current chunk. If paused within it, undici unshifts the rest onto a socket that keeps
   * reading, until the whole response is in memory.
   */
  #pauseSocket(): void {
    this.#paused = true
    queueMicrotask(() => {
      if (this.#paused) this.#controller?.pause()
    })
  }

  #resumeSocket(): void {
    this.#paused = false
    // `resume` continues parsing synchronously. Undici's one parser may be within another response's chunk, and a consumer
    // that opens its gate there would break both.
    queueMicrotask(() => {
      if (!this.incoming.over && !this.#paused) this.#controller?.resume()
    })
  }

  /** Starts to decode the body. Returns whether its content coding is known. */
  #decode(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): boolean {
    const wire: Dispatcher.DispatchController = {
      aborted: false,
      paused: false,
      reason: null,
      pause: () => this.#pauseSocket(),
      resume: () => this.#resumeSocket(),
      // Called for a body that cannot be decoded. The decoder itself would wait for undici's error.
      abort: (reason) => {
        this.undecodable(reason)
        controller.abort(reason)
      },
    }
    const decoding = new Decoding(wire, this)
    if (!decoding.start(status, headers)) return false
    this.#decoding = decoding
    if (this.incoming.paused) decoding.pause()
    return true
  }

  #finish(): void {
    if (this.#brokenBy !== undefined) this.incoming.broken('broken', this.#brokenBy)
    else this.incoming.end()
    this.#decoding?.destroy()
    // Bytes after the end of a compressed body would otherwise be read without limit.
    if (!this.#ended) this.#controller?.abort(new Error('more came after the end of the compressed body'))
  }
}

/** Adds `no-cache` to the request of an event stream, as the HTML standard requires. `fetch` adds it itself. */
function uncached(headers: WireRequest['headers']): WireRequest['headers'] {
  return headers['accept'] === 'text/event-stream' ? { 'cache-control': 'no-cache', ...headers } : headers
}

/** Whether the compressed body is truncated. */
function isTruncated(error: Error): boolean {
  return 'code' in error && error.code === 'Z_BUF_ERROR'
}
