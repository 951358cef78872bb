/// <reference lib="esnext.disposable" preserve="true" />
import type { LiveSnapshot, ParamOf, ParamsOf, RowOf, ViewShapes } from '../protocol/live.ts'
import type { AddRunsRequest, AddRunsResponse } from '../protocol/task-group.ts'
import type { SearchRequest, SearchResponse } from '../protocol/search.ts'

declare global {
  // As RxJS declares it.
  interface SymbolConstructor {
    readonly observable: symbol
  }
}

/** Settings of `connect`. */
export interface ConnectOptions {
  /** Address of the gateway: `/live`, or `https://live.example/live`. */
  readonly url: string
  /** Returns a token of `gateway.grant`, or its promise, within 20 s. Called before each connection. */
  readonly getToken: () => string | PromiseLike<string>
  /**
   * Whether tabs of this origin share one connection. Default true.
   *
   * Their tokens have the same rights. It carries up to 64 views of all of them.
   */
  readonly share?: boolean
  /**
   * Keeps the last rows in IndexedDB. Default false.
   *
   * So a page starts without a network.
   */
  readonly offline?: boolean
  /**
   * Snapshot that the server has rendered. Default: none, and each view begins without rows.
   *
   * The page continues from its positions.
   */
  readonly initial?: LiveSnapshot
}

/**
 * `connecting`: no rows yet. `live`: the rows are up to date. `stale`: the connection was lost, or the gateway cannot make the view now;
 * the rows have the state of that moment. `offline`: the browser has no network. `denied`: the gateway refuses this view or the token, the
 * view is one of more than 64 (`too_many`), or `close` was called before its rows came (`closed`).
 */
export type LiveState = 'connecting' | 'live' | 'stale' | 'offline' | 'denied'

/** The state of a view or of a connection, the same object until it changes. */
export interface LiveStatus {
  readonly state: LiveState
  /** The time at which this state began, in Unix ms. */
  readonly since: number
  /** Why it is stale, offline or denied. */
  readonly error?: Error | undefined
}

/** A view at one moment. Immutable, and the same object until something changes. */
export interface ViewSnapshot<Row> {
  /** The rows by path, as `rowKey` writes it. */
  readonly rows: ReadonlyMap<string, Row>
  /** Whether the rows have come: from the gateway, the server or IndexedDB. It never becomes false again. */
  readonly ready: boolean
  readonly status: LiveStatus
  /** How many times the view itself has missed events, as its gateway reports. */
  readonly gaps: number
}

/** A value that changes. React, Svelte and Solid accept it as a store. */
export interface LiveStore<Value> {
  /** Calls the listener now, then at most once a frame when the value has changed. Returns a function that ends the subscription. */
  subscribe(listener: (value: Value) => void): () => void
  /** The same object until something changes. */
  getSnapshot(): Value
}

/** The rows of a view with its params, kept up to date while it has subscribers. */
export interface LiveView<Row> extends LiveStore<ViewSnapshot<Row>> {
  readonly address: string
  /** The snapshot that the server has rendered, for hydration. */
  getServerSnapshot(): ViewSnapshot<Row>
  status(): LiveStatus
}

/** A {@link LiveStore} that is an observable too, which never ends: for RxJS's `from` and Angular's `toSignal`. */
export interface LiveObservable<Value> extends LiveStore<Value> {
  subscribe(
    observer: ((value: Value) => void) | { readonly next?: ((value: Value) => void) | undefined },
  ): LiveSubscription
  [Symbol.observable](): LiveObservable<Value>
  '@@observable'(): LiveObservable<Value>
}

/** Ends a subscription: called itself, as stores end, or by its `unsubscribe`, as observables do. A second call does nothing. */
interface LiveSubscription {
  (): void
  unsubscribe(): void
}

/** The result of `live.view`. */
export interface ObservableView<Row> extends LiveView<Row>, LiveObservable<ViewSnapshot<Row>> {
  subscribe: LiveObservable<ViewSnapshot<Row>>['subscribe']
}

/** A connection, for developers. Made when it is requested; times in Unix ms. */
export interface LiveInspection {
  /**
   * `leader`: it has the connection of all tabs. `follower`: it gets its rows from that tab. `alone`: it has its own connection.
   * `idle`: nothing is followed, or the tabs have not decided yet.
   */
  readonly role: 'idle' | 'alone' | 'leader' | 'follower'
  /** How many tabs follow this one. */
  readonly followers: number
  /** The connection of this tab; undefined if it has none. */
  readonly connection?: {
    readonly state: 'connecting' | 'open' | 'waiting'
    /** When it was opened, or when the attempt began. */
    readonly since: number
    /** When anything came last. */
    readonly lastBytes: number
    /** The age of the oldest entry that the views have not processed, in ms, at the last heartbeat. */
    readonly behind: number
    /** Attempts without success since the last one with. */
    readonly failures: number
  }
  readonly views: readonly InspectedView[]
}

/** A view as developers look at it. */
export interface InspectedView {
  readonly address: string
  readonly status: LiveStatus
  /** Undefined before the first rows. */
  readonly position: string | undefined
  /** How many. */
  readonly rows: number
  readonly gaps: number
  /** When something came for it last; 0 for never. */
  readonly lastEvent: number
  /** How many in this tab. */
  readonly listeners: number
}

/** A connection to a gateway. */
export interface Live<V extends ViewShapes> extends Disposable {
  /**
   * Returns the view of a name and params, always the same object for the same ones.
   *
   * @throws ArgumentError for a param that is no text of up to 1,024 characters.
   */
  view<const Name extends keyof V & string>(
    name: Name,
    ...params: [ParamOf<V[Name]>] extends [never] ? [] : [params: ParamsOf<V[Name]>]
  ): ObservableView<RowOf<V[Name]>>
  /** The connection's own status: the status of its worst view, or of the token. */
  readonly status: LiveObservable<LiveStatus>
  /** Roles, positions and times, for developers. Costs nothing until it is used. */
  readonly inspect: LiveObservable<LiveInspection>
  /** Rejects with a `LiveError`. */
  search(
    request: SearchRequest,
    options?: {
      /** Aborts the request. Default: none. */
      readonly signal?: AbortSignal
    },
  ): Promise<SearchResponse>
  /** Never sent twice, unless the gateway cannot have accepted the first request. Rejects with a `LiveError`. */
  addRuns(
    group: string,
    request: AddRunsRequest,
    options?: {
      /** Aborts the request. Default: none. */
      readonly signal?: AbortSignal
    },
  ): Promise<AddRunsResponse>
  close(): void
}
