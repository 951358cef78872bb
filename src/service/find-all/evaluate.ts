import type {
  CandidateOutput,
  FindAllCandidate,
  FindAllRequest,
  MatchCondition,
} from '../../protocol/find-all.ts'
import type { Citation, FieldBasis } from '../../protocol/output.ts'
import { words } from '../corpus/terms.ts'
import { type Evidence, Judge } from '../processor/evidence/judge.ts'
import {
  type ParsedQuestion,
  questionOf,
  splitName,
  stemsOf,
  type Term,
} from '../processor/words/vocabulary.ts'
import { type Comparison, readComparison } from './comparison.ts'
import type { EntityPassage } from './entity-text.ts'

/** Number of passages that are judged for a condition. */
const MAX_PASSAGES = 12
/** Maximum number of statements of a passage that together meet a condition. */
const MAX_STATEMENTS = 3
/** Minimum coverage of a single statement that meets a condition. */
const COVERAGE = 0.6
/** Minimum coverage of several statements of one passage. */
const JOINT_COVERAGE = 0.75
/** Number of passages at the beginning that are searched for a description. */
const LEADS = 4

/** Words of a condition that name the entity or require something, but are not the requirement itself. */
const CONDITION_WORDS = words(
  'must should shall needs need required requires condition entity entities candidate match matches satisfy satisfies meet meets ' +
    'has have having does provide provides offer offers',
)
const NEGATION =
  /\b(?:no|not|never|none|neither|nor|without|cannot|lacks?|lacking|unsupported|zero)\b|n['’]t\b/i

/** The result of a condition. */
export interface Verdict {
  /** Null if the documents do not say enough to check it. */
  readonly isMatched: boolean | null
  /** The statement of the documents about the condition; null if they have none. */
  readonly value: string | null
  /** The basis of the value, under the name of the condition. */
  readonly basis: FieldBasis
}

/** Judges the conditions of FindAll runs. */
export interface Evaluator {
  /**
   * Judges each condition of a request on the passages of a candidate, in the order of the request. Rejects with the signal's
   * reason when it is aborted.
   */
  evaluate(
    candidate: FindAllCandidate,
    request: FindAllRequest,
    passages: readonly EntityPassage[],
    signal: AbortSignal,
  ): Promise<readonly Verdict[]>
}

/** Judges conditions by their words. It is deterministic, and cites verbatim text only. */
export const extractiveEvaluator: Evaluator = {
  async evaluate(candidate, request, passages) {
    return request.match_conditions.map((condition) =>
      judgeCondition(condition, candidate, request, passages),
    )
  },
}

/** The candidate with its verdicts. It matches if each condition is met: one that could not be checked is not. */
export function evaluated(candidate: FindAllCandidate, verdicts: readonly Verdict[]): FindAllCandidate {
  const outputs = verdicts.map(({ value, isMatched, basis }): [string, CandidateOutput] => [
    basis.field,
    { value, type: 'match_condition', is_matched: isMatched },
  ])
  return {
    ...candidate,
    match_status: verdicts.every(({ isMatched }) => isMatched === true) ? 'matched' : 'unmatched',
    output: Object.fromEntries(outputs),
    basis: verdicts.map(({ basis }) => basis),
  }
}

/** The passages of an entity that have most words of a condition, best first. */
export function passagesFor(
  condition: MatchCondition,
  { entity_type }: FindAllRequest,
  passages: readonly EntityPassage[],
): readonly EntityPassage[] {
  return relevant(passages, readCondition(condition, entity_type).question)
}

/** The sentence that describes an entity best; null if there is none. */
export function describe(name: string, passages: readonly EntityPassage[]): string | null {
  const judge = new Judge(questionOf(''), { names: [name], text: '' }, name)
  const [best] = passages
    .slice(0, LEADS)
    .flatMap((passage, rank) => judge.read(passage, rank))
    .toSorted((a, b) => b.score - a.score)
  return best?.unit.text ?? null
}

function judgeCondition(
  condition: MatchCondition,
  { name }: FindAllCandidate,
  { entity_type }: FindAllRequest,
  passages: readonly EntityPassage[],
): Verdict {
  const { question, comparison } = readCondition(condition, entity_type)
  const judge = new Judge(question, { names: [name], text: '' }, name)
  const found = relevant(passages, question).map((passage, rank) => judge.read(passage, rank))
  const wantsAbsence = NEGATION.test(condition.description)
  const statements = bestOf(found, question, comparison)
  const isDenied = statements.some(({ unit }) => NEGATION.test(unit.text))
  const unchecked = uncheckedTerms(statements, question)
  const isMatched = statements.length === 0 || unchecked.length > 0 ? null : isDenied === wantsAbsence
  const value = statements.length === 0 ? null : statements.map(({ unit }) => unit.text).join(' ')
  return {
    isMatched,
    value,
    basis: {
      field: condition.name,
      reasoning: reasoningOf({
        question,
        statements,
        unchecked,
        isDenied,
        isMatched,
        comparison,
        passages: passages.length,
      }),
      citations: citationsOf(statements),
      confidence: isMatched === null ? 'low' : confidenceOf(statements, question),
    },
  }
}

/** The requirement of a condition: its words, and its comparison with a number. */
function readCondition(
  { name, description }: MatchCondition,
  entityType: string,
): { readonly question: ParsedQuestion; readonly comparison: Comparison | undefined } {
  const { text, comparison } = readComparison(description)
  const except = [
    ...CONDITION_WORDS,
    ...formsOf(entityType),
    ...words('no not never none without cannot lack zero'),
  ]
  const asked = questionOf(text, except)
  return { question: asked.terms.length > 0 ? asked : questionOf(splitName(name), except), comparison }
}

/** The words of a type of entity, in singular and plural. */
function formsOf(entityType: string): string[] {
  return words(entityType).flatMap((word) => [
    word,
    `${word}s`,
    word.replace(/s$/, ''),
    word.replace(/ies$/, 'y'),
  ])
}

/** The passages that have most terms of the question, in a stable order. */
function relevant(passages: readonly EntityPassage[], { terms }: ParsedQuestion): EntityPassage[] {
  const count = ({ stems, text }: EntityPassage) =>
    terms.filter((term) => hasTerm(stems, term) || term.answer?.test(text) === true).length
  return passages
    .map((passage) => ({ passage, count: count(passage) }))
    .filter((entry) => entry.count > 0)
    .toSorted((a, b) => b.count - a.count)
    .slice(0, MAX_PASSAGES)
    .map(({ passage }) => passage)
}

function hasTerm(stems: ReadonlySet<string>, term: Term): boolean {
  return [...term.stems].some((wanted) => stems.has(wanted))
}

/**
 * The statement that meets the condition, else a few of one passage that meet it together; none if there are none. Statements with all of
 * its terms come first.
 */
function bestOf(
  found: readonly (readonly Evidence[])[],
  question: ParsedQuestion,
  comparison: Comparison | undefined,
): readonly Evidence[] {
  const fits = ({ unit }: Evidence) => comparison === undefined || comparison.holds(unit.text)
  const single = found
    .flat()
    .filter((evidence) => evidence.direct && evidence.coverage >= COVERAGE && fits(evidence))
    .toSorted((a, b) => b.coverage - a.coverage || b.score - a.score)
    .map((evidence) => [evidence])
  const joint = found.map((evidence) => jointly(evidence, question)).filter((evidence) => evidence.some(fits))
  const all = [...single, ...joint]
  return all.find((statements) => uncheckedTerms(statements, question).length === 0) ?? all[0] ?? []
}

/** The terms of a condition that stand neither in the statements nor in their headings or title. */
function uncheckedTerms(statements: readonly Evidence[], { terms }: ParsedQuestion): readonly Term[] {
  const stems = stemsOf(
    statements.flatMap(({ unit, passage }) => [unit.text, unit.heading, passage.title]).join('\n'),
  )
  const isAnswer = ({ answer }: Term) => statements.some(({ unit }) => answer?.test(unit.text) === true)
  return terms.filter((term) => !hasTerm(stems, term) && !isAnswer(term))
}

/** A few statements of one passage that together have enough terms of the question; none if there are none. */
function jointly(evidence: readonly Evidence[], { terms }: ParsedQuestion): readonly Evidence[] {
  const missing = new Set(terms)
  const taken: Evidence[] = []
  for (const candidate of evidence) {
    if (taken.length === MAX_STATEMENTS) break
    const stems = stemsOf(candidate.unit.text)
    const news = [...missing].filter((term) => hasTerm(stems, term))
    if (news.length === 0) continue
    for (const term of news) missing.delete(term)
    taken.push(candidate)
  }
  return terms.length > 0 && 1 - missing.size / terms.length >= JOINT_COVERAGE ? taken : []
}

function citationsOf(statements: readonly Evidence[]): Citation[] {
  const [first] = statements
  // All statements are of one passage.
  return first === undefined
    ? []
    : [{ url: first.passage.url, title: first.passage.title, excerpts: [first.passage.text] }]
}

function confidenceOf(statements: readonly Evidence[], { terms }: ParsedQuestion): 'low' | 'medium' | 'high' {
  const [first] = statements
  if (first === undefined || statements.length > 1) return 'low'
  return first.coverage >= 0.9 && terms.length > 1 ? 'high' : 'medium'
}

interface Judgement {
  readonly question: ParsedQuestion
  readonly statements: readonly Evidence[]
  readonly unchecked: readonly Term[]
  readonly isDenied: boolean
  readonly isMatched: boolean | null
  readonly comparison: Comparison | undefined
  readonly passages: number
}

function reasoningOf(judgement: Judgement): string {
  const { question, statements, unchecked, isDenied, isMatched, comparison, passages } = judgement
  const terms = wordsOf(question.terms)
  const number = comparison === undefined ? '' : `, with a number ${comparison.text}`
  const read = `Read ${passages} passages of its documents for ${terms}${number}.`
  const verdict = verdictText(isMatched)
  const [first] = statements
  if (first === undefined) return `${read} No statement has enough of these words. ${verdict}`
  const where = `A ${first.unit.kind} in “${first.passage.title}”`
  if (isMatched === null) return `${read} ${where} has nothing about ${wordsOf(unchecked)}. ${verdict}`
  return `${read} ${where} ${isDenied ? 'denies it' : 'states it'}. ${verdict}`
}

function wordsOf(terms: readonly Term[]): string {
  return terms.map(({ word }) => word).join(', ')
}

/** The result of a condition, as a sentence. */
export function verdictText(isMatched: boolean | null): string {
  if (isMatched === null) return 'It is not known whether the condition is met.'
  return `The condition is ${isMatched ? 'met' : 'not met'}.`
}
