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
import { hashOf } from '../route.ts'
import type { GroupRunRow } from '../rows.ts'
import { RunStatusBadge } from './run-status.tsx'

/** A run in a line, which opens to its input, output and evidence. */
export const RunItem = memo(function RunItem({
  row,
  group,
  isSelected,
}: {
  readonly row: GroupRunRow
  readonly group: string
  readonly isSelected: boolean
}): ReactNode {
  const { run, output, recorded } = row
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
  const question = inputText(row) ?? textOf(row.run.metadata)
  const answer = run.error == null ? summaryOf(output) : oneLine(String(run.error.message), 200)
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
              <bdi>{question ?? run.run_id}</bdi>
            </span>
            {answer !== '' && (
              <span className={run.error == null ? 'run-answer' : 'run-answer bad-text'}>
                <bdi>{answer}</bdi>
              </span>
            )}
          </span>
          <span className="run-side">
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
        {isOpen && <RunDetail row={row} group={group} />}
      </details>
    </li>
  )
})

function RunDetail({ row, group }: { readonly row: GroupRunRow; readonly group: string }): ReactNode {
  const { run, output, input, recorded } = row
  const created = instantOf(run.created_at)
  const modified = instantOf(run.modified_at)
  return (
    <div className="row-body">
      {run.error != null && (
        <p className="note bad" dir="auto">
          <strong>Error.</strong> {run.error.message}
        </p>
      )}
      {row.truncated === true && <TruncatedNote />}
      {input !== undefined && isObject(input.input) && (
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
            <a href={hashOf({ section: 'groups', group, run: run.run_id })}>
              <bdi>{run.run_id}</bdi>
            </a>
          </dd>
        </div>
        {run.processor !== '' && (
          <div>
            <dt>Processor</dt>
            <dd>
              <bdi>{run.processor}</bdi>
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
                <bdi>{name}</bdi>
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

/** Says that a row has only a part of its event. */
export function TruncatedNote(): ReactNode {
  return (
    <p className="note">This was too long for the page: texts and lists are cut. The log has all of it.</p>
  )
}

function inputText({ input }: GroupRunRow): string | undefined {
  const value = input?.input
  return typeof value === 'string' ? oneLine(value, 200) : textOf(value)
}

function textOf(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  const texts = Object.values(value).filter((each) => typeof each === 'string' || typeof each === 'number')
  return texts.length === 0 ? undefined : oneLine(texts.join(' · '), 200)
}
