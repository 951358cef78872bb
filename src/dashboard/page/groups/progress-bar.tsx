import type { ReactNode } from 'react'
import { formats, words } from '../parts/format.ts'
import type { Progress } from './progress.ts'
import { Foreign } from '../parts/foreign.tsx'

/** How far a group is, as a bar of its runs by status. */
export function ProgressBar({
  progress,
  name,
}: {
  readonly progress: Progress
  readonly name: string
}): ReactNode {
  const { total, ended, counts } = progress
  return (
    <div
      className="progress"
      role="progressbar"
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={Math.max(1, total)}
      aria-valuenow={ended}
      aria-valuetext={`${formats.number(ended)} of ${formats.number(total)} ${total === 1 ? 'run' : 'runs'} ended`}
    >
      {counts.map(([status, count]) => (
        <span key={status} className={`part status-${status}`} style={{ flexGrow: count }} />
      ))}
    </div>
  )
}

/** The runs of a group by status, in words. */
export function StatusCounts({ progress }: { readonly progress: Progress }): ReactNode {
  return (
    <ul className="legend counts">
      {progress.counts.map(([status, count]) => (
        <li key={status} className={`status-${status}`}>
          <span className="count">{formats.number(count)}</span> <Foreign>{words(status)}</Foreign>
        </li>
      ))}
    </ul>
  )
}
