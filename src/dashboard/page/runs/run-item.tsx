import { memo, useEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { Confidence } from '../evidence/confidence.tsx'
import {
  countSources,
  isObject,
  lowestConfidence,
  oneLine,
  readOutput,
  summaryOf,
} from '../evidence/evidence.ts'
import { Output } from '../evidence/output.tsx'
import { Value } from '../evidence/value.tsx'
import { formats, instantOf } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { ClockTime, RelativeTime } from '../parts/time.tsx'
import type { GroupRunRow } from '../rows.ts'
import { RunStatusBadge } from './run-status.tsx'
import { questionOf } from './question.ts'
import { Foreign, visible } from '../parts/foreign.tsx'

/** A run in a line, which opens to its input, output and evidence. */
export const RunItem = memo(function RunItem({
  row,
  href,
  isSelected,
}: {
  readonly row: GroupRunRow
  /** Address of the run's page. */
  readonly href: string
  readonly isSelected: boolean
}): ReactNode {
  const { run, output, recorded, attempt } = row
  const [isOpen, setOpen] = useState(isSelected)
  const item = useRef<HTMLLIElement>(null)
  useEffect(() => {
    if (!isSelected) return
    setOpen(true)
    item.current?.scrollIntoView({ block: 'nearest' })
  }, [isSelected])

  const shown = readOutput(output)
  const evidence = shown.kind === 'none' ? [] : shown.evidence
  const confidence = lowestConfidence(evidence)
  const sources = countSources(evidence)
  const question = questionOf(row)
  const answer = run.error == null ? summaryOf(output) : oneLine(visible(run.error.message), 200)
  return (
    <li ref={item}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="run">
          <Icon name="chevron" />
          <span className="run-status">
            <RunStatusBadge status={run.status} />
          </span>
          <span className="run-text">
            <span className="run-question">
              <Foreign>{question ?? run.run_id}</Foreign>
            </span>
            {answer !== '' && (
              <span className={run.error == null ? 'run-answer' : 'run-answer bad-text'}>
                <Foreign>{answer}</Foreign>
              </span>
            )}
          </span>
          <span className="run-side">
            {attempt !== undefined && (
              <span className="run-attempt muted">attempt {formats.number(attempt.number)}</span>
            )}
            {confidence !== undefined && <Confidence level={confidence} />}
            {sources > 0 && (
              <span className="muted">
                {formats.number(sources)} {sources === 1 ? 'source' : 'sources'}
              </span>
            )}
            <span className="muted">
              <RelativeTime at={recorded} />
            </span>
          </span>
        </summary>
        {isOpen && <RunBody row={row} href={href} question={question} />}
      </details>
    </li>
  )
})

/** All of a run: its error, input, output with evidence, and facts. */
export function RunBody({
  row,
  href,
  question,
}: {
  readonly row: GroupRunRow
  readonly href: string
  /** The part of the input that the page already shows. */
  readonly question?: string | undefined
}): ReactNode {
  const { run, output, input, recorded } = row
  const created = instantOf(run.created_at)
  const modified = instantOf(run.modified_at)
  return (
    <div className="row-body">
      {run.error != null && (
        <p className="note bad" dir="auto">
          <strong>Error.</strong> {visible(run.error.message)}
        </p>
      )}
      {row.truncated === true && <TruncatedNote />}
      {warningsOf(run.warnings).map((message, index) => (
        <p key={index} className="note warn" dir="auto">
          <strong>Warning.</strong> {visible(message)}
        </p>
      ))}
      {input?.input !== undefined && input.input !== question && (
        <section>
          <h3>Input</h3>
          <Value value={input.input} />
        </section>
      )}
      {output !== null && (
        <section>
          <h3>Output</h3>
          <Output output={output} />
        </section>
      )}
      {output === null && run.status === 'completed' && (
        <p className="muted">The events of this run brought no output.</p>
      )}
      <dl className="facts">
        <div>
          <dt>Run</dt>
          <dd className="mono">
            <a href={href}>
              <Foreign>{run.run_id}</Foreign>
            </a>
          </dd>
        </div>
        {run.processor !== '' && (
          <div>
            <dt>Processor</dt>
            <dd>
              <Foreign>{run.processor}</Foreign>
            </dd>
          </div>
        )}
        {created !== undefined && (
          <div>
            <dt>Created</dt>
            <dd>
              <ClockTime at={created} seconds />
            </dd>
          </div>
        )}
        {created !== undefined && modified !== undefined && (
          <div>
            <dt>Took</dt>
            <dd>{formats.duration(modified - created)}</dd>
          </div>
        )}
        <div>
          <dt>Recorded</dt>
          <dd>
            <ClockTime at={recorded} seconds />
          </dd>
        </div>
        {isObject(run.metadata) &&
          Object.entries(run.metadata).map(([name, value]) => (
            <div key={name}>
              <dt>
                <Foreign>{name}</Foreign>
              </dt>
              <dd>
                <Value value={value} />
              </dd>
            </div>
          ))}
      </dl>
    </div>
  )
}

/** The messages of a run's warnings. The service may send anything. */
function warningsOf(warnings: unknown): readonly string[] {
  if (!Array.isArray(warnings)) return []
  return warnings.flatMap((warning: unknown) =>
    isObject(warning) && typeof warning['message'] === 'string' ? [warning['message']] : [],
  )
}

/** Says that a row has only a part of its event. */
export function TruncatedNote(): ReactNode {
  return (
    <p className="note">This was too long for the page: texts and lists are cut. The log has all of it.</p>
  )
}
