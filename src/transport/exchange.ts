import type { ConnectionError, ProtocolError } from './errors.ts'

/** How long to wait for what, each in ms. */
export interface Timeouts {
  /** For the connection. Default 10,000. */
  readonly connect: number
  /** From the request to the status line and headers. Default 30,000. */
  readonly headers: number
  /** Between two chunks of a body; does not count while the reader holds the flow. Default 60,000. */
  readonly silence: number
}

/** One request, ready for the wire. */
export interface WireRequest {
  /** `https://host:port`. */
  readonly origin: string
  /** Path and query. */
  readonly path: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly timeouts: Timeouts
}

/** Reads one header, by its name in lower case. */
export type HeaderReader = (name: string) => string | undefined

/**
 * Takes in one response: `head`, any number of `chunk`s, then either `end` or `error`. An `error` may come at any time
 * and is the last call. Nothing is called after `abort`, and nothing before the exchange has returned its flow.
 */
export interface ResponseSink {
  head(status: number, header: HeaderReader): void
  /** The bytes are only the sink's until it returns. */
  chunk(bytes: Uint8Array): void
  end(): void
  error(error: ConnectionError | ProtocolError): void
}

/** The reader's hold on a response. */
export interface Flow {
  /** Stops reading the socket; chunks already on their way may still come. */
  pause(): void
  resume(): void
  /** Destroys the socket; the sink hears no more. */
  abort(): void
}

/**
 * The one face of HTTP: sends a request, pushes the response into a sink. It neither follows redirects nor retries.
 * Its bodies are undici's dispatch on Node and `fetch` elsewhere.
 */
export type Exchange = (request: WireRequest, sink: ResponseSink) => Flow
