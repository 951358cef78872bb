import { Socket } from 'node:net'
import { Agent, buildConnector } from 'undici'
import type { Dispatcher } from 'undici'
import { Decoding } from './decoding.ts'
import type { DecodedSink } from './decoding.ts'
import type { Exchange, ResponseSink, WireRequest } from './exchange.ts'
import { Incoming } from './incoming.ts'
import type { Wire } from './incoming.ts'

/** HTTP on Node: undici's dispatch, chunk by chunk, without a Node stream in between. Each exchange has its own sockets. */
export function createExchange(): Exchange {
  let dialling: Call | undefined
  // A call keeps its own time for connecting, so the connector keeps none. HTTP/1.1, where a paused stream holds up its
  // own socket and no other request's.
  const dial = buildConnector({ timeout: 0, allowH2: false })
  const agent = new Agent({
    allowH2: false,
    connect(options, callback) {
      const socket: unknown = dial(options, callback)
      if (dialling !== undefined && socket instanceof Socket) dialling.socket = socket
    },
  })
  const dispatch = (call: Call, options: Dispatcher.DispatchOptions) => {
    // Where undici needs a new connection it asks for it before dispatch returns: so the call learns which socket is being
    // connected for it, and can give that up too.
    dialling = call
    try {
      agent.dispatch(options, call)
    } finally {
      dialling = undefined
    }
  }
  return (request, sink) => {
    const call = new Call(request, sink)
    // Not at once: the caller must have its flow before anything can fail, and undici's parser, which may be in the midst
    // of another response's chunk, must not be entered twice.
    queueMicrotask(() => {
      if (!call.incoming.over) call.start(dispatch)
    })
    return call.incoming
  }
}

/** One request under way. */
class Call implements Wire, Dispatcher.DispatchHandler, DecodedSink {
  readonly incoming: Incoming
  /** The socket that is being connected for this call, while it is. */
  socket: Socket | undefined
  readonly #request: WireRequest
  /** Undici gives it once the connection stands and right before it writes: without it nothing was sent. */
  #controller: Dispatcher.DispatchController | undefined
  #decoding: Decoding | undefined
  /** Nothing is to be read from the socket: the reader holds the flow, or the decoder has enough. */
  #held = false
  #empty = true
  /** No more comes from the socket; `cut` says why, where it broke. */
  #ended = false
  #cut: Error | undefined

  constructor(request: WireRequest, sink: ResponseSink) {
    this.#request = request
    this.incoming = new Incoming(request, sink, this)
  }

  start(dispatch: (call: Call, options: Dispatcher.DispatchOptions) => void): void {
    const { origin, path, method, headers, body } = this.#request
    this.incoming.connecting()
    // Undici's own time-outs go on while the reader holds a flow on which nothing comes, so they are off.
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
    // An interim answer, such as 103; the answer itself follows.
    if (status < 200) return
    const header = (name: string) => {
      const value = headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    }
    const coding = header('content-encoding')
    const known = coding === undefined || coding === 'identity' || this.#decode(controller, status, headers)
    this.incoming.head(status, header)
    if (!known) this.incoming.garbled(`answered in the content coding ${coding}, which is not known`)
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Buffer): void {
    // Undici flushes its parser when it is resumed: no bytes, and no news.
    if (bytes.byteLength === 0) return
    if (this.#decoding === undefined) return this.incoming.chunk(bytes)
    this.#empty = false
    this.incoming.alive()
    this.#decoding.write(bytes)
  }

  onResponseEnd(): void {
    this.#ended = true
    // An empty body is no gzip.
    if (this.#decoding === undefined || this.#empty) this.#finish()
    else this.#decoding.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#ended = true
    if (this.incoming.over) return this.#decoding?.destroy()
    if (this.#controller === undefined) {
      const late = 'code' in error && (error.code === 'UND_ERR_CONNECT_TIMEOUT' || error.code === 'ETIMEDOUT')
      return this.incoming.broken(late ? 'connect-timeout' : 'refused', error)
    }
    // What came before is reported first: a stream that is cut time and again would else never get on.
    this.#cut = error
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
    if (this.#cut === undefined && !isTooShort(error)) {
      this.incoming.garbled('answered with a body that is not in its content coding', error)
    } else {
      this.incoming.broken('broken', this.#cut ?? error)
    }
  }

  pause(): void {
    if (this.#decoding === undefined) this.#hold()
    else this.#decoding.pause()
  }

  resume(): void {
    if (this.#decoding === undefined) return this.#release()
    // What is decoded already is passed on within `resume`, and the reader may be in the midst of another chunk.
    queueMicrotask(() => {
      if (!this.incoming.over && !this.incoming.paused) this.#decoding?.resume()
    })
  }

  destroy(): void {
    const reason = new Error('aborted')
    this.#controller?.abort(reason)
    // Without an error undici would wait for this connection for ever.
    this.socket?.destroy(reason)
    this.#decoding?.destroy()
  }

  /**
   * Stops reading once undici has parsed what it has read. Paused in the midst of that, it gives the rest back to its
   * socket, which by then reads on: each time more comes in than was taken, until the whole response is in memory.
   */
  #hold(): void {
    this.#held = true
    queueMicrotask(() => {
      if (this.#held) this.#controller?.pause()
    })
  }

  #release(): void {
    this.#held = false
    // Undici parses on within `resume`, and its one parser may be in the midst of another response's chunk: a consumer
    // that opens its gate there would break both.
    queueMicrotask(() => {
      if (!this.incoming.over && !this.#held) this.#controller?.resume()
    })
  }

  /** Begins to undo the content coding. Returns whether it is known. */
  #decode(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): boolean {
    const wire: Dispatcher.DispatchController = {
      aborted: false,
      paused: false,
      reason: null,
      pause: () => this.#hold(),
      resume: () => this.#release(),
      // What cannot be decoded: the decoder waits for undici's error.
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
    if (this.#cut !== undefined) this.incoming.broken('broken', this.#cut)
    else this.incoming.end()
    this.#decoding?.destroy()
    // What comes after the end of a compressed body would otherwise be read for as long as it comes.
    if (!this.#ended) this.#controller?.abort(new Error('more came after the end of the compressed body'))
  }
}

/** With what the HTML standard wants for an event stream, and `fetch` adds by itself: no cache on the way may answer. */
function uncached(headers: WireRequest['headers']): WireRequest['headers'] {
  return headers['accept'] === 'text/event-stream' ? { 'cache-control': 'no-cache', ...headers } : headers
}

/** Whether compressed data ended before its end. */
function isTooShort(error: Error): boolean {
  return 'code' in error && error.code === 'Z_BUF_ERROR'
}
