import { ignoringErrors } from '../protocol/observers.ts'
import type { Observers } from '../protocol/observers.ts'
import type { WireRequest } from './exchange.ts'

/** One attempt of a request, or one connection of a stream. */
export interface ObservedRequest {
  readonly method: 'GET' | 'POST'
  /** URL as it is sent, with the query. */
  readonly url: string
  /** Path, without the path of `baseUrl` and the query. */
  readonly path: string
  /** Whether an event stream is requested. */
  readonly isStream: boolean
  /** 1 for the first attempt. */
  readonly attempt: number
}

/** An observer of one request. Errors that its methods throw are ignored. */
export interface RequestObservation {
  /** Sent with the request, unless the client sets the same header. Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** The response has this status. For a stream, this is called at the stream's beginning. */
  responded?(status: number): void
  /** The response is complete, was cancelled, or has failed with this error. Called once, as the last one. */
  ended?(error?: unknown): void
}

/** Observes a client's requests, as `rivulet/otel` does. Errors that its methods throw are ignored. */
export interface ClientObserver {
  /** Called before each attempt of a request, and before each connection of a stream. */
  request?(request: ObservedRequest): RequestObservation | undefined
}

/** The observations of one request, all together. */
export interface Observation {
  /** The request with the headers of its observers. */
  readonly wire: WireRequest
  responded(status: number): void
  ended(error?: unknown): void
}

/** Begins to observe a request. Without observers it costs nothing: undefined. */
export function observeRequest(
  observers: Observers<ClientObserver>,
  wire: WireRequest,
  { path, isStream, attempt }: Pick<ObservedRequest, 'path' | 'isStream' | 'attempt'>,
): Observation | undefined {
  if (observers.isEmpty) return undefined
  const { method } = wire
  const url = wire.origin + wire.path
  const observations = observers.notify((observer) =>
    observer.request?.({ method, url, path, isStream, attempt }),
  )
  let isEnded = false
  const added = Object.assign({}, ...observations.map(({ headers }) => headers))
  return {
    wire: { ...wire, headers: { ...added, ...wire.headers } },
    responded(status) {
      if (isEnded) return
      for (const each of observations) ignoringErrors(() => each.responded?.(status))
    },
    ended(error) {
      if (isEnded) return
      isEnded = true
      for (const each of observations) ignoringErrors(() => each.ended?.(error))
    },
  }
}
