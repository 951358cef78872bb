import type { IncomingBody } from './body-intake.ts'

/** A request as a handler sees it, through whichever server it came. */
export interface HttpRequest {
  readonly method: string
  /** The value of a header, null where it is absent. The name is in lower case; repeated lines are joined by `, `. */
  header(name: string): string | null
  /** Starts to read the exact bytes of the body into `body`. Throws a TypeError if they were read before. */
  read(body: IncomingBody): void
}

/** What a handler answers. */
export interface HttpAnswer {
  readonly status: number
  readonly headers?: Headers
  readonly body?: string | ReadableStream<Uint8Array> | null
}

/**
 * Answers requests. It is mounted through one of two adapters: `fetchHandler` for servers of `Request` and `Response`, and
 * `nodeListener` for `node:http`.
 */
export type HttpHandler = (request: HttpRequest) => Promise<HttpAnswer>
