import { interceptors } from 'undici'
import type { Dispatcher } from 'undici'

/** What a {@link Decoding} reports to. */
export interface DecodedSink {
  /** Decoded bytes. */
  decoded(bytes: Uint8Array): void
  /** All has been decoded. */
  decodedAll(): void
  /** What came is not in the coding that it was announced in, or ends too early. */
  undecodable(error: Error): void
}

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController

let decompress: Dispatcher.DispatcherComposeInterceptor | undefined

/**
 * Undoes the content coding of one response with undici's own interceptor. It is not composed onto the agent, but made for
 * a response that needs it: then it costs nothing for all others, and the exchange keeps its own way to pause (the
 * interceptor pauses in the midst of undici's parsing, see `hold` of the exchange) and to report what came before a cut.
 */
export class Decoding implements Handler {
  readonly #sink: DecodedSink
  #encoded: Handler = {}
  #controller: Controller | undefined
  #known = false

  /** @param wire Controls the response's socket. */
  constructor(wire: Controller, sink: DecodedSink) {
    this.#sink = sink
    decompress ??= makeDecompress()
    decompress((_options, handler) => {
      this.#encoded = handler
      return true
    })({ path: '/', method: 'GET' }, this)
    this.#encoded.onRequestStart?.(wire, {})
  }

  /** Whether all codings of a response with this head are known. */
  start(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
    const { 'content-encoding': coding } = headers
    try {
      this.#encoded.onResponseStart?.(this.#given, status, { 'content-encoding': coding }, '')
    } catch {
      // More codings on top of each other than undici undoes.
    }
    return this.#known
  }

  write(bytes: Buffer): void {
    this.#encoded.onResponseData?.(this.#given, bytes)
  }

  /** No more bytes come. What came is decoded first. */
  end(): void {
    this.#encoded.onResponseEnd?.(this.#given, {})
  }

  /** Lets the memory go; reports nothing more. */
  destroy(): void {
    this.#encoded.onResponseError?.(this.#given, new Error('aborted'))
  }

  pause(): void {
    this.#given.pause()
  }

  resume(): void {
    this.#given.resume()
  }

  get #given(): Controller {
    if (this.#controller === undefined) throw new Error('undici did not begin the response')
    return this.#controller
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller
  }

  onResponseStart(
    _controller: Controller,
    _status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // What undici does not know it leaves as it is, and the header too.
    this.#known = headers['content-encoding'] === undefined
  }

  onResponseData(_controller: Controller, bytes: Uint8Array): void {
    this.#sink.decoded(bytes)
  }

  onResponseEnd(): void {
    this.#sink.decodedAll()
  }

  onResponseError(_controller: Controller | undefined, error: Error): void {
    this.#sink.undecodable(error)
  }
}

/**
 * Undici warns that its interceptor is experimental, once, when it is made. That is ours to know: it would be on the
 * stderr of every program that uses this library.
 */
function makeDecompress(): Dispatcher.DispatcherComposeInterceptor {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    // An error's body is read too.
    return interceptors.decompress({ skipErrorResponses: false })
  } finally {
    process.emitWarning = emitWarning
  }
}
