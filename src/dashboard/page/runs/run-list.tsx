import { memo } from 'react'
import type { ReactNode } from 'react'
import { useView } from 'rivulet/react'
import { useDashboard } from '../dashboard.ts'
import { Card, CardList } from '../parts/card-list.tsx'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { hashOf } from '../route.ts'
import type { RunsRow } from '../rows.ts'
import { questionOf } from './question.ts'
import { RunStatusBadge } from './run-status.tsx'
import { Meter } from './run-trace.tsx'
import { Foreign } from '../parts/foreign.tsx'

/** The runs without a group, the last ones first. */
export function RunList({ selected }: { readonly selected: string | undefined }): ReactNode {
  const { live } = useDashboard()
  return (
    <CardList
      snapshot={useView(live.view('runs'))}
      what="runs"
      compare={compare}
      empty={
        <Notice icon="check" title="No runs of their own yet">
          <p>
            Runs that were created without a group appear here when their progress or their end is recorded.
            Runs of a group are on the page of <a href="#/groups">their group</a>.
          </p>
        </Notice>
      }
    >
      {(id, row) => <RunCard key={id} id={id} row={row} isSelected={id === selected} />}
    </CardList>
  )
}

function compare(a: RunsRow, b: RunsRow): number {
  return b.updated - a.updated
}

const RunCard = memo(function RunCard({
  id,
  row,
  isSelected,
}: {
  readonly id: string
  readonly row: RunsRow
  readonly isSelected: boolean
}): ReactNode {
  const { run, input, progress, updated } = row
  const question = run === null ? undefined : questionOf({ run, ...(input !== undefined && { input }) })
  return (
    <Card
      href={hashOf({ section: 'runs', run: id })}
      isSelected={isSelected}
      title={question ?? row.id}
      isId={question === undefined}
      side={<RunStatusBadge status={run?.status ?? 'running'} />}
    >
      <span className="card-line muted small">
        <span className="card-part">
          <Foreign className={question === undefined ? undefined : 'mono'}>
            {question === undefined ? (run?.processor ?? progress?.last?.message ?? '') : row.id}
          </Foreign>
        </span>
        <RelativeTime at={updated} />
      </span>
      {progress?.meter != null && <Meter value={progress.meter} />}
    </Card>
  )
})
