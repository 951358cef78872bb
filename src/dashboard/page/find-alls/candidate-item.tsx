import { memo, useState } from 'react'
import type { ReactNode } from 'react'
import { Confidence } from '../evidence/confidence.tsx'
import { countSources, lowestConfidence, oneLine } from '../evidence/evidence.ts'
import { Basis } from '../evidence/output.tsx'
import { Text, Value } from '../evidence/value.tsx'
import { siteOf } from '../evidence/address.ts'
import { Badge } from '../parts/badge.tsx'
import type { Tone } from '../parts/badge.tsx'
import { ExternalLink } from '../parts/external-link.tsx'
import { formats, words } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import type { IconName } from '../parts/icon.tsx'
import { RelativeTime } from '../parts/time.tsx'
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
  const confidence = lowestConfidence(shown.evidence)
  const sources = countSources(shown.evidence)
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
        <summary className="run">
          <Icon name="chevron" />
          <span className="run-status">
            <Badge tone={tone} icon={icon}>
              <Foreign>{words(candidate.match_status)}</Foreign>
            </Badge>
          </span>
          <span className="run-text">
            <span className="run-question">
              <Foreign>{nameOf(candidate)}</Foreign>
            </span>
            {answer !== '' && (
              <span className="run-answer">
                <Foreign>{answer}</Foreign>
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
        {isOpen && (
          <div className="row-body">
            {row.truncated === true && <TruncatedNote />}
            <div className="prose">
              {description !== '' && <Text text={description} />}{' '}
              {typeof candidate.url === 'string' && candidate.url !== '' && (
                <ExternalLink url={candidate.url}>
                  <Foreign>{siteOf(candidate.url)}</Foreign>
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
        )}
      </details>
    </li>
  )
})

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
