import type { ReactNode } from 'react'
import { formats, instantOf, words } from '../parts/format.ts'
import { ClockTime } from '../parts/time.tsx'
import type { RunProgressRow } from '../rows.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

/** How far a run is, and the messages of its trace, the last one first. Closed once the run has ended. */
export function RunTrace({
  row,
  isRunning,
}: {
  readonly row: RunProgressRow
  readonly isRunning: boolean
}): ReactNode {
  const { meter, sourcesRead, sourcesConsidered, messages, earlier } = row
  return (
    <details className="panel trace" open={isRunning}>
      <summary className="panel-header">
        <h2>Progress</h2>
        <span className="muted small">
          {[
            ...(meter === null ? [] : [formats.percent(meter / 100)]),
            ...(sourcesRead === null ? [] : [sourcesText(sourcesRead, sourcesConsidered)]),
          ].join(', ')}
        </span>
      </summary>
      {meter !== null && <Meter value={meter} />}
      {messages.length > 0 && (
        <ol className="trace-messages">
          {messages.toReversed().map(({ type, message, time }, index) => (
            <li key={earlier + messages.length - index}>
              <TraceTime time={time} />
              <span className="trace-kind">
                <Foreign>{words(type.slice(type.lastIndexOf('.') + 1))}</Foreign>
              </span>
              <span className="trace-text" dir="auto">
                {visible(message)}
              </span>
            </li>
          ))}
        </ol>
      )}
      {earlier > 0 && (
        <p className="trace-earlier muted small">
          {formats.number(earlier)} earlier messages are only in the log.
        </p>
      )}
    </details>
  )
}

function sourcesText(read: number, considered: number | null): string {
  const all = considered === null ? '' : ` of ${formats.number(considered)}`
  return `${formats.number(read)}${all} sources read`
}

/** How far a run is, as a bar. */
export function Meter({ value }: { readonly value: number }): ReactNode {
  return (
    <div
      className="progress"
      role="progressbar"
      aria-label="Progress of the run"
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(value)}
    >
      <span className="part status-running" style={{ flexGrow: value }} />
      <span style={{ flexGrow: 100 - value }} />
    </div>
  )
}

function TraceTime({ time }: { readonly time: string | null }): ReactNode {
  const at = instantOf(time)
  return <span className="muted small">{at !== undefined && <ClockTime at={at} seconds />}</span>
}
