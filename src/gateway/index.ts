/**
 * The gateway between an event log and browsers.
 *
 * @module rivulet/gateway
 */
export { ArgumentError } from '../protocol/argument-error.ts'
export { createGateway } from './gateway.ts'
export type { Gateway, GatewayClient, GatewayOptions, TokenOptions, Views } from './gateway-options.ts'
export type { Grant, GrantedRequests, Revocation } from './grant.ts'
export { view } from './view.ts'
export type { RowPath, View, ViewDefinition, ViewOptions } from './view.ts'
export type {
  CloseReason,
  GapReason,
  LiveFrames,
  LiveSnapshot,
  ParamOf,
  ParamsOf,
  Refusal,
  RefusalCode,
  RowKey,
  RowOf,
  RowState,
  ViewRequest,
  ViewShape,
  ViewShapes,
} from '../protocol/live.ts'
export { rowKey, rowPath, viewAddress } from '../protocol/live.ts'
export type { FetchHandler } from '../http/fetch-handler.ts'
export { nodeListener } from '../http/node-listener.ts'
