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
  /** At least 32 bytes of UTF-8, or up to 16 such secrets: the first one signs, each verifies. */
  readonly secret: string | readonly string[]
  /** Another text for each gateway that shares the secret. Default `rivulet`. */
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
  /** The open log. */
  readonly log: EventLog
  /** Views by the names that pages use, without `/`. */
  readonly views: V
  /** How tokens are signed and checked. */
  readonly tokens: TokenOptions
  /**
   * Names the views' processes `view:NAME/VIEW`: up to 64 letters, digits, `.`, `_` and `-`. Default: none, for `view:VIEW`.
   *
   * Gateways of one log with the same views share a name, and with it the processes; gateways with other views need another name.
   */
  readonly name?: string
  /**
   * Whether the log keeps what a view has not processed. Default true.
   *
   * It does so while no gateway runs, too. With false, retention does not wait for the views, and a view whose unread entries were deleted
   * reports a gap `missed`.
   */
  readonly holdsRetention?: boolean
  /** Path at which it is mounted, as browsers see it. Default `/live`. */
  readonly path?: string
  /**
   * Origins of its pages, and its own, such as `https://app.example`. Default: this machine, at any port.
   *
   * The gateway answers only for their hosts and this machine's.
   */
  readonly origins?: readonly string[]
  /**
   * Makes the requests of pages that grants allow. Default: all are refused.
   *
   * A client of `createClient`, for instance.
   */
  readonly client?: GatewayClient
  /** Connections of a subject, and its reads of the log, at a time in each process. Default 20. */
  readonly maxConnections?: number
  /** Interval of heartbeats, in ms. Default 15,000. */
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
