import { interceptors } from 'undici'
import type { Dispatcher } from 'undici'

/** Receives the output of a {@link Decoding}. */
export interface DecodedSink {
  /** Decoded bytes. */
  decoded(bytes: Uint8Array): void
  /** The body is complete. */
  decodedAll(): void
  /** The body is not in the announced coding, or ends too early. */
  undecodable(error: Error): void
}

type Handler = Dispatcher.DispatchHandler
type Controller = Dispatcher.DispatchController

let decompress: Dispatcher.DispatcherComposeInterceptor | undefined

/**
 * Decodes the content coding of one response with undici's own interceptor. It is created per encoded response instead of
 * composed onto the agent, so that other responses cost nothing and the exchange keeps control of pausing (see its
 * `#pauseSocket`) and of the bytes before a disconnect.
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
      // More nested codings than undici decodes.
    }
    return this.#known
  }

  write(bytes: Buffer): void {
    this.#encoded.onResponseData?.(this.#given, bytes)
  }

  /** Called when no more bytes arrive. Reports the end after everything written is decoded. */
  end(): void {
    this.#encoded.onResponseEnd?.(this.#given, {})
  }

  /** Releases the decoder's memory; reports nothing more. */
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
    // Undici leaves an unknown coding as it is, and keeps its header.
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

/** Silences undici's warning that its interceptor is experimental: every program that uses this library would print it. */
function makeDecompress(): Dispatcher.DispatcherComposeInterceptor {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    // The body of an error is decoded too.
    return interceptors.decompress({ skipErrorResponses: false })
  } finally {
    process.emitWarning = emitWarning
  }
}
