import type { ReactNode } from 'react'
import { Foreign } from '../parts/foreign.tsx'
import { formats } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { Confidence } from './confidence.tsx'
import { countSources, lowestConfidence } from './evidence.ts'
import type { Evidence } from './evidence.ts'

/** The line of a run or a candidate, which opens to the rest of it. */
export function SummaryLine({
  status,
  title,
  text,
  isError = false,
  evidence,
  recorded,
  children,
}: {
  readonly status: ReactNode
  readonly title: string
  /** The text below the title. Empty for none. */
  readonly text: string
  readonly isError?: boolean
  readonly evidence: readonly Evidence[]
  readonly recorded: number
  /** What stands before the evidence. */
  readonly children?: ReactNode
}): ReactNode {
  const confidence = lowestConfidence(evidence)
  return (
    <summary className="run">
      <Icon name="chevron" />
      <span className="run-status">{status}</span>
      <span className="run-text">
        <span className="run-question">
          <Foreign>{title}</Foreign>
        </span>
        {text !== '' && (
          <span className={isError ? 'run-answer bad-text' : 'run-answer'}>
            <Foreign>{text}</Foreign>
          </span>
        )}
      </span>
      <span className="run-side">
        {children}
        {confidence !== undefined && <Confidence level={confidence} />}
        <SourceCount evidence={evidence} className="muted" />
        <span className="muted">
          <RelativeTime at={recorded} />
        </span>
      </span>
    </summary>
  )
}

/** How many sources the evidence has; nothing for none. */
export function SourceCount({
  evidence,
  className,
}: {
  readonly evidence: readonly Evidence[]
  readonly className?: string
}): ReactNode {
  const sources = countSources(evidence)
  if (sources === 0) return null
  return (
    <span className={className}>
      {formats.number(sources)} {sources === 1 ? 'source' : 'sources'}
    </span>
  )
}
