import { createContext, useContext } from 'react'
import type { Live, LiveView } from '../../live/live.ts'
import type { RowOf } from '../../protocol/live.ts'
import type { FetchDocument } from './evidence/document-dialog.tsx'
import type { DashboardViews } from './rows.ts'

/** What the page needs of its server. */
export interface Dashboard {
  readonly live: Live<DashboardViews>
  readonly fetchDocument: FetchDocument
}

/** The views that have no params. */
type PlainView = Exclude<keyof DashboardViews, 'group' | 'monitor'>

export const DashboardContext = createContext<Dashboard | undefined>(undefined)

/** The page's server. */
export function useDashboard(): Dashboard {
  const dashboard = useContext(DashboardContext)
  if (dashboard === undefined) throw new Error('The component is not within a DashboardContext.')
  return dashboard
}

/** A view of the log. The same object for the same name. */
export function usePlainView<Name extends PlainView>(name: Name): LiveView<RowOf<DashboardViews[Name]>> {
  const { live } = useDashboard()
  // Its params are none, which a generic name does not show.
  const view: (name: Name) => LiveView<RowOf<DashboardViews[Name]>> = live.view
  return view.call(live, name)
}
