import { memo, useState } from 'react'
import type { ReactNode } from 'react'
import { oneLine } from '../evidence/evidence.ts'
import { Basis } from '../evidence/output.tsx'
import { SummaryLine } from '../evidence/summary-line.tsx'
import { Text, Value } from '../evidence/value.tsx'
import { siteOf } from '../evidence/address.ts'
import { Badge } from '../parts/badge.tsx'
import type { Tone } from '../parts/badge.tsx'
import { ExternalLink } from '../parts/external-link.tsx'
import { formats, words } from '../parts/format.ts'
import type { IconName } from '../parts/icon.tsx'
import type { CandidateRow } from '../rows.ts'
import { TruncatedNote } from '../runs/run-item.tsx'
import { readCandidate } from './candidate.ts'
import type { Condition, Finding } from './candidate.ts'
import { Foreign } from '../parts/foreign.tsx'

const LOOKS: Readonly<Record<string, readonly [tone: Tone, icon: IconName]>> = {
  matched: ['good', 'check'],
  generated: ['busy', 'run'],
  unmatched: ['quiet', 'cross'],
  discarded: ['quiet', 'off'],
}

/** A candidate in a line, which opens to its conditions, enrichments and evidence. */
export const CandidateItem = memo(function CandidateItem({ row }: { readonly row: CandidateRow }): ReactNode {
  const { candidate, recorded } = row
  const [isOpen, setOpen] = useState(false)
  const shown = readCandidate(candidate)
  const met = shown.conditions.filter(({ isMet }) => isMet === true).length
  const [tone, icon] = LOOKS[candidate.match_status] ?? (['quiet', 'question'] as const)
  const description = typeof candidate.description === 'string' ? candidate.description : ''
  const answer = [
    ...(shown.conditions.length === 0
      ? []
      : [`${formats.number(met)} of ${formats.number(shown.conditions.length)} conditions met`]),
    ...(description === '' ? [] : [oneLine(description, 200)]),
  ].join(' · ')
  return (
    <li>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <SummaryLine
          status={
            <Badge tone={tone} icon={icon}>
              <Foreign>{words(candidate.match_status)}</Foreign>
            </Badge>
          }
          title={nameOf(candidate)}
          text={answer}
          evidence={shown.evidence}
          recorded={recorded}
        />
        {isOpen && <CandidateBody row={row} description={description} shown={shown} />}
      </details>
    </li>
  )
})

function CandidateBody({
  row,
  description,
  shown,
}: {
  readonly row: CandidateRow
  readonly description: string
  readonly shown: ReturnType<typeof readCandidate>
}): ReactNode {
  const { url } = row.candidate
  return (
    <div className="row-body">
      {row.truncated === true && <TruncatedNote />}
      <div className="prose">
        {description !== '' && <Text text={description} />}{' '}
        {typeof url === 'string' && url !== '' && (
          <ExternalLink url={url}>
            <Foreign>{siteOf(url)}</Foreign>
          </ExternalLink>
        )}
      </div>
      {shown.conditions.length > 0 && (
        <section>
          <h3>Conditions</h3>
          <Findings findings={shown.conditions} />
        </section>
      )}
      {shown.enrichments.length > 0 && (
        <section>
          <h3>Enrichments</h3>
          <Findings findings={shown.enrichments} />
        </section>
      )}
      {shown.others.length > 0 && (
        <section>
          <h3>Other evidence</h3>
          {shown.others.map((each, index) => (
            <Basis key={index} evidence={each} />
          ))}
        </section>
      )}
    </div>
  )
}

/** The service may send anything. */
function nameOf({ name, candidate_id }: { readonly name: unknown; readonly candidate_id: string }): string {
  return typeof name === 'string' && name.trim() !== '' ? name : candidate_id
}

function Findings({ findings }: { readonly findings: readonly (Finding | Condition)[] }): ReactNode {
  return (
    <dl className="output fields">
      {findings.map((finding) => (
        <div key={finding.name} className="field">
          <dt>
            <Foreign>{words(finding.name)}</Foreign>
          </dt>
          <dd>
            {'isMet' in finding && <Met isMet={finding.isMet} />}
            <div className="field-value">
              <Value value={finding.value} />
            </div>
            {finding.evidence.map((each, index) => (
              <Basis key={index} evidence={each} />
            ))}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Met({ isMet }: { readonly isMet: boolean | undefined }): ReactNode {
  if (isMet === undefined) {
    return (
      <Badge tone="quiet" icon="clock">
        not evaluated
      </Badge>
    )
  }
  return isMet ? (
    <Badge tone="good" icon="check">
      met
    </Badge>
  ) : (
    <Badge tone="bad" icon="cross">
      not met
    </Badge>
  )
}
