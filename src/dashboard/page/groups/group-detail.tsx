import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { Badge } from '../parts/badge.tsx'
import { formats } from '../parts/format.ts'
import { useMore } from '../parts/more.tsx'
import { Notice } from '../parts/notice.tsx'
import { StatusFilter } from '../parts/status-filter.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import type { GroupRow, GroupRunRow, NoticeRow } from '../rows.ts'
import { SourceNotices } from '../monitors/source-notice.tsx'
import { attemptIds } from './attempts.ts'
import { AddRuns } from './add-runs.tsx'
import { ProgressBar, StatusCounts } from './progress-bar.tsx'
import { progressOf } from './progress.ts'
import { RunItem } from '../runs/run-item.tsx'
import { hashOf } from '../route.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

type GroupHead = Extract<GroupRow, { kind: 'group' }>

/** A task group: its progress and its runs, the last ones first. */
export function GroupDetail({
  group,
  run,
}: {
  readonly group: string
  readonly run: string | undefined
}): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('group', { group }))
  const { status, updated, runs, notices, statuses } = useMemo(() => partsOf(snapshot.rows), [snapshot.rows])
  const [only, setOnly] = useState<string>()
  const wanted = useMemo(
    () => (only === undefined ? runs : runs.filter((each) => each.run.status === only)),
    [runs, only],
  )
  const instead = useInstead(snapshot, 'runs')

  return (
    <article aria-labelledby="group-title" className="detail">
      <header className="detail-header">
        <p className="eyebrow">Task group</p>
        <h1 id="group-title" className="mono" tabIndex={-1}>
          <Foreign>{group}</Foreign>
        </h1>
        <GroupProgress status={status} updated={updated} />
      </header>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          <SourceNotices notices={notices} />
          <AddRuns group={group} runs={runs} />
          {runs.length === 0 ? (
            <Notice
              icon="clock"
              title={snapshot.rows.size === 0 ? 'Nothing is known of this group' : 'No run has ended yet'}
            >
              <p>A run appears here when it completes, fails or is cancelled.</p>
            </Notice>
          ) : (
            <>
              <StatusFilter
                title="Runs"
                shown={wanted.length}
                statuses={statuses}
                only={only}
                onChange={setOnly}
              />
              <RunList key={only ?? ''} runs={wanted} group={group} selected={run} />
            </>
          )}
        </>
      )}
    </article>
  )
}

function GroupProgress({
  status,
  updated,
}: {
  readonly status: GroupHead['status'] | undefined
  readonly updated: number | undefined
}): ReactNode {
  const progress = progressOf(status)
  if (progress === undefined) return null
  return (
    <>
      <div className="detail-facts">
        {progress.isActive ? (
          <Badge tone="busy" icon="run">
            active
          </Badge>
        ) : (
          <Badge tone="quiet" icon="check">
            ended
          </Badge>
        )}
        <span>
          {formats.percent(progress.total === 0 ? 0 : progress.ended / progress.total)} of{' '}
          {formats.number(progress.total)} {progress.total === 1 ? 'run' : 'runs'} ended
        </span>
        {updated !== undefined && (
          <span className="muted">
            changed <RelativeTime at={updated} />
          </span>
        )}
      </div>
      <ProgressBar progress={progress} name="Runs that have ended" />
      <StatusCounts progress={progress} />
      {typeof status?.status_message === 'string' && status.status_message !== '' && (
        <p className="note" dir="auto">
          {visible(status.status_message)}
        </p>
      )}
    </>
  )
}

function RunList({
  runs,
  group,
  selected,
}: {
  readonly runs: readonly GroupRunRow[]
  readonly group: string
  readonly selected: string | undefined
}): ReactNode {
  const isSelected = (row: GroupRunRow) => selected !== undefined && attemptIds(row).includes(selected)
  // The run of the address is there, however far down the list it is.
  const first = useMemo(() => {
    const found = runs.find(isSelected)
    return found === undefined || runs.indexOf(found) < 50
      ? runs
      : [found, ...runs.filter((each) => each !== found)]
  }, [runs, selected])
  const { shown, more } = useMore(first, 50)
  return (
    <>
      <ul className="rows">
        {shown.map((row) => (
          <RunItem
            key={attemptIds(row)[0]}
            row={row}
            href={hashOf({ section: 'groups', group, run: row.run.run_id })}
            isSelected={isSelected(row)}
          />
        ))}
      </ul>
      {more}
    </>
  )
}

function partsOf(rows: ReadonlyMap<string, GroupRow>) {
  const runs: GroupRunRow[] = []
  const notices: (readonly [key: string, notice: NoticeRow])[] = []
  let head: GroupHead | undefined
  for (const [key, row] of rows) {
    if (row.kind === 'run') runs.push(row)
    else if (row.kind === 'notice') notices.push([key, row])
    else head = row
  }
  const counts = new Map<string, number>()
  for (const { run } of runs) counts.set(run.status, (counts.get(run.status) ?? 0) + 1)
  return {
    status: head?.status,
    updated: head?.updated,
    runs: runs.toSorted((a, b) => b.recorded - a.recorded),
    notices: notices.toSorted(([, a], [, b]) => b.recorded - a.recorded),
    statuses: [...counts],
  }
}
