/**
 * The gateway between an event log and browsers.
 *
 * @module rivulet/gateway
 */
export { ArgumentError } from '../protocol/argument-error.ts'
export { createGateway } from './gateway.ts'
export type { Gateway, GatewayClient, GatewayOptions, TokenOptions, Views } from './gateway-options.ts'
export type { Grant, GrantedRequests, Revocation } from './grant.ts'
export type { GatewayEndpoint, GatewayObserver } from './observer.ts'
export { view } from './view.ts'
export type { RowPath, View, ViewDefinition, ViewOptions } from './view.ts'
export type { ViewAge } from './views/view-age.ts'
export { activityView } from './views/activity-view.ts'
export type { ActivityLag, ActivityRow } from './views/activity-view.ts'
export { alertsView } from './views/alerts-view.ts'
export type { AlertRow } from './views/alerts-view.ts'
export type { CandidateRow } from './views/candidate-row.ts'
export { findAllView } from './views/find-all-view.ts'
export type { FindAllRow, FindAllRunRow } from './views/find-all-view.ts'
export { findAllsView } from './views/find-alls-view.ts'
export type { FindAllsRow } from './views/find-alls-view.ts'
export { groupView } from './views/group-view.ts'
export type { GroupRow, GroupStatusRow } from './views/group-view.ts'
export type { GroupRunRow } from './views/run-row.ts'
export { groupsView } from './views/groups-view.ts'
export type { GroupsRow } from './views/groups-view.ts'
export { monitorView } from './views/monitor-view.ts'
export type { MonitorRow, MonitorRowType } from './views/monitor-view.ts'
export { monitorsView } from './views/monitors-view.ts'
export type { MonitorsRow } from './views/monitors-view.ts'
export type { NoticeRow } from './views/notice.ts'
export type { RunMeter, TraceMessage } from './views/run-progress.ts'
export { runView } from './views/run-view.ts'
export type { RunProgressRow, RunRow } from './views/run-view.ts'
export { runsView } from './views/runs-view.ts'
export type { RunsRow } from './views/runs-view.ts'
export { searchesView } from './views/searches-view.ts'
export type { RecordedSearch, SearchesRow } from './views/searches-view.ts'
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
export type { NodeIncoming, NodeOutgoing } from '../http/node-message.ts'
