/**
 * Views of a gateway in a browser: their rows, kept up to date.
 *
 * @module rivulet/live
 */
export { connect } from './connect.ts'
export { ArgumentError } from '../protocol/argument-error.ts'
export { LiveError } from './live-error.ts'
export type { LiveErrorReason } from './live-error.ts'
export type {
  ConnectOptions,
  Live,
  LiveInspection,
  LiveState,
  LiveStatus,
  LiveView,
  ViewSnapshot,
} from './live.ts'
export { rowKey, rowPath, viewAddress } from '../protocol/live.ts'
export type {
  LiveSnapshot,
  ParamsOf,
  RowKey,
  RowOf,
  RowState,
  ViewShape,
  ViewShapes,
} from '../protocol/live.ts'
export type { AddRunsRequest, AddRunsResponse } from '../protocol/task-group.ts'
export type { SearchRequest, SearchResponse } from '../protocol/search.ts'
