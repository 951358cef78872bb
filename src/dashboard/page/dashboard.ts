import { createContext, useContext } from 'react'
import type { Live } from '../../live/live.ts'
import type { DashboardViews } from '../views.ts'
import type { FetchDocument } from './evidence/document-dialog.tsx'
import type { LogStatus } from './log-status.ts'

/** What the page needs of its server. */
export interface Dashboard {
  readonly live: Live<DashboardViews>
  readonly fetchDocument: FetchDocument
  readonly logStatus: LogStatus
}

export const DashboardContext = createContext<Dashboard | undefined>(undefined)

/** The page's server. */
export function useDashboard(): Dashboard {
  const dashboard = useContext(DashboardContext)
  if (dashboard === undefined) throw new Error('The component is not within a DashboardContext.')
  return dashboard
}
