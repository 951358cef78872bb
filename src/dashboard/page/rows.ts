import type { RowOf } from 'rivulet/live'
import type { DashboardViews } from '../views.ts'

/** A task group with its last status. */
export type GroupsRow = RowOf<DashboardViews['groups']>

/** A group's status, one of its runs, or a notice about its source. */
export type GroupRow = RowOf<DashboardViews['group']>
export type GroupRunRow = Extract<GroupRow, { readonly kind: 'run' }>
export type NoticeRow = Extract<GroupRow, { readonly kind: 'notice' }>

/** A run without a group: its row in a list, and its whole row. */
export type RunsRow = RowOf<DashboardViews['runs']>
type RunRow = RowOf<DashboardViews['run']>
export type RunProgressRow = Extract<RunRow, { readonly kind: 'progress' }>

/** A FindAll run with its last state. */
export type FindAllsRow = RowOf<DashboardViews['findAlls']>

/** The state of a FindAll run, one of its candidates, or a notice about its source. */
export type FindAllRow = RowOf<DashboardViews['findAll']>
export type FindAllRunRow = Extract<FindAllRow, { readonly kind: 'run' }>
export type CandidateRow = Extract<FindAllRow, { readonly kind: 'candidate' }>

/** A monitor: its reports, and whether it can be reached. */
export type MonitorsRow = RowOf<DashboardViews['monitors']>

/** An entry of a monitor's timeline. */
export type MonitorRow = RowOf<DashboardViews['monitor']>

/** An alert. */
export type AlertRow = RowOf<DashboardViews['alerts']>

/** The events recorded in one minute. */
export type ActivityRow = RowOf<DashboardViews['activity']>

/** The searches of a session. */
export type SearchesRow = RowOf<DashboardViews['searches']>
