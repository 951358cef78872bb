import { memo } from 'react'
import type { ReactNode } from 'react'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { Card, CardList } from '../parts/card-list.tsx'
import { formats } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { hashOf } from '../route.ts'
import type { GroupsRow } from '../rows.ts'
import { ProgressBar } from './progress-bar.tsx'
import { progressOf } from './progress.ts'
import { visible } from '../parts/foreign.tsx'

/** The task groups of the log: active ones first, then by the last change. */
export function GroupList({
  selected,
  limit,
}: {
  readonly selected?: string | undefined
  readonly limit?: number
}): ReactNode {
  const { live } = useDashboard()
  return (
    <CardList
      snapshot={useView(live.view('groups'))}
      what="task groups"
      compare={compare}
      limit={limit}
      empty={
        <Notice icon="run" title="No task groups yet">
          <p>
            They appear when a recorder writes their events into this log:{' '}
            <code>log.record({'{ client, taskGroups }'})</code>
          </p>
        </Notice>
      }
    >
      {(id, row) => <GroupCard key={id} id={id} row={row} isSelected={id === selected} />}
    </CardList>
  )
}

function compare(a: GroupsRow, b: GroupsRow): number {
  return activity(b) - activity(a) || b.updated - a.updated
}

function activity({ status }: GroupsRow): number {
  return status?.is_active === true ? 1 : 0
}

const GroupCard = memo(function GroupCard({
  id,
  row,
  isSelected,
}: {
  readonly id: string
  readonly row: GroupsRow
  readonly isSelected: boolean
}): ReactNode {
  const progress = progressOf(row.status)
  const failed = progress?.counts.find(([status]) => status === 'failed')?.[1]
  return (
    <Card
      href={hashOf({ section: 'groups', group: id })}
      isSelected={isSelected}
      title={row.group}
      isId
      side={
        <span className="card-side">
          {progress?.isActive === true ? (
            <span className="busy-word">
              <Icon name="run" />
              active
            </span>
          ) : (
            <RelativeTime at={row.updated} />
          )}
        </span>
      }
    >
      {progress !== undefined && (
        <>
          <ProgressBar progress={progress} name={`Runs of ${visible(row.group)}`} />
          <span className="card-line muted small">
            <span>
              {formats.number(progress.ended)} of {formats.number(progress.total)}{' '}
              {progress.total === 1 ? 'run' : 'runs'} ended
            </span>
            {failed !== undefined && <span className="bad-text">{formats.number(failed)} failed</span>}
          </span>
        </>
      )}
    </Card>
  )
})
