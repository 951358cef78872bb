import type { ConnectionError, ProtocolError } from './errors.ts'

/** Timeouts of a request, each in ms. */
export interface Timeouts {
  /** Timeout of making the connection, in ms. Default 10,000. */
  readonly connect: number
  /** Timeout from the request to the status line and headers, in ms. Default 30,000. */
  readonly headers: number
  /**
   * Timeout between two chunks of a body, in ms. Comments of a stream are chunks; time for which a slow consumer pauses the stream does
   * not count. Then a request that may be repeated is retried, and a group's stream resumes; `client.stream` errors with a
   * `ConnectionError`. Default 60,000.
   */
  readonly silence: number
}

/** The defaults of {@link Timeouts}. */
export const DEFAULT_TIMEOUTS: Timeouts = { connect: 10_000, headers: 30_000, silence: 60_000 }

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
 * Receives one response: `head`, any number of `chunk`s, then exactly one of `end` and `error`. `error` may come at any
 * time. Nothing is called after `abort`, or before the exchange has returned its flow. Pushed chunks cost no promise and no timer for an
 * event.
 */
export interface ResponseSink {
  /** Called once with the status and the headers, before the body. */
  head(status: number, header: HeaderReader): void
  /** The bytes are valid only until this call returns. */
  chunk(bytes: Uint8Array): void
  /** Called when the body is complete. */
  end(): void
  /** Called when the request or the response failed. */
  error(error: ConnectionError | ProtocolError): void
}

/** Controls a response: backpressure and cancellation. */
export interface Flow {
  /** Stops reading the socket. Chunks that were already read may still arrive. */
  pause(): void
  /** Continues to read the socket. */
  resume(): void
  /** Destroys the socket. The sink is called no more. */
  abort(): void
}

/**
 * The interface to HTTP: sends a request and pushes the response into a sink. It neither follows redirects nor retries.
 * It is implemented by undici's dispatch on Node and by `fetch` elsewhere.
 */
export type Exchange = (request: WireRequest, sink: ResponseSink) => Flow
