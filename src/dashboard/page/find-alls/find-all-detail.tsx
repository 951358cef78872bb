import { useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useView } from 'rivulet/react'
import { useDashboard } from '../dashboard.ts'
import { isObject } from '../evidence/evidence.ts'
import { SourceNotices } from '../monitors/source-notice.tsx'
import { formats, words } from '../parts/format.ts'
import { useMore } from '../parts/more.tsx'
import { Notice } from '../parts/notice.tsx'
import { StatusFilter } from '../parts/status-filter.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import type { CandidateRow, FindAllRow, FindAllRunRow, NoticeRow } from '../rows.ts'
import { RunStatusBadge } from '../runs/run-status.tsx'
import { CandidateItem } from './candidate-item.tsx'
import { compareCandidates } from './candidate.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

/** A FindAll run: its state, its objective, and its candidates, matches first. */
export function FindAllDetail({ findAll }: { readonly findAll: string }): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('findAll', { findAll }))
  const { head, candidates, notices, statuses } = useMemo(() => partsOf(snapshot.rows), [snapshot.rows])
  const [only, setOnly] = useState<string>()
  const wanted = useMemo(
    () =>
      only === undefined ? candidates : candidates.filter(({ candidate }) => candidate.match_status === only),
    [candidates, only],
  )
  const instead = useInstead(snapshot, 'candidates')

  return (
    <article aria-labelledby="find-all-title" className="detail">
      <header className="detail-header">
        <p className="eyebrow">FindAll run</p>
        <h1 id="find-all-title" className="mono" tabIndex={-1}>
          <Foreign>{findAll}</Foreign>
        </h1>
        {head !== undefined && <FindAllFacts head={head} />}
        <Objective schema={head?.schema ?? null} />
      </header>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          <SourceNotices notices={notices} />
          {candidates.length === 0 ? (
            <Notice
              icon="clock"
              title={snapshot.rows.size === 0 ? 'Nothing is known of this run' : 'No candidates yet'}
            >
              <p>A candidate appears here as soon as it is found, and moves up when it matches.</p>
            </Notice>
          ) : (
            <>
              <StatusFilter
                title="Candidates"
                shown={wanted.length}
                statuses={statuses}
                only={only}
                onChange={setOnly}
              />
              <Candidates key={only ?? ''} candidates={wanted} />
            </>
          )}
        </>
      )}
    </article>
  )
}

function FindAllFacts({ head }: { readonly head: FindAllRunRow }): ReactNode {
  const status = head.run?.status
  return (
    <div className="detail-facts">
      {status !== undefined && (
        <>
          <RunStatusBadge status={status.status} />
          <span>
            {formats.number(status.metrics.matched_candidates_count)} of{' '}
            {formats.number(status.metrics.generated_candidates_count)} candidates matched
          </span>
          {typeof status.termination_reason === 'string' && (
            <span className="muted">{visible(words(status.termination_reason))}</span>
          )}
        </>
      )}
      <span className="muted">
        changed <RelativeTime at={head.updated} />
      </span>
    </div>
  )
}

function Objective({ schema }: { readonly schema: FindAllRunRow['schema'] }): ReactNode {
  // The service may send anything.
  const objective: unknown = isObject(schema) ? schema['objective'] : undefined
  if (typeof objective !== 'string' || objective === '') return null
  return <p dir="auto">{visible(objective)}</p>
}

function Candidates({ candidates }: { readonly candidates: readonly CandidateRow[] }): ReactNode {
  const { shown, more } = useMore(candidates, 50)
  return (
    <>
      <ul className="rows">
        {shown.map((row) => (
          <CandidateItem key={row.candidate.candidate_id} row={row} />
        ))}
      </ul>
      {more}
    </>
  )
}

function partsOf(rows: ReadonlyMap<string, FindAllRow>) {
  const candidates: CandidateRow[] = []
  const notices: (readonly [key: string, notice: NoticeRow])[] = []
  let head: FindAllRunRow | undefined
  for (const [key, row] of rows) {
    if (row.kind === 'candidate') candidates.push(row)
    else if (row.kind === 'notice') notices.push([key, row])
    else head = row
  }
  const sorted = candidates.toSorted(compareCandidates)
  const counts = new Map<string, number>()
  for (const { candidate } of sorted)
    counts.set(candidate.match_status, (counts.get(candidate.match_status) ?? 0) + 1)
  return {
    head,
    candidates: sorted,
    notices: notices.toSorted(([, a], [, b]) => b.recorded - a.recorded),
    statuses: [...counts],
  }
}
