/**
 * What an HTTP client of one's own implements, and what observes the requests of a client.
 *
 * @module rivulet/transport
 */
export { ConnectionError, ProtocolError } from './errors.ts'
export type { Exchange, Flow, HeaderReader, ResponseSink, Timeouts, WireRequest } from './exchange.ts'
export type { Fetch } from './fetch-exchange.ts'
export type { ClientObserver, ObservedRequest, RequestObservation } from './observer.ts'
