import { memo } from 'react'
import type { ReactNode } from 'react'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { Badge } from '../parts/badge.tsx'
import type { Tone } from '../parts/badge.tsx'
import { Card, CardList } from '../parts/card-list.tsx'
import { formats } from '../parts/format.ts'
import type { IconName } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
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
  limit,
}: {
  readonly selected?: string | undefined
  readonly limit?: number
}): ReactNode {
  const { live } = useDashboard()
  return (
    <CardList
      snapshot={useView(live.view('monitors'))}
      what="monitors"
      compare={compare}
      limit={limit}
      empty={
        <Notice icon="pulse" title="No monitors yet">
          <p>
            They appear when a recorder writes their events into this log:{' '}
            <code>log.record({'{ client, monitors }'})</code>
          </p>
        </Notice>
      }
    >
      {(id, row) => <MonitorCard key={id} id={id} row={row} isSelected={id === selected} />}
    </CardList>
  )
}

function compare(a: MonitorsRow, b: MonitorsRow): number {
  return (b.last ?? 0) - (a.last ?? 0) || b.since - a.since
}

const MonitorCard = memo(function MonitorCard({
  id,
  row,
  isSelected,
}: {
  readonly id: string
  readonly row: MonitorsRow
  readonly isSelected: boolean
}): ReactNode {
  return (
    <Card
      href={hashOf({ section: 'monitors', monitor: id })}
      isSelected={isSelected}
      title={row.monitor}
      isId
      side={<MonitorState state={row.state} />}
    >
      <span className="card-line muted small">
        <span>
          {formats.number(row.events)} {row.events === 1 ? 'change' : 'changes'}
          {row.errors > 0 && <span className="bad-text"> · {formats.number(row.errors)} failed</span>}
          {row.gaps > 0 && (
            <span className="warn-text">
              {' '}
              · {formats.number(row.gaps)} {row.gaps === 1 ? 'gap' : 'gaps'}
            </span>
          )}
        </span>
        {row.last !== null && <RelativeTime at={row.last} />}
      </span>
    </Card>
  )
})
