import { Socket } from 'node:net'
import { Agent, buildConnector } from 'undici'
import type { Dispatcher } from 'undici'
import { openDecoder } from './content-coding.ts'
import type { Decoder } from './content-coding.ts'
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
class Call implements Wire, Dispatcher.DispatchHandler {
  readonly incoming: Incoming
  /** The socket that is being connected for this call, while it is. */
  socket: Socket | undefined
  readonly #request: WireRequest
  /** Undici gives it once the connection stands and right before it writes: without it nothing was sent. */
  #controller: Dispatcher.DispatchController | undefined
  #coding: string | undefined
  #decoder: Decoder | undefined

  constructor(request: WireRequest, sink: ResponseSink) {
    this.#request = request
    this.incoming = new Incoming(request, sink, this)
  }

  start(dispatch: (call: Call, options: Dispatcher.DispatchOptions) => void): void {
    const { origin, path, method, headers, body } = this.#request
    this.incoming.connecting()
    // Undici's own time-outs go on while the reader holds a flow on which nothing comes, so they are off.
    dispatch(this, { origin, path, method, headers, body, headersTimeout: 0, bodyTimeout: 0 })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.socket = undefined
    if (this.incoming.over) return this.destroy()
    if (this.incoming.paused) controller.pause()
    this.incoming.sending()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
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
    this.#coding = coding === 'identity' ? undefined : coding
    this.incoming.head(status, header)
  }

  onResponseData(_controller: Dispatcher.DispatchController, bytes: Uint8Array): void {
    // Undici flushes its parser when it is resumed: no bytes, and no news.
    if (bytes.byteLength === 0) return
    if (this.#coding === undefined) this.incoming.chunk(bytes)
    else this.#decode(this.#coding, bytes)
  }

  onResponseEnd(): void {
    if (this.#decoder === undefined) this.incoming.end()
    else this.#decoder.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.#controller !== undefined) return this.#broken(error)
    const late = 'code' in error && (error.code === 'UND_ERR_CONNECT_TIMEOUT' || error.code === 'ETIMEDOUT')
    this.incoming.broken(late ? 'connect-timeout' : 'refused', error)
  }

  pause(): void {
    this.#decoder?.pause()
    this.#hold()
  }

  /**
   * Stops reading once undici has parsed what it has read. Paused in the midst of that, it gives the rest back to its
   * socket, which by then reads on: each time more comes in than was taken, until the whole response is in memory.
   */
  #hold(): void {
    queueMicrotask(() => {
      if (this.incoming.paused || this.#decoder?.writableNeedDrain === true) this.#controller?.pause()
    })
  }

  resume(): void {
    // Undici parses on within `resume`, and its one parser may be in the midst of another response's chunk: a consumer
    // that opens its gate there would break both.
    queueMicrotask(() => {
      if (this.incoming.over || this.incoming.paused) return
      this.#decoder?.resume()
      if (this.#decoder?.writableNeedDrain !== true) this.#controller?.resume()
    })
  }

  destroy(): void {
    const reason = new Error('aborted')
    this.#controller?.abort(reason)
    // Without an error undici would wait for this connection for ever.
    this.socket?.destroy(reason)
    this.#decoder?.destroy()
  }

  /** What came before is told first: a stream that is cut time and again would else never get on. */
  #broken(error: Error): void {
    const tell = () => this.incoming.broken('broken', error)
    if (this.#decoder === undefined) tell()
    else this.#decoder.flush(tell)
  }

  #decode(coding: string, bytes: Uint8Array): void {
    const { incoming } = this
    incoming.alive()
    this.#decoder ??= this.#openDecoder(coding, bytes)
    if (this.#decoder?.write(bytes) === false) this.#hold()
  }

  /** Opened at the first chunk, since an empty body is no gzip. */
  #openDecoder(coding: string, first: Uint8Array): Decoder | undefined {
    const { incoming } = this
    const decoder = openDecoder(coding, first)
    if (decoder === undefined) {
      incoming.broken('broken', new Error(`content-encoding ${coding.slice(0, 40)} is not known`))
      return undefined
    }
    decoder.on('data', (bytes: Uint8Array) => incoming.chunk(bytes))
    decoder.on('end', () => incoming.end())
    decoder.on('error', (error) => incoming.broken('broken', error))
    decoder.on('drain', () => this.resume())
    if (incoming.paused) decoder.pause()
    return decoder
  }
}
