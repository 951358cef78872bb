import type { RunInput, TaskGroupStatus, TaskOutput, TaskRun } from '../../protocol/index.ts'
import type { ViewShape } from '../../protocol/live.ts'

export interface GroupsRow {
  readonly group: string
  readonly status: TaskGroupStatus | null
  readonly updated: number
}
export interface GroupRunRow {
  readonly kind: 'run'
  readonly run: TaskRun
  readonly output: TaskOutput | null
  readonly input?: RunInput
  readonly truncated?: true
  readonly recorded: number
}
export interface NoticeRow {
  readonly kind: 'notice'
  readonly type: string
  readonly event: unknown
  readonly recorded: number
  readonly truncated?: true
}
export type GroupRow =
  | { readonly kind: 'group'; readonly status: TaskGroupStatus | null; readonly updated: number }
  | GroupRunRow
  | NoticeRow
export interface MonitorsRow {
  readonly monitor: string
  readonly events: number
  readonly completions: number
  readonly errors: number
  readonly gaps: number
  readonly last: number | null
  readonly state: 'live' | 'lost' | 'failed' | 'cancelled'
  readonly since: number
}
export interface MonitorRow {
  readonly type: string
  readonly event: unknown
  readonly time: string | null
  readonly recorded: number
  readonly truncated?: true
}
export interface AlertRow {
  readonly state: 'firing' | 'resolved' | 'unknown'
  readonly alert: string
  readonly group: string | null
  readonly key: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly value: number | string | null
  readonly since: string
  readonly resolved: string | null
  readonly unknown: string | null
  readonly changed: number
  readonly truncated?: true
}
export interface PendingRow {
  readonly alert: string
  readonly state: 'pending' | 'firing' | 'unknown'
  readonly key: Readonly<Record<string, string>>
  readonly since: string | null
}
export interface ActivityRow {
  readonly minute: number
  readonly events: number
  readonly types: Readonly<Record<string, number>>
  readonly lag: { readonly count: number; readonly sum: number; readonly max: number }
}
export interface ReaderRow {
  readonly kind: 'consumer' | 'process'
  readonly name: string
  readonly lag: { readonly entries: number; readonly seconds: number }
  readonly deadLetters: number
  readonly isPaused: boolean
  readonly owner: string | null
}
export interface SearchesRow {
  readonly session: string
  readonly searches: readonly {
    readonly request: unknown
    readonly results: readonly unknown[]
    readonly recorded: number
  }[]
}
export type DashboardViews = {
  readonly groups: ViewShape<GroupsRow>
  readonly group: ViewShape<GroupRow, 'group'>
  readonly monitors: ViewShape<MonitorsRow>
  readonly monitor: ViewShape<MonitorRow, 'monitor'>
  readonly alerts: ViewShape<AlertRow>
  readonly pending: ViewShape<PendingRow>
  readonly searches: ViewShape<SearchesRow>
  readonly activity: ViewShape<ActivityRow>
  readonly readers: ViewShape<ReaderRow>
}
