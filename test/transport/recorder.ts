import type { ConnectionError, ProtocolError } from '../../src/transport/errors.ts'
import type { HeaderReader, ResponseSink, WireRequest } from '../../src/transport/exchange.ts'

/** A request with long timeouts; a test overrides what it needs. */
export function wire(origin: string, changes: Partial<WireRequest> = {}): WireRequest {
  const timeouts = { connect: 60_000, headers: 60_000, silence: 60_000 }
  return { origin, path: '/', method: 'GET', headers: {}, timeouts, ...changes }
}

/** Records the calls of a sink. */
export class Recorder implements ResponseSink {
  /** The names of the calls, in order; chunks that follow each other count as one. */
  readonly calls: string[] = []
  status = 0
  header: HeaderReader = () => undefined
  text = ''
  bytes = 0
  failure: ConnectionError | ProtocolError | undefined
  readonly opened: Promise<void>
  /** Resolves at the first chunk. */
  readonly begun: Promise<void>
  /** Resolves at `end` or `error`. */
  readonly ended: Promise<void>
  onChunk: (bytes: Uint8Array) => void = () => {}
  readonly #opened = Promise.withResolvers<void>()
  readonly #begun = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #decoder = new TextDecoder()

  constructor() {
    this.opened = this.#opened.promise
    this.begun = this.#begun.promise
    this.ended = this.#ended.promise
  }

  head(status: number, header: HeaderReader): void {
    this.calls.push('head')
    this.status = status
    this.header = header
    this.#opened.resolve()
  }

  chunk(bytes: Uint8Array): void {
    if (this.calls.at(-1) !== 'chunk') this.calls.push('chunk')
    this.bytes += bytes.byteLength
    // Long bodies are counted, not kept.
    if (this.bytes < 1_000_000) this.text += this.#decoder.decode(bytes, { stream: true })
    this.#begun.resolve()
    this.onChunk(bytes)
  }

  end(): void {
    this.calls.push('end')
    this.#ended.resolve()
  }

  error(error: ConnectionError | ProtocolError): void {
    this.calls.push('error')
    this.failure = error
    this.#ended.resolve()
  }
}
