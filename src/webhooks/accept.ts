import type { IncomingBody } from './body.ts'
import type { WebhookRefusal } from './refusal.ts'

/** A request as a receiver looks at it, whichever server it came through. */
export interface WebhookRequest {
  readonly method: string | undefined
  /** The value of a header, whose name is in lower case; several lines of it are joined by `, `. */
  header(name: string): string | null | undefined
  /** Begins to read the exact bytes of the body into this one. Throws where they were read before. */
  read(body: IncomingBody): void
}

/** Takes a request in; the refusal where it cannot. Never rejects. */
export type Accept = (request: WebhookRequest) => Promise<WebhookRefusal | undefined>

type Handle = (request: Request) => Promise<Response>

const acceptors = new WeakMap<Handle, Accept>()

/**
 * Keeps what decides behind a receiver's `handle`, so that an adapter can spare itself a `Request` and a `Response` for each
 * webhook. It is kept by the function and not by its receiver: whoever puts a `handle` of his own in its place is called.
 */
export function keepAccept(handle: Handle, accept: Accept): void {
  acceptors.set(handle, accept)
}

/** What decides behind this `handle`; undefined where it is no receiver's. */
export function acceptBehind(handle: Handle): Accept | undefined {
  return acceptors.get(handle)
}
