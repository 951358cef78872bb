/**
 * Views of a gateway in a browser: their rows, kept up to date.
 *
 * @module rivulet/live
 */
export { connect } from './connect.ts'
export { LiveError } from './live-error.ts'
export type { LiveErrorReason } from './live-error.ts'
export type {
  ConnectOptions,
  InspectedView,
  Live,
  LiveInspection,
  LiveObservable,
  LiveState,
  LiveStatus,
  LiveStore,
  LiveSubscription,
  LiveView,
  ObservableView,
  ViewSnapshot,
} from './live.ts'
export { rowKey, rowPath, viewAddress } from '../protocol/live.ts'
export type {
  LiveSnapshot,
  ParamOf,
  ParamsOf,
  RefusalCode,
  RowKey,
  RowOf,
  RowState,
  ViewShape,
  ViewShapes,
} from '../protocol/live.ts'
export type { AddRunsRequest, AddRunsResponse } from '../protocol/task-group.ts'
export type { SearchRequest, SearchResponse } from '../protocol/search.ts'
