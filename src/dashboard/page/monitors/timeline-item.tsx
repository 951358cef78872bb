import { memo, useState } from 'react'
import type { ReactNode } from 'react'
import { Confidence } from '../evidence/confidence.tsx'
import { countSources, lowestConfidence } from '../evidence/evidence.ts'
import { Output } from '../evidence/output.tsx'
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
  if (kind !== 'change') {
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
  const confidence = lowestConfidence(evidence)
  const sources = countSources(evidence)
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
              {sources > 0 && (
                <span>
                  {formats.number(sources)} {sources === 1 ? 'source' : 'sources'}
                </span>
              )}
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
