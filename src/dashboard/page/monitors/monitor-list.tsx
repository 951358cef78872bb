import { memo, useMemo } from 'react'
import type { ReactNode } from 'react'
import { rowPath } from 'rivulet/live'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { Badge } from '../parts/badge.tsx'
import type { Tone } from '../parts/badge.tsx'
import { formats } from '../parts/format.ts'
import type { IconName } from '../parts/icon.tsx'
import { useMore } from '../parts/more.tsx'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import { hashOf } from '../route.ts'
import type { MonitorsRow } from '../rows.ts'

const LOOKS: Readonly<Record<MonitorsRow['state'], readonly [tone: Tone, icon: IconName, word: string]>> = {
  live: ['good', 'pulse', 'live'],
  lost: ['warn', 'off', 'not reached'],
  failed: ['bad', 'cross', 'given up'],
  cancelled: ['quiet', 'off', 'cancelled'],
}

/** Whether a monitor can be reached. */
export function MonitorState({ state }: { readonly state: MonitorsRow['state'] }): ReactNode {
  const [tone, icon, word] = LOOKS[state] ?? (['quiet', 'question', state] as const)
  return (
    <Badge tone={tone} icon={icon}>
      {word}
    </Badge>
  )
}

/** The monitors of the log, those with the latest changes first. */
export function MonitorList({
  selected,
  limit = 50,
}: {
  readonly selected?: string | undefined
  readonly limit?: number
}): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('monitors'))
  const monitors = useMemo(() => sorted(snapshot.rows), [snapshot.rows])
  const { shown, more } = useMore(monitors, limit)
  const instead = useInstead(snapshot, 'monitors')
  if (instead !== undefined) return instead
  if (monitors.length === 0) {
    return (
      <Notice icon="pulse" title="No monitors yet">
        <p>
          They appear when a recorder writes their events into this log:{' '}
          <code>client.record({'{ monitors, log }'})</code>
        </p>
      </Notice>
    )
  }
  return (
    <>
      <MissedNotice gaps={snapshot.gaps} />
      <ul className="cards">
        {shown.map(([id, row]) => (
          <MonitorItem key={id} id={id} row={row} isSelected={id === selected} />
        ))}
      </ul>
      {more}
    </>
  )
}

function sorted(rows: ReadonlyMap<string, MonitorsRow>): (readonly [id: string, row: MonitorsRow])[] {
  return [...rows]
    .map(([key, row]) => [rowPath(key)[0] ?? row.monitor, row] as const)
    .toSorted(([, a], [, b]) => (b.last ?? 0) - (a.last ?? 0) || b.since - a.since)
}

const MonitorItem = memo(function MonitorItem({
  id,
  row,
  isSelected,
}: {
  readonly id: string
  readonly row: MonitorsRow
  readonly isSelected: boolean
}): ReactNode {
  return (
    <li>
      <a
        className="card"
        href={hashOf({ section: 'monitors', monitor: id })}
        aria-current={isSelected ? 'true' : undefined}
      >
        <span className="card-line">
          <span className="card-title mono">
            <bdi>{row.monitor}</bdi>
          </span>
          <MonitorState state={row.state} />
        </span>
        <span className="card-line muted small">
          <span>
            {formats.number(row.events)} {row.events === 1 ? 'change' : 'changes'}
            {row.errors > 0 && <span className="bad-text"> · {formats.number(row.errors)} failed</span>}
            {row.gaps > 0 && <span className="warn-text"> · {formats.number(row.gaps)} gaps</span>}
          </span>
          {row.last !== null && <RelativeTime at={row.last} />}
        </span>
      </a>
    </li>
  )
})
