import { activityView } from '../gateway/views/activity-view.ts'
import { alertsView } from '../gateway/views/alerts-view.ts'
import { findAllView } from '../gateway/views/find-all-view.ts'
import { findAllsView } from '../gateway/views/find-alls-view.ts'
import { groupView } from '../gateway/views/group-view.ts'
import { groupsView } from '../gateway/views/groups-view.ts'
import { monitorView } from '../gateway/views/monitor-view.ts'
import { monitorsView } from '../gateway/views/monitors-view.ts'
import { runView } from '../gateway/views/run-view.ts'
import { runsView } from '../gateway/views/runs-view.ts'
import { searchesView } from '../gateway/views/searches-view.ts'

/** The views of the dashboard. Its page connects with their types. */
export const dashboardViews = {
  groups: groupsView(),
  group: groupView(),
  runs: runsView(),
  run: runView(),
  findAlls: findAllsView(),
  findAll: findAllView(),
  monitors: monitorsView(),
  monitor: monitorView(),
  alerts: alertsView(),
  searches: searchesView(),
  activity: activityView(),
}

/** The types of {@link dashboardViews}, for the page. */
export type DashboardViews = typeof dashboardViews
