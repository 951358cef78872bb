import type { ReactNode } from 'react'
import { words } from '../parts/format.ts'
import { Confidence } from './confidence.tsx'
import { readOutput } from './evidence.ts'
import type { Evidence } from './evidence.ts'
import { SourceQuotes } from './quote.tsx'
import { Text, Value } from './value.tsx'
import { Foreign, visible } from '../parts/foreign.tsx'

/** An output with its evidence, field by field. */
export function Output({
  output,
  previous,
  shownAs,
}: {
  readonly output: unknown
  /** The previous output, if this one is a change. */
  readonly previous?: unknown
  /** The text above the output. An output that says no more is not repeated. */
  readonly shownAs?: string
}): ReactNode {
  const shown = readOutput(output)
  const before = readOutput(previous)
  if (shown.kind === 'none') return <p className="muted">No output.</p>
  const { evidence } = shown
  if (shown.kind === 'text') {
    const was = before.kind === 'text' && before.text !== shown.text ? before.text : undefined
    return (
      <TextOutput text={shown.text} was={was} isShown={shown.text.trim() === shownAs} evidence={evidence} />
    )
  }
  const was = new Map(before.kind === 'fields' ? before.fields : [])
  return <FieldsOutput fields={shown.fields} was={was} evidence={evidence} />
}

function TextOutput({
  text,
  was,
  isShown,
  evidence,
}: {
  readonly text: string
  readonly was: string | undefined
  /** Whether the text stands above it already. */
  readonly isShown: boolean
  readonly evidence: readonly Evidence[]
}): ReactNode {
  return (
    <div className="output">
      {!isShown && (
        <div className="prose">
          <Text text={text} />
        </div>
      )}
      {was !== undefined && (
        <div className="was">
          <span className="was-label">Before</span> <Text text={was} />
        </div>
      )}
      {evidence.map((each, index) => (
        <Basis key={index} evidence={each} />
      ))}
    </div>
  )
}

function FieldsOutput({
  fields,
  was,
  evidence,
}: {
  readonly fields: readonly (readonly [name: string, value: unknown])[]
  readonly was: ReadonlyMap<string, unknown>
  readonly evidence: readonly Evidence[]
}): ReactNode {
  const names = new Set(fields.map(([name]) => name))
  return (
    <dl className="output fields">
      {fields.map(([name, value]) => (
        <div key={name} className="field">
          <dt>
            <Foreign>{words(name)}</Foreign>
          </dt>
          <dd>
            <div className="field-value">
              <Value value={value} />
            </div>
            {was.has(name) && (
              <div className="was">
                <span className="was-label">Before</span> <Value value={was.get(name)} />
              </div>
            )}
            {evidence
              .filter((each) => each.field === name)
              .map((each, index) => (
                <Basis key={index} evidence={each} />
              ))}
          </dd>
        </div>
      ))}
      {/* Of elements of lists, such as `authors.0`, and of fields that the output does not have. */}
      {evidence
        .filter((each) => !names.has(each.field))
        .map((each, index) => (
          <div key={`basis ${index}`} className="field">
            <dt>
              <Foreign>{each.field}</Foreign>
            </dt>
            <dd>
              <Basis evidence={each} />
            </dd>
          </div>
        ))}
    </dl>
  )
}

/** Why a field has its value: confidence, reasoning and quoted sources. */
export function Basis({ evidence }: { readonly evidence: Evidence }): ReactNode {
  return (
    <div className="basis">
      {(evidence.confidence !== undefined || evidence.reasoning !== '') && (
        <div className="reason">
          {evidence.confidence !== undefined && <Confidence level={evidence.confidence} />}
          {evidence.reasoning !== '' && (
            <span className="reasoning">
              <Text text={evidence.reasoning} />
            </span>
          )}
        </div>
      )}
      {evidence.sources.length > 0 && (
        <ul className="sources" aria-label={`Sources of ${visible(words(evidence.field))}`}>
          {evidence.sources.map((source, index) => (
            <li key={index}>
              <SourceQuotes source={source} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}
