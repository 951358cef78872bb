import { ArgumentError } from './argument-error.ts'

/**
 * The path of a row, as text: its parts, escaped and joined with `/`. The first parts are the view's params. A row belongs to a client's
 * request if its path begins with the client's params.
 */
export type RowKey = string

/** The {@link RowKey} of these parts. */
export function rowKey(parts: readonly string[]): RowKey {
  return parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')
}

/** The parts of a {@link RowKey}. */
export function rowPath(key: RowKey): string[] {
  return key.split('/').map(decodeURIComponent)
}

/** A view that a client follows. */
export interface ViewRequest {
  readonly view: string
  /** All params that the view has, by name. */
  readonly params?: Readonly<Record<string, string>>
  /** The position that the client has. Default: none, and a snapshot follows. */
  readonly after?: string
}

/**
 * The address of a view with its params, by which frames name it: `group?group=tgrp_1`. Params are in
 * the order of their names.
 *
 * @throws ArgumentError for a text with a lone surrogate, or anything that is no text.
 */
export function viewAddress(view: string, params: Readonly<Record<string, string>> = {}): string {
  const query = Object.entries(params)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map((param) => param.map(encoded).join('='))
    .join('&')
  return query === '' ? encoded(view) : `${encoded(view)}?${query}`
}

function encoded(text: string): string {
  if (typeof text !== 'string' || !text.isWellFormed()) {
    throw new ArgumentError('view', 'a text without a lone surrogate, and so must its params', text)
  }
  return encodeURIComponent(text)
}

/** The view and the params of an address, undefined for a text that is no address. */
export function parseAddress(address: string): Required<Omit<ViewRequest, 'after'>> | undefined {
  const [name = '', ...queries] = address.split('?')
  const params = queries.join('?').split('&')
  try {
    return {
      view: decodeURIComponent(name),
      params: Object.fromEntries(
        params
          .filter((param) => param !== '')
          .map((param) => {
            const [key = '', ...value] = param.split('=')
            return [decodeURIComponent(key), decodeURIComponent(value.join('='))]
          }),
      ),
    }
  } catch {
    return undefined
  }
}

/** A row of a frame, and its state as the view has made it; null for a row that was removed. */
export type RowState = readonly [key: RowKey, state: unknown]

/** Why the rows of a client may have missed changes. A snapshot follows. */
export type GapReason =
  /** The position is older than the oldest one that the gateway has. */
  | 'retention'
  /** The position is of another log. */
  | 'epoch'
  /** The view was built again. */
  | 'rebuilt'
  /** The view itself has missed entries of the log, which were deleted before it read them. No snapshot follows. */
  | 'missed'

/** Why a connection ends. Each but `denied` is a sign to connect again, with a new token. */
export type CloseReason = 'expired' | 'revoked' | 'shutdown'

/** Why a view or a request is refused. */
export type RefusalCode =
  | 'unauthenticated'
  | 'expired'
  | 'revoked'
  | 'forbidden'
  | 'unknown_view'
  | 'invalid'
  | 'too_many'
  | 'unavailable'
  /** The service may have acted on the request: sending it again may do it twice. */
  | 'uncertain'

/** A refusal, as the body of a response and in a frame. */
export interface Refusal {
  readonly code: RefusalCode
  readonly message: string
  /** When to try again, in ms from now. */
  readonly retryAfter?: number
}

/**
 * The frames that a gateway sends to a client, by the `event` of the server-sent event; `data` is JSON. Frames with a `view` are the same
 * for every client with the same rights.
 */
export interface LiveFrames {
  /** The first frame. Times in Unix ms. */
  open: {
    readonly protocol: number
    /** When the grant ends. */
    readonly expires: number
    /** How often a `heartbeat` comes at least, in ms. */
    readonly heartbeat: number
    readonly now: number
  }
  /** A part of the rows of a view; the rows that the client has are replaced by all parts together. */
  snapshot: {
    readonly view: string
    readonly rows: readonly RowState[]
    /** Whether it is the first part. */
    readonly first: boolean
    /** The position after the rows, in their last part only. */
    readonly position?: string
  }
  /** Changes of rows, in order. */
  changes: { readonly view: string; readonly rows: readonly RowState[]; readonly position: string }
  /** The position has moved over changes that this client does not see. */
  position: { readonly view: string; readonly position: string }
  /**
   * The client has all rows of this view: sent once for each view of a connection, after its snapshot or the changes since
   * the client's position. From here on the view is live.
   */
  current: { readonly view: string }
  gap: { readonly view: string; readonly reason: GapReason }
  /** The client cannot follow this view. The other views of the connection continue. */
  denied: { readonly view: string; readonly problem: Refusal }
  /**
   * `behind` is the age of the oldest entry that a view of this connection has not processed, in ms; 0 for none.
   * It is left out if the gateway cannot read it at the moment.
   */
  heartbeat: { readonly now: number; readonly behind?: number }
  /** The last frame. */
  close: { readonly reason: CloseReason }
}

/** Maximum number of views of a connection. */
export const MAX_LIVE_VIEWS = 64

/** Maximum length of a view's name, of a param and of a position, in characters. */
export const MAX_LIVE_TEXT = 1_024

/** The version of this protocol. */
export const LIVE_PROTOCOL = 1

/** Views at one moment, as JSON: a server renders them, and a browser begins with them. By {@link viewAddress}. */
export type LiveSnapshot = Readonly<
  Record<string, { readonly rows: readonly RowState[]; readonly position: string }>
>

/** The types of a view, as a browser needs them. `connect<typeof views>(…)` takes them from the server's code. */
export interface ViewShape<Row, Param extends string = never> {
  readonly params: readonly Param[]
  /** Never there at run time. */
  readonly row?: Row
}

/** Views by the name under which clients follow them. */
export type ViewShapes = Readonly<Record<string, ViewShape<unknown, string>>>

/** The row of a view. */
export type RowOf<V> = V extends ViewShape<infer Row, string> ? Row : never

/** The names of a view's params. */
export type ParamOf<V> = V extends ViewShape<unknown, infer Param> ? Param : never

/** The params of a view, by name. */
export type ParamsOf<V> = Readonly<Record<ParamOf<V>, string>>
