import { memo, useState } from 'react'
import type { ReactNode } from 'react'
import { Confidence } from '../evidence/confidence.tsx'
import { lowestConfidence } from '../evidence/evidence.ts'
import { Output } from '../evidence/output.tsx'
import { SourceCount } from '../evidence/summary-line.tsx'
import { Value } from '../evidence/value.tsx'
import { TruncatedNote } from '../runs/run-item.tsx'
import { formats } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { ClockTime } from '../parts/time.tsx'
import { noticeText } from './source-notice.tsx'
import { dateText } from './timeline.ts'
import type { TimelineEntry } from './timeline.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

/** An entry of the timeline in a line, which opens to its output and citations. */
export const TimelineItem = memo(function TimelineItem({
  entry,
  hasClock,
}: {
  readonly entry: TimelineEntry
  /** Whether the time of finding is said beside it. */
  readonly hasClock: boolean
}): ReactNode {
  const { kind, found, date, title, evidence, row } = entry
  const [isOpen, setOpen] = useState(false)
  const time = (
    <span className="event-time">
      {hasClock ? <ClockTime at={found} /> : <span aria-hidden="true">·</span>}
    </span>
  )
  if (kind !== 'change') return <PlainItem entry={entry} time={time} />
  const confidence = lowestConfidence(evidence)
  return (
    <li className={`event kind-${kind}`}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          {time}
          <span className="event-mark" aria-hidden="true" />
          <span className="event-text">
            <span className="event-title">
              <Foreign>{title === '' ? 'A change without output' : title}</Foreign>
            </span>
            <span className="event-facts">
              {row.type === 'monitor.snapshot' && <span className="tag">changed output</span>}
              {date !== undefined && <span>{dateText(date)}</span>}
              {confidence !== undefined && <Confidence level={confidence} />}
              <SourceCount evidence={evidence} />
            </span>
          </span>
          <Icon name="chevron" />
        </summary>
        {isOpen && (
          <div className="row-body">
            {row.truncated === true && <TruncatedNote />}
            {entry.output === undefined ? (
              <Value value={row.event} />
            ) : (
              <Output output={entry.output} previous={entry.previous} shownAs={title} />
            )}
            <p className="muted small">
              Found {formats.exact(found)}
              {date !== undefined && `, happened ${dateText(date)}`}
            </p>
          </div>
        )}
      </details>
    </li>
  )
})

/** An entry that has nothing to open. */
function PlainItem({
  entry: { kind, title, row },
  time,
}: {
  readonly entry: TimelineEntry
  readonly time: ReactNode
}): ReactNode {
  return (
    <li className={`event plain kind-${kind}`}>
      {time}
      <span className="event-mark" aria-hidden="true" />
      <span className="event-text">
        {kind === 'error' && <strong>Failed. </strong>}
        <span dir="auto">{visible(kind === 'notice' ? noticeText(row.type, row.event) : title)}</span>
      </span>
    </li>
  )
}
