import { isStopWord, words } from '../../corpus/terms.ts'
import { stem } from '../../corpus/stems.ts'
import { literal } from '../words/literal.ts'
import type { Subject } from '../question/subject.ts'
import type { SourcePassage } from '../passages/place.ts'
import { manifestUnits, type Unit, unitsOf } from '../passages/units.ts'
import { type ParsedQuestion, stemsOf, type Term } from '../words/vocabulary.ts'

/** A unit of a passage that may answer a question. */
export interface Evidence {
  readonly unit: Unit
  readonly passage: SourcePassage
  /** The fraction of the question's terms that match the unit, its heading or its form, 0 to 1. */
  readonly coverage: number
  /** Whether the unit has a term, or an answer in the known form of one. */
  readonly direct: boolean
  /** Comparable within one search only. */
  readonly score: number
  /** How likely it is the answer, 0 to 1, if the model has judged it. */
  readonly likelihood?: number
  /** The words of the question that stand nowhere near it. */
  readonly missing?: readonly string[]
  /** The part of the unit that is the value, if its form is known. */
  readonly value?: string
  /** The value as a number, if it has one. */
  readonly number?: number
  /** The comments above a line of code. */
  readonly comment?: string
  /** The first sentence of the list item that the unit continues. */
  readonly opening?: string
  /** The text that the unit announces, such as the code after a colon, or continues with. */
  readonly continuation?: string
  /** All headings above the unit, the outermost first. */
  readonly headings?: readonly string[]
  /** Equal for values that mean the same. */
  readonly key?: string
}

/** Minimum coverage of evidence. */
const MIN_COVERAGE = 0.34
/** Beginnings of sentences that address the reader instead of defining something. */
const CHATTER =
  /^(?:follow|see|click|visit|check|read|welcome|note|please|for |if |to |this (?:document|file|page|section|is the (?:changelog|readme))|you|we|here|want|need|looking|thanks|sponsor|support|become|the following|all notable)\b/i
/** A sentence that defines its subject, which is the first group. */
const DEFINES =
  /^(.{0,80}?)\b(?:(?:is|are)\s+(?:an?|the|one|my|our)\b|provides?|implements?|lets you|allows)\b/i
const VERB = /\b(?:is|are|was|were|has|have|can|will|must|should)\b/i
/** The beginning of a noun phrase without a verb, such as `A streaming parser for …`. */
const NOUN_PHRASE = /^\W*(?:an?|the)\s/i
/** Headings of sections without a definition. */
const ELSEWHERE =
  /^(?:install|usage|example|licen[cs]e|contribut|changelog|sponsor|support|credits|related|table of|contents)/i
/** Nouns of a definition without a verb. */
const KIND_OF_THING =
  /\b(?:library|framework|tool|toolkit|module|package|parser|client|server|implementation|utility|utilities|compiler|linter|formatter|runtime|engine|plugin|validation|validator|logger|router|wrapper|binding|helper|function|method|extensions|language|format|protocol|database|service|system|collection|converter|solution|adapter)\b/i

/** Scores the units of a passage. */
export class Judge {
  readonly #question: ParsedQuestion
  readonly #about: string | undefined
  readonly #subjectStems: ReadonlySet<string>
  /** Matches the subject's name as a whole word: `hono`, but not in `@hono/node-server`. */
  readonly #name: RegExp | undefined
  /** Whether passages are in the order of the document instead of best first. */
  readonly #isLead: boolean

  constructor(question: ParsedQuestion, subject: Subject, about: string | undefined) {
    this.#question = question
    this.#about = about
    this.#isLead = question.terms.length === 0 && about !== undefined
    const names = about === undefined ? subject.names : [about]
    this.#name = names.length === 0 ? undefined : nameExpression(names)
    const text = about === undefined ? [...subject.names, subject.text].join(' ') : ''
    this.#subjectStems = new Set(
      words(text)
        .filter((word) => !isStopWord(word))
        .map(stem),
    )
  }

  /** The units of a passage that answer the question, at least in part. `rank` is the rank of the passage, from 0. */
  read(passage: SourcePassage, rank: number): Evidence[] {
    const surroundings = stemsOf(`${passage.title} ${passage.text}`)
    const subjectCoverage = fractionOf(this.#subjectStems, surroundings)
    // A passage about another subject is no answer, even if it matches the terms.
    if (subjectCoverage < 0.5) return []
    const found: Evidence[] = []
    const units = passage.kind === 'manifest' ? manifestUnits(passage.text) : unitsOf(passage.text)
    for (const [index, unit] of units.entries()) {
      const evidence = this.#judge(unit, passage)
      if (evidence === undefined) continue
      const first = rank === 0 && found.length === 0 ? 1 : 0
      const rankScore = this.#isLead ? first - 0.7 * rank - 0.25 * index : 1 / (1 + rank) - 0.05 * index
      const score = evidence.score + subjectCoverage * 2 + rankScore
      found.push({ ...evidence, score })
    }
    return found
  }

  #judge(unit: Unit, passage: SourcePassage): Evidence | undefined {
    const { terms, asksForDefinition } = this.#question
    const stems = stemsOf(unit.text)
    if (terms.length === 0) {
      const score = scoreOfDefinition(unit, this.#name)
      if (score <= 0) return undefined
      const coverage = score >= 3.5 ? 1 : score >= 2 ? 0.6 : 0.4
      return { unit, passage, coverage, direct: score >= 3.5, score }
    }
    const headingStems = stemsOf(unit.heading)
    const matches = terms.map((term) => matchOf(term, unit, stems, headingStems))
    const coverage = matches.reduce((sum, value) => sum + value, 0) / terms.length
    if (coverage < MIN_COVERAGE) return undefined
    const named = this.#name?.test(unit.text) === true
    // In other documents than those about the subject, the unit must name it.
    if (this.#about === undefined && this.#name !== undefined && !named) return undefined
    const direct = terms.some((term) => has(stems, term) || term.answer?.test(unit.text) === true)
    let score = coverage * 10 + (named ? 1 : 0)
    if (asksForDefinition) score += scoreOfDefinition(unit, this.#name) / 4
    if (unit.kind === 'code' && !terms.some((term) => term.answer?.test(unit.text))) score -= 3
    if (unit.text.length > 400) score -= 2
    if (/\?$|:$/.test(unit.text)) score -= 1.5
    return { unit, passage, coverage: Math.min(1, coverage), direct, score }
  }
}

/** How well a unit defines the thing with one of these names; 0 or less if it does not. */
export function definitionScore(unit: Unit, names: readonly string[]): number {
  return scoreOfDefinition(unit, names.length === 0 ? undefined : nameExpression(names))
}

function scoreOfDefinition({ text, kind, heading }: Unit, name: RegExp | undefined): number {
  const length = words(text).length
  if (length < 3 || kind === 'code' || kind === 'row' || text.endsWith('?')) return 0
  let score = 2
  const subject = DEFINES.exec(text)?.[1]
  if (subject !== undefined && name?.test(subject)) score += 3
  if (KIND_OF_THING.test(text)) score += 1.5
  if (NOUN_PHRASE.test(text) && !VERB.test(text)) score += 1
  if (kind === 'item') score -= 1.5
  if (length > 60) score -= 1
  if (CHATTER.test(text)) score -= 2.5
  if (ELSEWHERE.test(heading)) score -= 2
  if (text.endsWith(':')) score -= 1.5
  // Many links indicate a table of contents.
  if ((text.match(/\]\(/g) ?? []).length > 2) score -= 2
  return score
}

function nameExpression(names: readonly string[]): RegExp {
  const any = names.map(literal).join('|')
  return new RegExp(String.raw`(?<![\p{L}\p{N}@/.-])(?:${any})(?![\p{L}\p{N}/-])`, 'iu')
}

/** How well a unit matches a term: by its words, its heading, or the form of the answer. */
function matchOf(
  term: Term,
  unit: Unit,
  stems: ReadonlySet<string>,
  headingStems: ReadonlySet<string>,
): number {
  const wordMatch = has(stems, term) ? 1 : has(headingStems, term) ? 0.75 : 0
  if (term.answer === undefined) return wordMatch
  // The form alone is weak evidence: `1.2.3` answers many questions. With the word in the unit it is strong.
  if (term.answer.test(unit.text)) return wordMatch > 0 ? 1.3 : 0.4
  return wordMatch * 0.6
}

function has(stems: ReadonlySet<string>, term: Term): boolean {
  for (const wanted of term.stems) if (stems.has(wanted)) return true
  return false
}

/** The fraction of the wanted stems that are present; 1 if none is wanted. */
function fractionOf(wanted: ReadonlySet<string>, present: ReadonlySet<string>): number {
  if (wanted.size === 0) return 1
  let count = 0
  for (const one of wanted) if (present.has(one)) count += 1
  return count / wanted.size
}
