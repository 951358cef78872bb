import { createContext, useContext, useSyncExternalStore } from 'react'
import type { Live, LiveStatus } from 'rivulet/live'
import { useStatus } from 'rivulet/react'
import type { DashboardViews } from '../views.ts'
import type { FetchDocument } from './evidence/document-dialog.tsx'
import type { LogStatus, ShownStatus } from './log-status.ts'

/** The parts of the server that the page uses. */
export interface Dashboard {
  readonly live: Live<DashboardViews>
  readonly fetchDocument: FetchDocument
  readonly logStatus: LogStatus
  /** Whether the server refuses this browser. */
  readonly access: {
    subscribe(listener: () => void): () => void
    isRefused(): boolean
  }
}

export const DashboardContext = createContext<Dashboard | undefined>(undefined)

/** The page's server. */
export function useDashboard(): Dashboard {
  const dashboard = useContext(DashboardContext)
  if (dashboard === undefined) throw new Error('The component is not within a DashboardContext.')
  return dashboard
}

/** The state of the connection, and whether the server refuses the whole browser. */
export function useConnection(): LiveStatus & { readonly isRefused: boolean } {
  const { live, access } = useDashboard()
  const status = useStatus(live)
  const isRefused = useSyncExternalStore(access.subscribe, access.isRefused)
  return { ...status, ...(isRefused && { state: 'denied' }), isRefused }
}

/** The status of the log. */
export function useLogStatus(): ShownStatus {
  const { logStatus } = useDashboard()
  return useSyncExternalStore(logStatus.subscribe, logStatus.getSnapshot)
}
