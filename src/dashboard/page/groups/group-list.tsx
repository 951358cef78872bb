import { memo, useMemo } from 'react'
import type { ReactNode } from 'react'
import { rowPath } from 'rivulet/live'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { formats } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { useMore } from '../parts/more.tsx'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import { hashOf } from '../route.ts'
import type { GroupsRow } from '../rows.ts'
import { ProgressBar } from './progress-bar.tsx'
import { progressOf } from './progress.ts'

/** The task groups of the log: active ones first, then by the last change. */
export function GroupList({
  selected,
  limit = 50,
}: {
  readonly selected?: string | undefined
  readonly limit?: number
}): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('groups'))
  const groups = useMemo(() => sorted(snapshot.rows), [snapshot.rows])
  const { shown, more } = useMore(groups, limit)
  const instead = useInstead(snapshot, 'task groups')
  if (instead !== undefined) return instead
  if (groups.length === 0) {
    return (
      <Notice icon="run" title="No task groups yet">
        <p>
          They appear when a recorder writes their events into this log:{' '}
          <code>client.record({'{ taskGroups, log }'})</code>
        </p>
      </Notice>
    )
  }
  return (
    <>
      <MissedNotice gaps={snapshot.gaps} />
      <ul className="cards">
        {shown.map(([id, row]) => (
          <GroupItem key={id} id={id} row={row} isSelected={id === selected} />
        ))}
      </ul>
      {more}
    </>
  )
}

function sorted(rows: ReadonlyMap<string, GroupsRow>): (readonly [id: string, row: GroupsRow])[] {
  return [...rows]
    .map(([key, row]) => [rowPath(key)[0] ?? row.group, row] as const)
    .toSorted(([, a], [, b]) => activity(b) - activity(a) || b.updated - a.updated)
}

function activity({ status }: GroupsRow): number {
  return status?.is_active === true ? 1 : 0
}

const GroupItem = memo(function GroupItem({
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
    <li>
      <a
        className="card"
        href={hashOf({ section: 'groups', group: id })}
        aria-current={isSelected ? 'true' : undefined}
      >
        <span className="card-line">
          <span className="card-title mono">
            <bdi>{row.group}</bdi>
          </span>
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
        </span>
        {progress !== undefined && (
          <>
            <ProgressBar progress={progress} name={`Runs of ${row.group}`} />
            <span className="card-line muted small">
              <span>
                {formats.number(progress.ended)} of {formats.number(progress.total)} runs ended
              </span>
              {failed !== undefined && <span className="bad-text">{formats.number(failed)} failed</span>}
            </span>
          </>
        )}
      </a>
    </li>
  )
})
