import type { RefusalCode } from '../protocol/live.ts'

/** An endpoint of a gateway, below its path; `other` for another path. */
export type GatewayEndpoint = 'stream' | 'session' | 'search' | 'runs' | 'log' | 'other'

/**
 * Observes a gateway, as `rivulet/otel` does. An error that an observer throws or rejects with is ignored. Its methods get no token, no
 * subject and no row.
 */
export interface GatewayObserver {
  /** Wraps the answer to a request, which is always the result of `proceed`. For a stream, it lasts until the response begins. */
  request?(
    request: { readonly endpoint: GatewayEndpoint; readonly method: string },
    proceed: () => Promise<Response>,
  ): Promise<Response>
  /** A request was refused, or a view of a stream. */
  refused?(refusal: { readonly endpoint: GatewayEndpoint; readonly code: RefusalCode }): void
  /** A stream has begun. The returned function is called when it has ended. */
  connected?(): (() => void) | undefined
  /** Frames with rows were encoded, once for all clients that see the same of them. Their size is in bytes. */
  encoded?(size: number): void
  /** A client has taken frames. Their size is in bytes. */
  sent?(size: number): void
}
