import { useMemo } from 'react'
import type { ReactNode } from 'react'
import { AlertList, useAlerts } from './alerts/alert-list.tsx'
import { useConnection, useDashboard, useLogStatus } from './dashboard.ts'
import { GroupList } from './groups/group-list.tsx'
import { useView } from 'rivulet/react'
import { MonitorList } from './monitors/monitor-list.tsx'
import { formats } from './parts/format.ts'
import { Notice } from './parts/notice.tsx'
import { useNow } from './parts/time.tsx'
import { useInstead } from './parts/view-rows.tsx'
import { slicesOf } from './plot/activity.ts'
import { ActivityPlots } from './plot/activity-plots.tsx'
import { hashOf } from './route.ts'
import { visible } from './parts/foreign.tsx'

/** Items of each list. */
const LIST = 6

/** Everything at a glance. */
export function Overview(): ReactNode {
  return (
    <div className="overview">
      <h1 className="visually-hidden" tabIndex={-1}>
        Overview
      </h1>
      <Figures />
      <ActivityPlots />
      <div className="thirds">
        <section className="panel" aria-labelledby="overview-groups">
          <PanelHeader id="overview-groups" title="Task groups" href={hashOf({ section: 'groups' })} />
          <GroupList limit={LIST} />
        </section>
        <section className="panel" aria-labelledby="overview-monitors">
          <PanelHeader id="overview-monitors" title="Monitors" href={hashOf({ section: 'monitors' })} />
          <MonitorList limit={LIST} />
        </section>
        <section className="panel" aria-labelledby="overview-alerts">
          <PanelHeader id="overview-alerts" title="Alerts" href={hashOf({ section: 'alerts' })} />
          <OpenAlerts />
        </section>
      </div>
    </div>
  )
}

function PanelHeader({
  id,
  title,
  href,
}: {
  readonly id: string
  readonly title: string
  readonly href: string
}): ReactNode {
  return (
    <header className="panel-header">
      <h2 id={id}>{title}</h2>
      <a href={href}>
        All<span className="visually-hidden"> {title.toLowerCase()}</span>
      </a>
    </header>
  )
}

function OpenAlerts(): ReactNode {
  const { snapshot, alerts } = useAlerts()
  const instead = useInstead(snapshot, 'alerts')
  if (instead !== undefined) return instead
  const open = [...alerts.firing, ...alerts.pending, ...alerts.unknown]
  if (open.length > 0) return <AlertList alerts={open} limit={LIST} />
  return (
    <Notice icon="bell" title="All is quiet">
      <p>No alert is pending or firing.</p>
    </Notice>
  )
}

/** The most important numbers. */
function Figures(): ReactNode {
  return (
    <dl className="figures panel">
      <ActivityFigures />
      <GroupsFigure />
      <MonitorsFigure />
      <AlertsFigure />
      <ReadersFigure />
    </dl>
  )
}

function ActivityFigures(): ReactNode {
  const { live } = useDashboard()
  const { ready, rows } = useView(live.view('activity'))
  const minute = Math.floor(useNow() / 60_000)
  const { total, lag } = useMemo(() => {
    const slices = slicesOf(rows.values(), minute * 60_000, 1, 60)
    return {
      total: slices.reduce((sum, slice) => sum + slice.total, 0),
      lag: slices.findLast((slice) => slice.lag !== undefined)?.lag?.mean,
    }
  }, [rows, minute])
  return (
    <>
      <Figure name="Events in the last hour" value={ready ? formats.number(total) : undefined} />
      <Figure
        name="Lag from event to log"
        value={ready ? (lag === undefined ? '–' : formats.duration(lag)) : undefined}
      />
    </>
  )
}

function GroupsFigure(): ReactNode {
  const { live } = useDashboard()
  const { ready, rows } = useView(live.view('groups'))
  const active = useMemo(
    () => [...rows.values()].filter((row) => row.status?.is_active === true).length,
    [rows],
  )
  return (
    <Figure
      name="Active groups"
      value={ready ? formats.number(active) : undefined}
      side={rows.size > 0 ? `of ${formats.number(rows.size)}` : undefined}
    />
  )
}

function MonitorsFigure(): ReactNode {
  const { live } = useDashboard()
  const { ready, rows } = useView(live.view('monitors'))
  const lost = useMemo(
    () => [...rows.values()].filter(({ state }) => state === 'lost' || state === 'failed').length,
    [rows],
  )
  return (
    <Figure
      name="Monitors"
      value={ready ? formats.number(rows.size) : undefined}
      side={lost > 0 ? `${formats.number(lost)} not reached` : undefined}
      tone={lost > 0 ? 'warn' : undefined}
    />
  )
}

function AlertsFigure(): ReactNode {
  const { snapshot, alerts } = useAlerts()
  const { firing, pending } = alerts
  return (
    <Figure
      name="Alerts firing"
      value={snapshot.ready ? formats.number(firing.length) : undefined}
      side={pending.length > 0 ? `${formats.number(pending.length)} pending` : undefined}
      tone={firing.length > 0 ? 'bad' : undefined}
    />
  )
}

function ReadersFigure(): ReactNode {
  const { status } = useLogStatus()
  const last = status?.log.readers.toSorted((a, b) => b.lag.entries - a.lag.entries)[0]
  return (
    <Figure
      name="Entries behind, at most"
      value={status === undefined ? undefined : formats.number(last?.lag.entries ?? 0)}
      side={last === undefined || last.lag.entries === 0 ? undefined : visible(last.name)}
    />
  )
}

function Figure({
  name,
  value,
  side,
  tone,
}: {
  readonly name: string
  /** Undefined while it is not known. */
  readonly value: string | undefined
  readonly side?: string | undefined
  readonly tone?: 'warn' | 'bad' | undefined
}): ReactNode {
  const isRefused = useConnection().state === 'denied'
  return (
    <div className={tone}>
      <dt>{name}</dt>
      <dd>
        {value ?? (isRefused ? '–' : <span className="bone short" aria-label="not known yet" role="img" />)}
        {side !== undefined && <span className="figure-side"> {side}</span>}
      </dd>
    </div>
  )
}
