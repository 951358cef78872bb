import type { IncomingBody } from './body-intake.ts'

/** A request, independent of the server. */
export interface HttpRequest {
  readonly method: string
  /** The value of a header, null if it is absent. The name is in lower case; repeated lines are joined by `, `. */
  header(name: string): string | null
  /** Starts to read the exact bytes of the body into `body`. Throws an ArgumentError if they were already read. */
  read(body: IncomingBody): void
}

/** A handler's response. */
export interface HttpResponse {
  readonly status: number
  readonly headers?: Headers
  readonly body?: string | ReadableStream<Uint8Array> | null
}

/** Answers requests. Two adapters mount it: `fetchHandler` for `Request` and `Response`, and `nodeListener` for `node:http`. */
export interface HttpHandler {
  respond(request: HttpRequest): Promise<HttpResponse>
}
