import { setImmediate } from 'node:timers/promises'
import type { Citation, FieldBasis } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { RunInput, TaskSpec } from '../../protocol/task.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { type Answer, emptyAnswer, isMereAddress, takeAnswer } from './answer.ts'
import { type EvidenceSearch, type Findings, findEvidence } from './evidence.ts'
import type { Evidence } from './judge.ts'
import type { Processor, RunResult, RunTask } from './processor.ts'
import { type FieldSpec, readSchema } from './schema.ts'
import { readSubject } from './subject.ts'
import { splitName } from './vocabulary.ts'

/** The effort of each processor: passages that are read for a field, and sentences of a prose answer. */
const EFFORTS = {
  lite: { depth: 12, sentences: 1 },
  base: { depth: 32, sentences: 2 },
  core: { depth: 96, sentences: 4 },
} as const

/**
 * Executes runs by extraction: searches the corpus for each output field, and answers with cited, verbatim text. It invents
 * nothing: a field that it does not find is null, or empty if the schema does not allow null, with low confidence and no
 * citation. It is deterministic.
 *
 * The input names the subject of the run. Documents with that title, file or folder name are read first; an answer from
 * another document must contain the name. The processors `lite`, `base` and `core` differ in how much they read; any other
 * name means `base`.
 */
export function extractiveProcessor(corpus: Corpus): Processor {
  return {
    async run({ input }: RunTask, signal: AbortSignal): Promise<RunResult> {
      signal.throwIfAborted()
      const { source_policy: sourcePolicy } = input
      const { depth, sentences } = effortOf(input)
      const subject = readSubject(corpus, input.input, sourcePolicy)
      const search = { corpus, subject, sourcePolicy, depth }
      const schema = input.task_spec?.output_schema
      if (typeof schema === 'object' && schema.type === 'json') {
        return withWarnings(await extractFields(search, schema.json_schema, signal), ignoredInputs(input))
      }
      await pause(signal)
      return withWarnings(extractProse(search, descriptionOf(schema), sentences), ignoredInputs(input))
    },
  }
}

function withWarnings({ output, warnings = [] }: RunResult, more: readonly Warning[]): RunResult {
  const all = [...warnings, ...more]
  return { output, ...(all.length > 0 && { warnings: all }) }
}

/** A warning for each parameter that extraction ignores. */
function ignoredInputs(input: RunInput): Warning[] {
  const given: readonly [parameter: string, value: unknown][] = [
    ['previous_interaction_id', input.previous_interaction_id],
    ['memory_scope_key', input.memory_scope_key],
    ['mcp_servers', input.mcp_servers],
    ['advanced_settings.location', input.advanced_settings?.location],
  ]
  return given
    .filter(([, value]) => value !== undefined)
    .map(([parameter]) => ({
      type: 'input_validation_warning',
      message: `${parameter} is ignored: the built-in processor reads the documents only`,
      detail: { parameter },
    }))
}

function effortOf({ processor }: RunInput): (typeof EFFORTS)[keyof typeof EFFORTS] {
  return processor === 'lite' || processor === 'core' ? EFFORTS[processor] : EFFORTS.base
}

function descriptionOf(schema: TaskSpec['output_schema']): string {
  if (typeof schema === 'string') return schema
  return schema?.type === 'text' ? (schema.description ?? '') : ''
}

/** Yields to the event loop between two fields, and throws when the run is aborted. */
async function pause(signal: AbortSignal): Promise<void> {
  await setImmediate()
  signal.throwIfAborted()
}

async function extractFields(
  search: EvidenceSearch,
  jsonSchema: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<RunResult> {
  const { fields, warnings } = readSchema(jsonSchema)
  const content: [string, unknown][] = []
  const basis: FieldBasis[] = []
  const missing: Finding[] = []
  for (const spec of fields) {
    const { value, findings } = await extractField(search, spec, [], signal)
    if (value !== undefined) content.push([spec.name, value])
    basis.push(basisOf(spec, findings))
    missing.push(...findings.filter(isForbiddenNull))
  }
  return {
    output: { type: 'json', content: Object.fromEntries(content), basis },
    warnings: [...warnings, ...missing.map(({ path }) => missingWarning(path))],
  }
}

/** Whether a field is null although its schema does not allow it. */
function isForbiddenNull({ spec, answer }: Finding): boolean {
  return answer === undefined && !spec.nullable && emptyAnswer(spec) === null
}

function missingWarning(field: string): Warning {
  const message = `${field} is null, which its schema does not allow: it is required, and nothing was found for it`
  return { type: 'spec_validation_warning', message, detail: { field } }
}

interface Extraction {
  readonly value: unknown
  /** One for each field that is not an object. */
  readonly findings: readonly Finding[]
}

/** The evidence for a field, and the answer taken from it. */
interface Searched {
  readonly found: Findings
  readonly answer: Answer | undefined
}

interface Finding extends Searched {
  readonly spec: FieldSpec
  /** Its name, with those of its parent objects. */
  readonly path: string
}

async function extractField(
  search: EvidenceSearch,
  spec: FieldSpec,
  parents: readonly string[],
  signal: AbortSignal,
): Promise<Extraction> {
  const names = [...parents, spec.name]
  if (spec.kind === 'object') {
    const entries: [string, unknown][] = []
    const findings: Finding[] = []
    for (const property of spec.properties) {
      const inner = await extractField(search, property, names, signal)
      if (inner.value !== undefined) entries.push([property.name, inner.value])
      findings.push(...inner.findings)
    }
    return { value: Object.fromEntries(entries), findings }
  }
  await pause(signal)
  const found = findEvidence(search, `${names.map(splitName).join(' ')} ${spec.description}`)
  const answer = takeAnswer(spec, found.evidence, found.question)
  return {
    value: answer === undefined ? emptyAnswer(spec) : answer.value,
    findings: [{ spec, path: names.join('.'), found, answer }],
  }
}

function extractProse(search: EvidenceSearch, description: string, sentences: number): RunResult {
  const found = findEvidence(search, `${search.subject.text} ${description}`)
  const statements = found.evidence.filter(({ unit }) => !isMereAddress(unit, found.question))
  const evidence = distinct(statements).slice(0, sentences)
  const answer = evidence.length === 0 ? undefined : { value: '', evidence }
  const basis = [
    {
      field: 'output',
      reasoning: reasoningOf('output', { found, answer }),
      citations: citationsOf(evidence),
      confidence: confidenceOf({ found, answer }),
    },
  ]
  return { output: { type: 'text', content: evidence.map(({ unit }) => unit.text).join('\n\n'), basis } }
}

/** Evidence with distinct text that is nearly as good as the best. */
function distinct(evidence: readonly Evidence[]): Evidence[] {
  const byText = new Map<string, Evidence>()
  for (const candidate of evidence) {
    if (candidate.score < (evidence[0]?.score ?? 0) * 0.6) break
    if (!byText.has(candidate.unit.text)) byText.set(candidate.unit.text, candidate)
  }
  return [...byText.values()]
}

function basisOf(spec: FieldSpec, findings: readonly Finding[]): FieldBasis {
  const levels = new Set(findings.map(confidenceOf))
  return {
    field: spec.name,
    reasoning:
      findings.map((finding) => reasoningOf(finding.spec.name, finding)).join(' ') ||
      'The schema has no properties to search for.',
    citations: citationsOf(findings.flatMap(({ answer }) => answer?.evidence ?? [])),
    // The confidence of an object is the lowest of its fields.
    confidence: CONFIDENCES.find((level) => levels.has(level)) ?? 'low',
  }
}

const CONFIDENCES = ['low', 'medium', 'high'] as const

/** One citation per document, with every passage that an answer was taken from. */
function citationsOf(evidence: readonly Evidence[]): Citation[] {
  const citations = new Map<string, { title: string; excerpts: Set<string> }>()
  for (const { passage } of evidence) {
    const citation = citations.get(passage.url) ?? { title: passage.title, excerpts: new Set() }
    citation.excerpts.add(passage.text)
    citations.set(passage.url, citation)
  }
  return [...citations].map(([url, { title, excerpts }]) => ({ url, title, excerpts: [...excerpts] }))
}

function confidenceOf({ found, answer }: Searched): (typeof CONFIDENCES)[number] {
  const [best] = answer?.evidence ?? []
  if (best === undefined || best.coverage < 0.5) return 'low'
  const rival = found.evidence.find(({ unit }) => unit.text !== best.unit.text)
  const clear = rival === undefined || best.score - rival.score > 0.25
  const sure = best.coverage >= 0.75 && best.direct && found.about !== undefined
  return sure && clear ? 'high' : sure || best.direct || best.coverage >= 0.75 ? 'medium' : 'low'
}

function reasoningOf(field: string, { found, answer }: Searched): string {
  const { question, query, about, passages } = found
  const where = about === undefined ? 'all documents' : `the documents named ${about}`
  const target =
    question.terms.length === 0 ? 'a definition' : question.terms.map(({ word }) => word).join(', ')
  const words = query === '' ? '' : ` for “${query}”`
  const search = `${field}: searched ${where}${words} and read ${count(passages, 'passage')} for ${target}.`
  const [best] = answer?.evidence ?? []
  if (best === undefined) return `${search} Nothing answers it, so it is left empty.`
  const { unit, passage, coverage } = best
  const heading = unit.heading === '' ? '' : `, under “${unit.heading.trim()}”`
  const others = (answer?.evidence.length ?? 0) - 1
  const more = others > 0 ? `, with ${count(others, 'more')} like it` : ''
  const matched = `${Math.round(coverage * 100)} % of the question`
  return `${search} The best ${unit.kind} is in “${passage.title}”${heading}${more}; it matches ${matched}.`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 || noun === 'more' ? '' : 's'}`
}
