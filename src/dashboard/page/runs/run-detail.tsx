import type { ReactNode } from 'react'
import { useView } from 'rivulet/react'
import { useDashboard } from '../dashboard.ts'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import { hashOf } from '../route.ts'
import { RunBody } from './run-item.tsx'
import { RunStatusBadge } from './run-status.tsx'
import { RunTrace } from './run-trace.tsx'
import { Foreign } from '../parts/foreign.tsx'

/** A run without a group: its status, input and output with evidence, and its progress while it is running. */
export function RunDetail({ run: id }: { readonly run: string }): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('run', { run: id }))
  const instead = useInstead(snapshot, 'the run')
  const rows = [...snapshot.rows.values()]
  const row = rows.find((each) => each.kind === 'run')
  const progress = rows.find((each) => each.kind === 'progress')
  const isRunning = row === undefined || row.run.is_active
  return (
    <article aria-labelledby="run-title" className="detail">
      <header className="detail-header">
        <p className="eyebrow">Run without a group</p>
        <h1 id="run-title" className="mono" tabIndex={-1}>
          <Foreign>{row?.run.run_id ?? id}</Foreign>
        </h1>
        {(row !== undefined || progress !== undefined) && (
          <div className="detail-facts">
            <RunStatusBadge status={row?.run.status ?? 'running'} />
            <span className="muted">
              changed <RelativeTime at={Math.max(row?.recorded ?? 0, progress?.updated ?? 0)} />
            </span>
          </div>
        )}
      </header>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          {progress !== undefined && isRunning && <RunTrace row={progress} isRunning />}
          {row === undefined && progress === undefined && (
            <Notice icon="clock" title="Nothing is known of this run">
              <p>
                A run without a group appears here when its progress or its end is recorded. A run of a group
                is on the page of <a href="#/groups">its group</a>.
              </p>
            </Notice>
          )}
          {row !== undefined && (
            <section className="panel" aria-labelledby="run-result">
              <h2 id="run-result" className="visually-hidden">
                Result
              </h2>
              <RunBody row={row} href={hashOf({ section: 'runs', run: id })} />
            </section>
          )}
          {progress !== undefined && !isRunning && <RunTrace row={progress} isRunning={false} />}
        </>
      )}
    </article>
  )
}
