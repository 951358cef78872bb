import type { ReactNode } from 'react'
import { ListAndDetail } from '../parts/list-and-detail.tsx'
import { MonitorDetail } from './monitor-detail.tsx'
import { MonitorList } from './monitor-list.tsx'

/** All monitors, and one of them. */
export function MonitorsSection({ monitor }: { readonly monitor: string | undefined }): ReactNode {
  return (
    <ListAndDetail
      title="Monitors"
      back="#/monitors"
      list={<MonitorList selected={monitor} />}
      detail={monitor === undefined ? undefined : <MonitorDetail key={monitor} monitor={monitor} />}
      hint="Choose a monitor to see what it has found, when, and where it says so."
    />
  )
}
