import { isStopWord, words } from '../corpus/terms.ts'
import type { Passage } from '../corpus/corpus.ts'
import { stem } from '../corpus/stems.ts'
import { literal } from './literal.ts'
import type { Subject } from './subject.ts'
import { type Unit, unitsOf } from './units.ts'
import { type Question, stemsOf, type Term } from './vocabulary.ts'

/** A unit of a passage that may answer a question. */
export interface Evidence {
  readonly unit: Unit
  readonly passage: SourcePassage
  /** Part of the question's terms that the unit, its heading or its form meets, 0 to 1. */
  readonly coverage: number
  /** Whether a term stands in the unit itself, or an answer in the form that is known for it. */
  readonly direct: boolean
  /** Comparable within one answer only. */
  readonly score: number
}

/** Where evidence stands. */
export type SourcePassage = Pick<Passage, 'url' | 'title' | 'text'>

/** Less than this part of a question is no answer to it. */
const LEAST_COVERAGE = 0.34
/** Beginnings of sentences that talk to the reader instead of saying what something is. */
const CHATTER =
  /^(?:follow|see|click|visit|check|read|welcome|note|please|for |if |to |this (?:document|file|page|section|is the (?:changelog|readme))|you|we|here|want|need|looking|thanks|sponsor|support|become|the following|all notable)\b/i
/** A sentence whose subject, the first words, is said to be something. */
const DEFINES =
  /^(.{0,80}?)\b(?:(?:is|are)\s+(?:an?|the|one|my|our)\b|provides?|implements?|lets you|allows)\b/i
const VERB = /\b(?:is|are|was|were|has|have|can|will|must|should)\b/i
/** The beginning of a title line, which has no verb, such as `A streaming parser for …`. */
const NOUN_PHRASE = /^\W*(?:an?|the)\s/i
/** Headings of sections that are about something else than what the thing is. */
const ELSEWHERE =
  /^(?:install|usage|example|licen[cs]e|contribut|changelog|sponsor|support|credits|related|table of|contents)/i
/** What things are, in a sentence without a verb. */
const KIND_OF_THING =
  /\b(?:library|framework|tool|toolkit|module|package|parser|client|server|implementation|utility|utilities|compiler|linter|formatter|runtime|engine|plugin|validation|validator|logger|router|wrapper|binding|helper|function|method|extensions|language|format|protocol|database|service|system|collection|converter|solution|adapter)\b/i

/** Scores what stands in a passage. */
export class Judge {
  readonly #question: Question
  readonly #about: string | undefined
  readonly #subjectStems: ReadonlySet<string>
  /** Fits the subject's name where it stands for itself: `hono`, but not the one in `@hono/node-server`. */
  readonly #name: RegExp | undefined
  /** Whether the passages come in the order of the document, rather than best first. */
  readonly #isLead: boolean

  constructor(question: Question, subject: Subject, about: string | undefined) {
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

  /** The units of a passage that answer the question at least in part. `rank` is the passage's, from 0. */
  read(passage: SourcePassage, rank: number): Evidence[] {
    const surroundings = stemsOf(`${passage.title} ${passage.text}`)
    const subjectCoverage = part(this.#subjectStems, surroundings)
    // A passage about something else answers nothing, however well it fits the question's words.
    if (subjectCoverage < 0.5) return []
    const found: Evidence[] = []
    for (const [index, unit] of unitsOf(passage.text).entries()) {
      const evidence = this.#judge(unit, passage)
      if (evidence === undefined) continue
      const first = rank === 0 && found.length === 0 ? 1 : 0
      const place = this.#isLead ? first - 0.7 * rank - 0.25 * index : 1 / (1 + rank) - 0.05 * index
      const score = evidence.score + subjectCoverage * 2 + place
      found.push({ ...evidence, score })
    }
    return found
  }

  #judge(unit: Unit, passage: SourcePassage): Evidence | undefined {
    const { terms, asksForDefinition } = this.#question
    const stems = stemsOf(unit.text)
    if (terms.length === 0) {
      const score = this.#definitionScore(unit)
      if (score <= 0) return undefined
      const coverage = score >= 3.5 ? 1 : score >= 2 ? 0.6 : 0.4
      return { unit, passage, coverage, direct: score >= 3.5, score }
    }
    const headingStems = stemsOf(unit.heading)
    const met = terms.map((term) => meeting(term, unit, stems, headingStems))
    const coverage = met.reduce((sum, value) => sum + value, 0) / terms.length
    if (coverage < LEAST_COVERAGE) return undefined
    const named = this.#name?.test(unit.text) === true
    // Outside of the documents about it, a subject must be named where the answer stands.
    if (this.#about === undefined && this.#name !== undefined && !named) return undefined
    const direct = terms.some((term) => has(stems, term) || term.answer?.test(unit.text) === true)
    let score = coverage * 10 + (named ? 1 : 0)
    if (asksForDefinition) score += this.#definitionScore(unit) / 4
    if (unit.kind === 'code' && !terms.some((term) => term.answer?.test(unit.text))) score -= 3
    if (unit.text.length > 400) score -= 2
    if (/\?$|:$/.test(unit.text)) score -= 1.5
    return { unit, passage, coverage: Math.min(1, coverage), direct, score }
  }

  /** How well a unit says what the subject is; nothing above 0 is a reason to take it. */
  #definitionScore({ text, kind, heading }: Unit): number {
    const length = words(text).length
    if (length < 3 || kind === 'code' || kind === 'row' || text.endsWith('?')) return 0
    let score = 2
    const subject = DEFINES.exec(text)?.[1]
    if (subject !== undefined && this.#name?.test(subject)) score += 3
    if (KIND_OF_THING.test(text)) score += 1.5
    if (NOUN_PHRASE.test(text) && !VERB.test(text)) score += 1
    if (kind === 'item') score -= 1.5
    if (length > 60) score -= 1
    if (CHATTER.test(text)) score -= 2.5
    if (ELSEWHERE.test(heading)) score -= 2
    if (text.endsWith(':')) score -= 1.5
    // Many links make a table of contents.
    if ((text.match(/\]\(/g) ?? []).length > 2) score -= 2
    return score
  }
}

function nameExpression(names: readonly string[]): RegExp {
  const any = names.map(literal).join('|')
  return new RegExp(String.raw`(?<![\p{L}\p{N}@/.-])(?:${any})(?![\p{L}\p{N}/-])`, 'iu')
}

/** How far a unit meets a term: in its words, under its heading, in the form of its answer. */
function meeting(
  term: Term,
  unit: Unit,
  stems: ReadonlySet<string>,
  headingStems: ReadonlySet<string>,
): number {
  const said = has(stems, term) ? 1 : has(headingStems, term) ? 0.75 : 0
  if (term.answer === undefined) return said
  // The form alone proves little: `1.2.3` answers many questions. With the word near it, it is what was asked for.
  if (term.answer.test(unit.text)) return said > 0 ? 1.3 : 0.4
  return said * 0.6
}

function has(stems: ReadonlySet<string>, term: Term): boolean {
  for (const wanted of term.stems) if (stems.has(wanted)) return true
  return false
}

/** Which part of the wanted stems is there; all of them where none is wanted. */
function part(wanted: ReadonlySet<string>, there: ReadonlySet<string>): number {
  if (wanted.size === 0) return 1
  let count = 0
  for (const one of wanted) if (there.has(one)) count += 1
  return count / wanted.size
}
