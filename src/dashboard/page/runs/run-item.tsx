import { memo, useEffect, useRef, useState } from 'react'
import type { ReactNode } from 'react'
import { isObject, oneLine, readOutput, summaryOf } from '../evidence/evidence.ts'
import { Output } from '../evidence/output.tsx'
import { SummaryLine } from '../evidence/summary-line.tsx'
import { Value } from '../evidence/value.tsx'
import { formats, instantOf } from '../parts/format.ts'
import { ClockTime } from '../parts/time.tsx'
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
  const question = questionOf(row)
  return (
    <li ref={item}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <SummaryLine
          status={<RunStatusBadge status={run.status} />}
          title={question ?? run.run_id}
          text={run.error == null ? summaryOf(output) : oneLine(visible(run.error.message), 200)}
          isError={run.error != null}
          evidence={shown.kind === 'none' ? [] : shown.evidence}
          recorded={recorded}
        >
          {attempt !== undefined && (
            <span className="run-attempt muted">attempt {formats.number(attempt.number)}</span>
          )}
        </SummaryLine>
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
  const { run, output, input } = row
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
      <RunFacts row={row} href={href} />
    </div>
  )
}

function RunFacts({ row, href }: { readonly row: GroupRunRow; readonly href: string }): ReactNode {
  const { run, recorded } = row
  const created = instantOf(run.created_at)
  const modified = instantOf(run.modified_at)
  return (
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
        <Fact name="Processor">
          <Foreign>{run.processor}</Foreign>
        </Fact>
      )}
      {created !== undefined && (
        <Fact name="Created">
          <ClockTime at={created} seconds />
        </Fact>
      )}
      {created !== undefined && modified !== undefined && (
        <Fact name="Took">{formats.duration(modified - created)}</Fact>
      )}
      <Fact name="Recorded">
        <ClockTime at={recorded} seconds />
      </Fact>
      {isObject(run.metadata) &&
        Object.entries(run.metadata).map(([name, value]) => (
          <Fact key={name} name={<Foreign>{name}</Foreign>}>
            <Value value={value} />
          </Fact>
        ))}
    </dl>
  )
}

function Fact({ name, children }: { readonly name: ReactNode; readonly children: ReactNode }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
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
