import { memo } from 'react'
import type { ReactNode } from 'react'
import { useView } from 'rivulet/react'
import { useDashboard } from '../dashboard.ts'
import { Card, CardList } from '../parts/card-list.tsx'
import { formats } from '../parts/format.ts'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { hashOf } from '../route.ts'
import type { FindAllsRow } from '../rows.ts'
import { RunStatusBadge } from '../runs/run-status.tsx'

/** The FindAll runs of the log: active ones first, then by the last change. */
export function FindAllList({ selected }: { readonly selected: string | undefined }): ReactNode {
  const { live } = useDashboard()
  return (
    <CardList
      snapshot={useView(live.view('findAlls'))}
      what="FindAll runs"
      compare={compare}
      empty={
        <Notice icon="search" title="No FindAll runs yet">
          <p>
            They appear when a recorder writes their events into this log:{' '}
            <code>log.record({'{ client, findAlls }'})</code>
          </p>
        </Notice>
      }
    >
      {(id, row) => <FindAllCard key={id} id={id} row={row} isSelected={id === selected} />}
    </CardList>
  )
}

function compare(a: FindAllsRow, b: FindAllsRow): number {
  return activity(b) - activity(a) || b.updated - a.updated
}

function activity({ run }: FindAllsRow): number {
  return run?.status.is_active === true ? 1 : 0
}

const FindAllCard = memo(function FindAllCard({
  id,
  row,
  isSelected,
}: {
  readonly id: string
  readonly row: FindAllsRow
  readonly isSelected: boolean
}): ReactNode {
  const { findAll, run, objective, updated } = row
  return (
    <Card
      href={hashOf({ section: 'find-alls', findAll: id })}
      isSelected={isSelected}
      title={objective ?? findAll}
      isId={objective === null}
      side={run !== null && <RunStatusBadge status={run.status.status} />}
    >
      <span className="card-line muted small">
        <span className="card-part">
          {run === null ? (
            'no state yet'
          ) : (
            <>
              {formats.number(run.status.metrics.matched_candidates_count)} of{' '}
              {formats.number(run.status.metrics.generated_candidates_count)} matched
            </>
          )}
        </span>
        <RelativeTime at={updated} />
      </span>
    </Card>
  )
})
