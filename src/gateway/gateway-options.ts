/// <reference lib="esnext.disposable" preserve="true" />
import type { EventLog } from '../log/event-log/event-log.ts'
import type { AddRunsRequest, AddRunsResponse } from '../protocol/task-group.ts'
import type { SearchRequest, SearchResponse } from '../protocol/search.ts'
import type { LiveSnapshot, ParamsOf } from '../protocol/live.ts'
import type { Grant, Revocation } from './grant.ts'
import type { GatewayObserver } from './observer.ts'
import type { View } from './view.ts'

/** Views by the name under which clients follow them. */
export type Views = Readonly<Record<string, View<unknown, string>>>

/** Settings of the signed tokens of a gateway. */
export interface TokenOptions {
  /** At least 32 bytes of UTF-8. If there are several, the first one signs and each verifies, so that the secret can be changed. */
  readonly secret: string | readonly string[]
  /** Each gateway that shares the secret needs another one. Default `rivulet`. */
  readonly audience?: string
}

/** The parts of a client that a gateway needs. A client of `createClient` has them. */
export interface GatewayClient {
  search(
    request: SearchRequest,
    options: {
      /** Aborted when the page's request is. */
      readonly signal: AbortSignal
    },
  ): PromiseLike<SearchResponse>
  readonly taskGroups: {
    /** A request on which the service may have acted must not be sent again. */
    addRuns(
      groupId: string,
      request: AddRunsRequest,
      options: {
        /** Aborted when the page's request is. */
        readonly signal: AbortSignal
      },
    ): PromiseLike<AddRunsResponse>
  }
}

/** Settings of `createGateway`. */
export interface GatewayOptions<V extends Views> {
  /** The open log that it serves. */
  readonly log: EventLog
  /** The views that pages may open, by their names. */
  readonly views: V
  /** How tokens are signed and checked. */
  readonly tokens: TokenOptions
  /**
   * Names the processes of the views `view:NAME/VIEW`. Gateways of one log with the same views share a name, and with it the processes;
   * gateways with other views need another name. Up to 64 letters, digits, `.`, `_` and `-`. Default: none, and processes named
   * `view:VIEW`.
   */
  readonly name?: string
  /**
   * Whether the log keeps the entries that a view has not processed, also while no gateway runs. With false, retention does not wait for
   * the views, and a view whose unread entries were deleted reports a gap `missed`. Default true.
   */
  readonly holdsRetention?: boolean
  /** Path at which it is mounted. Default `/live`. */
  readonly path?: string
  /**
   * Origins of the pages that may use it, such as `https://app.example`, and the gateway's own origin if it differs: the gateway answers
   * only for their hosts and this machine's. Default: pages of this machine, at any port.
   */
  readonly origins?: readonly string[]
  /** Client for the requests that grants allow, such as a client of `createClient`. Default: all of them are refused. */
  readonly client?: GatewayClient
  /** Connections of one subject at the same time, and maximum number of its reads of the log at the same time. Default 20. */
  readonly maxConnections?: number
  /** How often a connection gets a `heartbeat` at least, in ms. Default 15,000. */
  readonly heartbeat?: number
}

/** Serves the log to browsers: a function from `Request` to `Response`, which `nodeListener` mounts on `node:http`. */
export interface Gateway<V extends Views> extends AsyncDisposable {
  (request: Request): Promise<Response>
  /** Signs a token for the rights of a subject. */
  grant(grant: Grant): Promise<string>
  /** A text that a page exchanges once, within a minute, for a cookie with this grant: for `EventSource`, which has no headers. */
  ticket(grant: Grant): Promise<string>
  /** Ends connections of these grants, and refuses their tokens from now on, in each gateway of the log. */
  revoke(revocation: Revocation): Promise<void>
  /** The rows of views as a grant sees them, for a page that the server renders. */
  snapshot<const Name extends keyof V & string>(
    grant: Grant,
    views: readonly { readonly view: Name; readonly params?: ParamsOf<V[Name]> }[],
  ): Promise<LiveSnapshot>
  /** Observes the gateway from now on, for metrics, until the returned function is called. */
  observe(observer: GatewayObserver): () => void
  /** Rejects when a view can no longer be processed. */
  readonly done: Promise<void>
  close(): Promise<void>
}
