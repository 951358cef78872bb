import type { ReactNode } from 'react'
import { useView } from 'rivulet/react'
import { useDashboard } from '../dashboard.ts'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import { hashOf } from '../route.ts'
import { RunBody } from './run-item.tsx'
import { RunStatusBadge } from './run-status.tsx'

/** A run without a group: its status, input and output with evidence. */
export function RunDetail({ run: id }: { readonly run: string }): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('run', { run: id }))
  const instead = useInstead(snapshot, 'the run')
  const row = [...snapshot.rows.values()].find(({ kind }) => kind === 'run')
  return (
    <article aria-labelledby="run-title" className="detail">
      <header className="detail-header">
        <p className="eyebrow">Run without a group</p>
        <h1 id="run-title" className="mono" tabIndex={-1}>
          <bdi>{row?.run.run_id ?? id}</bdi>
        </h1>
        {row !== undefined && (
          <div className="detail-facts">
            <RunStatusBadge status={row.run.status} />
            <span className="muted">
              changed <RelativeTime at={row.recorded} />
            </span>
          </div>
        )}
      </header>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          {row === undefined ? (
            <Notice icon="clock" title="Nothing is known of this run">
              <p>
                A run without a group appears here when it ends. A run of a group is on the page of{' '}
                <a href="#/groups">its group</a>.
              </p>
            </Notice>
          ) : (
            <section className="panel" aria-labelledby="run-result">
              <h2 id="run-result" className="visually-hidden">
                Result
              </h2>
              <RunBody row={row} href={hashOf({ section: 'runs', run: id })} />
            </section>
          )}
        </>
      )}
    </article>
  )
}
