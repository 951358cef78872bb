import { entry } from './basis.ts'
import { type EvidenceSearch, findEvidence, type Findings } from '../evidence/evidence.ts'
import type { Evidence } from '../evidence/judge.ts'
import type { ProcessorResult } from '../processor.ts'
import type { Reporter } from './reporter.ts'
import { isAddress } from '../passages/units.ts'
import { unknownAnswer } from './unknown.ts'

/** Maximum number of changes of a version that are quoted for each sentence of a prose answer. */
const CHANGES_PER_SENTENCE = 4
/** A further sentence scores at least this fraction of the best one. */
const COMPARABLE = 0.75

/** Answers in prose: quotes the sentences that answer, or says that the documents do not say. */
export function extractProse(
  search: EvidenceSearch,
  description: string,
  sentences: number,
  reporter: Reporter,
): ProcessorResult {
  reporter.plan(1, [])
  const { subject } = search
  const found = findEvidence(search, {
    name: '',
    text: `${subject.text} ${description}`.trim(),
    isOnly: false,
  })
  const evidence = quotesOf(found, sentences)
  const [best] = evidence
  const answer = best === undefined ? undefined : { value: best.value ?? best.unit.text, evidence }
  reporter.searched('output', found, answer)
  const content = best === undefined ? unknownAnswer(reasonOf(search)) : evidence.map(quoteOf).join('\n\n')
  return { output: { type: 'text', content, basis: [entry('output', { found, answer })] } }
}

function reasonOf({ subject }: EvidenceSearch): string {
  const [name] = subject.names
  return name === undefined ? 'no document states an answer' : `those about ${name} state no answer`
}

/** The statements to quote, best first; in the order of the changelog for the changes of a version. */
function quotesOf({ evidence, by, asked }: Findings, sentences: number): readonly Evidence[] {
  if (by === 'version') return distinct(evidence).slice(0, sentences * CHANGES_PER_SENTENCE)
  if (by === 'attribute' && asked.attribute?.name !== 'definition') return evidence.slice(0, 1)
  const isWanted = ({ unit }: Evidence) => asked.form === 'address' || !isAddress(unit)
  return chosenQuotes(evidence.filter(isWanted), sentences)
}

/** The best statement, and further ones that are nearly as good. */
export function chosenQuotes<One extends Evidence>(
  evidence: readonly One[],
  sentences: number,
): readonly One[] {
  const statements = distinct(evidence)
  const least = (statements[0]?.score ?? 0) * COMPARABLE
  return statements.filter(({ score }, index) => index === 0 || score >= least).slice(0, sentences)
}

/** The statement, below the heading that it depends on; of a description in a manifest without its key. */
export function quoteOf(evidence: Evidence): string {
  const { unit, comment, continuation } = evidence
  const quote = comment === undefined ? statementOf(evidence) : `${comment}\n${statementOf(evidence)}`
  if (continuation === undefined || quote.includes(continuation)) return quote
  return `${quote}${unit.text.endsWith(':') ? '\n\n' : ' '}${continuation}`
}

function statementOf({ unit, value, passage, opening, headings = [] }: Evidence): string {
  if (passage.kind === 'manifest') {
    return unit.text.startsWith('description: ') ? (value ?? unit.text) : unit.text
  }
  // The version or the day of a change stands in the heading of its section.
  const release = headings.findLast((heading) => value !== undefined && heading.includes(value))
  if (release !== undefined && !unit.text.includes(value ?? '')) return `${release}\n\n${unit.text}`
  if (opening !== undefined) return `${opening}\n\n${unit.text}`
  return DEPENDENT.test(unit.text) && NAME.test(unit.heading) ? `${unit.heading}\n\n${unit.text}` : unit.text
}

/** The beginning of a sentence that leaves out its subject. */
const DEPENDENT =
  /^(?:this|it|its|they|whether|returns?|type|default|same|like|if|an?|the|check|gets?|sets?|[a-z]+s)\b/i
/** A heading that is the name of an option or a function. */
const NAME = /^(?=.*(?:[`.($_]|\p{Ll}\p{Lu}))[`.$\w-]+(?:\([^)]*\))?[`?]*(?:\s*[:=].*)?$/u

function distinct<One extends Evidence>(evidence: readonly One[]): One[] {
  const byText = new Map<string, One>()
  for (const one of evidence) if (!byText.has(one.unit.text)) byText.set(one.unit.text, one)
  return [...byText.values()]
}
