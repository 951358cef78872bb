import { isObject } from '../../../protocol/json.ts'
import type { Citation, FieldBasis } from '../../../protocol/output.ts'
import type { Answer } from './answer.ts'
import type { Findings } from '../evidence/evidence.ts'
import type { Evidence } from '../evidence/judge.ts'
import { type Confidence, confidenceOf as levelOf, explain, type AnswerFeatures } from './confidence.ts'
import type { FieldSpec } from '../schema/schema.ts'
import { UNKNOWN } from './unknown.ts'

/** The evidence for a field, and the answer taken from it. */
export interface FieldEvidence {
  readonly found: Findings
  readonly answer: Answer | undefined
}

/** The search for a field that is not an object. */
export interface Finding extends FieldEvidence {
  readonly spec: FieldSpec
  /** Its name, with the names of its parent objects. */
  readonly path: string
}

/** The basis of a top-level field, from the findings of the fields within it. */
export function basisOf(spec: FieldSpec, findings: readonly Finding[]): FieldBasis {
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

/** An entry for each element of the lists within a field; for each property, if the elements are objects (§2.3). */
export function elementBasisOf(findings: readonly Finding[]): FieldBasis[] {
  return findings.flatMap((finding) => {
    const { path, found, answer } = finding
    const { value } = answer ?? {}
    if (answer === undefined || !Array.isArray(value)) return []
    return value.flatMap((element, index) => {
      // A list has one piece of evidence for each of its elements.
      const evidence = answer.evidence.slice(index, index + 1)
      const one: FieldEvidence = { found, answer: { value: element, evidence } }
      const names = isObject(element) ? Object.keys(element).map((name) => `.${name}`) : ['']
      return names.map((name) => entry(`${path}.${index}${name}`, one))
    })
  })
}

/** The basis of one field with one answer. */
export function entry(field: string, searched: FieldEvidence): FieldBasis {
  return {
    field,
    reasoning: reasoningOf(field, searched),
    citations: citationsOf(searched.answer?.evidence ?? []),
    confidence: confidenceOf(searched),
  }
}

const CONFIDENCES = ['low', 'medium', 'high'] as const satisfies readonly Confidence[]

/** One citation per document, with every passage from which an answer was taken. */
function citationsOf(evidence: readonly Evidence[]): Citation[] {
  const citations = new Map<string, { title: string; excerpts: Set<string> }>()
  for (const { passage } of evidence) {
    const citation = citations.get(passage.url) ?? { title: passage.title, excerpts: new Set() }
    citation.excerpts.add(passage.text)
    citations.set(passage.url, citation)
  }
  return [...citations].map(([url, { title, excerpts }]) => ({ url, title, excerpts: [...excerpts] }))
}

function confidenceOf(searched: FieldEvidence): Confidence {
  const features = featuresOf(searched)
  return features === undefined ? 'low' : levelOf(features)
}

/** The features of an answer; undefined if there is none. */
function featuresOf({ found, answer }: FieldEvidence): AnswerFeatures | undefined {
  const [best] = answer?.evidence ?? []
  if (best === undefined) return undefined
  const { asked, by, about, evidence } = found
  const keyOf = ({ key, unit }: Evidence) => key ?? unit.text
  const same = evidence.filter((one) => keyOf(one) === keyOf(best))
  const others = evidence.filter((one) => keyOf(one) !== keyOf(best))
  const comparesDocuments = by === 'attribute' && COMPARED.has(asked.attribute?.name ?? '')
  return {
    likelihood: by === 'words' ? best.likelihood : undefined,
    form:
      by !== 'words' || answer?.isOfShape === true
        ? true
        : asked.form === undefined
          ? undefined
          : best.value !== undefined || isNumber(answer?.value),
    hasRivals: answer?.hasRivals ?? false,
    agreeing: by === 'attribute' ? documentsOf(same) : 1,
    disagreeing: comparesDocuments ? documentsOf(others) : 0,
    nearness: best.coverage,
    direct: best.direct,
    own: about !== undefined,
    stated: by === 'version' || (by === 'attribute' && best.score >= STATED),
    isAuthorOnly: isAuthorOnly(found, best),
    missing: best.missing ?? [],
  }
}

/**
 * A question about a maintainer may be answered with an author. Documents state a maintainer only if they say that a person maintains the
 * thing.
 */
function isAuthorOnly({ by, asked }: Findings, { unit }: Evidence): boolean {
  const isAuthor = by === 'attribute' && asked.attribute?.name === 'author'
  return isAuthor && MAINTAINER.test(asked.text) && !MAINTAINER.test(`${unit.heading} ${unit.text}`)
}

const MAINTAINER = /\bmaintain/i

/** Attributes of which a thing has one value only. */
const COMPARED: ReadonlySet<string> = new Set(['licence', 'author'])
/** Minimum score of an attribute that is stated as a field, or under its own heading. */
const STATED = 8

function isNumber(value: unknown): boolean {
  return typeof value === 'number'
}

function documentsOf(evidence: readonly Evidence[]): number {
  return new Set(evidence.map(({ passage }) => passage.url)).size
}

function reasoningOf(field: string, searched: FieldEvidence): string {
  const { found, answer } = searched
  const { asked, query, about, passages } = found
  const where = about === undefined ? 'all documents' : `the documents named ${about}`
  const target = asked.attribute?.name ?? asked.terms.map(({ word }) => word).join(', ')
  const searchedFor = query === '' ? '' : ` for “${query}”`
  const search = `${field}: searched ${where}${searchedFor} and read ${count(passages, 'passage')} for ${target}.`
  const [best] = answer?.evidence ?? []
  const features = featuresOf(searched)
  if (best === undefined || features === undefined) return `${search} ${UNKNOWN}, so it is left empty.`
  const { unit, passage } = best
  const heading = unit.heading === '' ? '' : `, under “${unit.heading.trim()}”`
  const others = (answer?.evidence.length ?? 0) - 1
  const more = others > 0 ? `, with ${count(others, 'more')} like it` : ''
  return `${search} The best ${unit.kind} is in “${passage.title}”${heading}${more}: ${explain(features)}.`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 || noun === 'more' ? '' : 's'}`
}
