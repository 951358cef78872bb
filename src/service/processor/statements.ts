import { stem } from '../corpus/stems.ts'
import { isStopWord, words } from '../corpus/terms.ts'
import type { Asked, AskedForm, AskedTerm } from './asked.ts'
import { dates, defaults, type Form, type FormValue, hasNumber, installations, versions } from './forms.ts'
import { literal } from './literal.ts'
import type { Evidence } from './judge.ts'
import type { ReadPassage, ReadUnit, SourcePassage } from './place.ts'
import type { PlacedUnit } from './units.ts'
import { stemsOf } from './vocabulary.ts'

/** A passage that may have a statement, and how well the search ranks it, from 0. */
export interface RankedPassage {
  readonly reading: ReadPassage
  readonly rank: number
}

/** How well a word matches, by where it stands. */
const MATCH = {
  unit: 1,
  synonym: 0.85,
  /** A value of the kind that the word asks for. */
  kind: 0.8,
  heading: 0.85,
  headingSynonym: 0.7,
  comment: 0.9,
  block: 0.8,
  neighbour: 0.5,
  title: 0.7,
} as const
/** Minimum sum of the weights of a question's words. */
const MIN_ASKED = 0.3
/** What the definition of a name adds to the coverage of a question about that name. */
const HEAD_BONUS = 0.25
/** Minimum coverage of code without a comment. */
const CODE_COVERAGE = 0.85
/** The least weight of a word that stands in every passage. */
const MIN_WEIGHT = 0.15
/** The least number of passages that rarity is computed with. */
const MIN_PASSAGES = 24

/** The forms of values that questions ask for; the others are not read from sentences. */
const FORMS: Readonly<Partial<Record<AskedForm, Form>>> = {
  command: installations,
  default: defaults,
  date: dates,
  version: versions,
}

/**
 * Scores the units of passages by the words of a question. A word that few passages have weighs more; a word that none has weighs most,
 * so that a question about it is not answered by its other words.
 */
export function statementsOf(
  asked: Asked,
  passages: readonly RankedPassage[],
  isTitleRead: boolean,
): Evidence[] {
  const { terms, form } = asked
  // Common words alone ask nothing.
  if (sumOf(terms.map(({ weight }) => weight)) < MIN_ASKED) return []
  const weights = weightsOf(terms, passages)
  const questionStems = new Map([...stemsOf(asked.text)].map((one) => [one, 1]))
  for (const [one, count] of countStems(asked.text)) questionStems.set(one, count)
  const exact = asked.exact.map(versionExpression)
  const total = sumOf([...weights.values()])
  const found: Evidence[] = []
  for (const { reading, rank } of passages) {
    const { passage, units } = reading
    const titleStems = isTitleRead ? stemsOf(passage.title) : new Set<string>()
    for (const [index, one] of units.entries()) {
      // The header of a table states nothing.
      if (one.unit.columns?.length === 0) continue
      // Keywords are an index, and state nothing.
      if (passage.kind === 'manifest' && one.unit.text.startsWith('keywords: ')) continue
      if (form === 'command' && installations(one.unit.text).length === 0) continue
      if (!asked.isYesNo && !addsWords(one, questionStems)) continue
      if (!exact.every((version) => isOfVersion(one.unit, version))) continue
      const siblings = siblingsOf(units, index)
      let matched = 0
      let inUnit = 0
      for (const term of terms) {
        const weight = weights.get(term.stem) ?? 0
        const match = matchOf(term, one, siblings, titleStems)
        matched += weight * match
        if (match >= MATCH.synonym && match !== MATCH.heading) inUnit += weight
        else if (has(one.stems, term)) inUnit += weight
      }
      const coverage = total === 0 ? 0 : matched / total
      if (isBareCode(one.unit, siblings, form) && coverage < CODE_COVERAGE) continue
      if (coverage < 0.3 || (inUnit === 0 && !terms.some((term) => has(stemsOf(one.unit.heading), term))))
        continue
      // A line of a changelog begins with its area, and one of a manifest with its key.
      const isDescription = passage.kind !== 'changelog' && passage.kind !== 'manifest'
      const isHead =
        isDescription && terms.some(({ word, weight }) => weight === 1 && isHeadOf(one.unit.text, word))
      found.push(
        evidenceOf(
          asked,
          one,
          siblings,
          passage,
          isHead ? Math.min(1, coverage + HEAD_BONUS) : coverage,
          inUnit / total,
          rank,
        ),
      )
    }
  }
  return found.toSorted((a, b) => b.score - a.score)
}

/** Whether a text begins with a name and describes it: `` `maxLength`: the maximum length ``, `jitterRatio: 0.5 // …`, `| port | … |`. */
function isHeadOf(text: string, word: string): boolean {
  const head = /^[|\s]*(?:--?|\.)?[`"'*]*(?<name>[\w.$-]+)(?:\([^)]*\))?[`"'*?]*\s*(?:[:|=–—]|-\s|\()/.exec(
    text,
  )?.groups?.['name']
  return head?.toLowerCase() === word || head?.toLowerCase().split('.').at(-1) === word
}

/** Whether a unit is code without a word of explanation, and the question asks for no code. */
function isBareCode(
  { kind, text }: PlacedUnit,
  { comments }: Siblings,
  form: AskedForm | undefined,
): boolean {
  if (kind !== 'code' || form !== undefined || comments.length > 0) return false
  return !/(?:\/\/|#|\/\*)\s*\w/.test(text) && !FLAG_HELP.test(text)
}

/** A flag and its description, as a command prints them: `--port, -p   The port to listen on`. */
const FLAG_HELP = /^\s*--?[a-z][^\n]{0,60}?\s{2,}\w+\s\w+/i

/**
 * Whether a unit has a word that the question has not, or has it more often. Otherwise it only repeats the question. "A solid
 * state battery has a solid electrolyte" answers which electrolyte a solid state battery has.
 */
function addsWords({ stems, unit }: ReadUnit, question: ReadonlyMap<string, number>): boolean {
  for (const one of stems) if (!question.has(one)) return true
  for (const [one, count] of countStems(unit.text)) if (count > (question.get(one) ?? 1)) return true
  return false
}

/** How often each word of a text occurs, but for words without a meaning of their own. */
function countStems(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const word of words(text)) {
    if (!isStopWord(word)) counts.set(stem(word), (counts.get(stem(word)) ?? 0) + 1)
  }
  return counts
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

/** Matches a version in a text; `9` is also that of `9.0`, `v9.1` and `9.x`. */
function versionExpression(version: string): RegExp {
  return new RegExp(
    String.raw`(?<![\w.])v?${literal(version.replace(/\.x$/, ''))}(?:\.(?:\d+|x))*(?![\w-]|\.\d)`,
    'i',
  )
}

/** Whether a unit is about a version: it has it, or a heading above it or its table's header. */
function isOfVersion({ text, headings, columns = [] }: PlacedUnit, version: RegExp): boolean {
  return [text, ...headings, ...columns].some((one) => version.test(one))
}

function evidenceOf(
  { form }: Asked,
  { unit }: ReadUnit,
  { comments, continuation }: Siblings,
  passage: Evidence['passage'],
  coverage: number,
  direct: number,
  rank: number,
): Evidence {
  const [value] = [unit, ...comments.map((above) => above.unit)].flatMap((one) =>
    valuesOf(form, one, passage.kind),
  )
  const isOfForm =
    form === undefined
      ? undefined
      : form === 'number'
        ? hasNumber(unit.text)
        : FORMS[form] === undefined
          ? undefined
          : value !== undefined
  let score = coverage * 10 + direct * 2 - Math.min(rank, 30) * 0.02
  if (isOfForm === true) score += 1.5
  else if (isOfForm === false) score -= 1.5
  if (unit.kind === 'code' && form !== 'command') score -= 1.5
  if (unit.text.length > 400) score -= 1
  if (/[?:]$/.test(unit.text)) score -= continuation === undefined ? 1.5 : 0.75
  return {
    unit,
    passage,
    coverage: Math.min(1, coverage),
    direct: direct >= 0.5 && isOfForm !== false,
    score,
    ...(continuation !== undefined && { continuation }),
    ...(comments.length > 0 && { comment: comments.map((above) => above.unit.text).join('\n') }),
    ...(unit.headings.length > 0 && { headings: unit.headings }),
    ...(value !== undefined && {
      value: value.text,
      key: value.key,
      ...(value.number !== undefined && { number: value.number }),
    }),
  }
}

/** The values of the asked form: of a release, from the heading of its section. */
function valuesOf(
  form: AskedForm | undefined,
  unit: PlacedUnit,
  kind: SourcePassage['kind'],
): readonly FormValue[] {
  const read = form === undefined ? undefined : FORMS[form]
  if (read === undefined) return []
  const isOfRelease = kind === 'changelog' && (form === 'version' || form === 'date')
  if (!isOfRelease) return read(unit.text)
  return unit.headings
    .toReversed()
    .flatMap((heading) => read(heading))
    .slice(0, 1)
}

function matchOf(
  term: AskedTerm,
  { unit, stems, headingStems }: ReadUnit,
  { block, near, comments, announcement }: Siblings,
  titleStems: ReadonlySet<string>,
): number {
  if (stems.has(term.stem)) return MATCH.unit
  if (headingStems.has(term.stem)) return MATCH.heading
  if (hasSynonym(stems, term)) return MATCH.synonym
  if (term.kind?.test(unit.text) === true) return MATCH.kind
  if (hasSynonym(headingStems, term)) return MATCH.headingSynonym
  if (announcement !== undefined && has(announcement.stems, term)) return MATCH.heading
  if (comments.some((other) => has(other.stems, term))) return MATCH.comment
  if (titleStems.has(term.stem)) return MATCH.title
  if (block.some((other) => has(other.stems, term))) return MATCH.block
  if (near.some((other) => has(other.stems, term))) return MATCH.neighbour
  return 0
}

/** The units around a unit. */
interface Siblings {
  /** The other sentences of its paragraph or list item. */
  readonly block: readonly ReadUnit[]
  /** The units before and after it, under the same heading. */
  readonly near: readonly ReadUnit[]
  readonly continuation: string | undefined
  /** The comments above a line of code. */
  readonly comments: readonly ReadUnit[]
  /** The last sentence before a code block. */
  readonly announcement: ReadUnit | undefined
}

/** Maximum number of units before and after a unit that are its siblings. */
const MAX_SIBLINGS = 4

function siblingsOf(units: readonly ReadUnit[], index: number): Siblings {
  const one = units[index]?.unit
  const around = units.slice(Math.max(0, index - MAX_SIBLINGS), index + MAX_SIBLINGS + 1)
  const before = units.slice(Math.max(0, index - MAX_SIBLINGS), index)
  return {
    comments: commentsAbove(units, index),
    continuation: continuationOf(units, index),
    announcement: one?.kind === 'code' ? before.findLast(({ unit }) => unit.kind !== 'code') : undefined,
    block: around.filter(
      ({ unit }) => unit !== one && unit.kind !== 'code' && unit.block === one?.block && unit.kind !== 'row',
    ),
    near: [units[index - 1], units[index + 1]]
      .filter((other) => other !== undefined)
      .filter(({ unit }) => unit.heading === one?.heading),
  }
}

/** Maximum length of what a unit continues with, in characters. */
const MAX_CONTINUATION = 400

/** The code or the list after a colon; else the next sentence of the same paragraph. */
function continuationOf(units: readonly ReadUnit[], index: number): string | undefined {
  const one = units[index]?.unit
  const next = units[index + 1]?.unit
  if (one === undefined || next?.heading !== one.heading || one.kind === 'code') return undefined
  const isAnnouncement = one.text.endsWith(':')
  if (!isAnnouncement) {
    const isNextSentence = next.block === one.block && next.kind === one.kind && one.kind !== 'row'
    return isNextSentence && next.text.length <= MAX_CONTINUATION ? next.text : undefined
  }
  if (next.kind === 'sentence') return undefined
  const lines: string[] = []
  let length = 0
  for (const { unit } of units.slice(index + 1)) {
    const isSame = unit.kind === next.kind && (unit.kind !== 'code' || unit.block === next.block)
    length += unit.text.length
    if (!isSame || unit.heading !== one.heading || length > MAX_CONTINUATION) break
    lines.push(unit.text)
  }
  return lines.length === 0 ? undefined : lines.join('\n')
}

/** A line of code that is only a comment. */
const COMMENT = /^(?:\/\/|\/?\*|#)/

/** The comments directly above a line of code, such as the description of an option. */
function commentsAbove(units: readonly ReadUnit[], index: number): readonly ReadUnit[] {
  const one = units[index]?.unit
  if (one?.kind !== 'code' || COMMENT.test(one.text)) return []
  const found: ReadUnit[] = []
  for (let at = index - 1; at >= 0 && found.length < MAX_SIBLINGS; at -= 1) {
    const above = units[at]
    if (above?.unit.block !== one.block || !COMMENT.test(above.unit.text)) break
    found.unshift(above)
  }
  return found
}

function hasSynonym(stems: ReadonlySet<string>, { synonyms }: AskedTerm): boolean {
  for (const synonym of synonyms) if (stems.has(synonym)) return true
  return false
}

function has(stems: ReadonlySet<string>, term: AskedTerm): boolean {
  return stems.has(term.stem) || hasSynonym(stems, term)
}

/** The weight of each term: 1 if no passage has it, less the more passages have it. */
function weightsOf(terms: readonly AskedTerm[], passages: readonly RankedPassage[]): Map<string, number> {
  // Few passages say little about which words are rare.
  const size = Math.max(MIN_PASSAGES, passages.length)
  const most = Math.log((size + 1) / 0.5)
  return new Map(
    terms.map((term) => {
      const count = passages.filter(({ reading }) =>
        reading.units.some(({ stems, headingStems }) => has(stems, term) || has(headingStems, term)),
      ).length
      const rarity = Math.log((size + 1) / (count + 0.5)) / most
      // A weak word that no passage has is only a way to ask.
      return [
        term.stem,
        count === 0 && term.weight < 0.5 ? term.weight / 2 : term.weight * Math.max(MIN_WEIGHT, rarity),
      ]
    }),
  )
}
