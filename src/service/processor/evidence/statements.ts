import { stem } from '../../corpus/stems.ts'
import { isStopWord, words } from '../../corpus/terms.ts'
import type { Asked, AskedForm } from '../question/asked.ts'
import { type StatementFeatures, featuresOf } from './features.ts'
import {
  dates,
  defaults,
  type Form,
  type FormValue,
  hasNumber,
  installations,
  versions,
} from '../passages/forms.ts'
import { literal } from '../words/literal.ts'
import type { Evidence } from './judge.ts'
import type { ReadPassage, ReadUnit, SourcePassage } from '../passages/place.ts'
import type { PlacedUnit } from '../passages/units.ts'
import { compareStatements, likelihoodOf } from './statement-model.ts'
import { type Surroundings, surroundingsOf } from '../passages/surroundings.ts'
import { matchUnit, weighTerms } from './term-match.ts'
import { stemsOf } from '../words/vocabulary.ts'

/** A passage that may have a statement, and how well the search ranks it, from 0. */
export interface RankedPassage {
  readonly reading: ReadPassage
  readonly rank: number
}

/** Minimum sum of the weights of a question's words. */
const MIN_ASKED = 0.3
/** Added to the coverage of a statement that defines a name, if the question is about that name. */
const DEFINES_BONUS = 0.25
/** Words that weigh no more are not reported as missing. */
const LIGHT = 0.2
/** The fields of a manifest that are no statements. */
const NO_STATEMENT = /^(?:name|keywords|author|contributors|maintainers|homepage|repository|bugs|funding): /
/** The forms of values that questions ask for; the others are not read from sentences. */
const FORMS: Readonly<Partial<Record<AskedForm, Form>>> = {
  command: installations,
  default: defaults,
  date: dates,
  version: versions,
}

/** A statement that may answer a question, compared with the others. */
export interface Statement extends Evidence {
  readonly features: StatementFeatures
  /** How likely it is the answer, 0 to 1. */
  readonly likelihood: number
}

/** Finds the units of passages that may answer a question, best first. */
export function statementsOf(
  asked: Asked,
  passages: readonly RankedPassage[],
  isTitleRead: boolean,
): Statement[] {
  // Common words alone ask nothing.
  if (asked.terms.reduce((sum, { weight }) => sum + weight, 0) < MIN_ASKED) return []
  const terms = weighTerms(
    asked.terms,
    passages.map(({ reading }) => reading),
  )
  const questionStems = new Map([...stemsOf(asked.text)].map((one) => [one, 1]))
  for (const [one, count] of countStems(asked.text)) questionStems.set(one, count)
  const exact = asked.exact.map(versionExpression)
  const found: Omit<Statement, 'score' | 'likelihood'>[] = []
  for (const { reading, rank } of passages) {
    const { passage, units } = reading
    const titleStems = isTitleRead ? stemsOf(passage.title) : new Set<string>()
    for (const [index, one] of units.entries()) {
      // The header of a table states nothing.
      if (one.unit.columns?.length === 0) continue
      // Keywords state nothing, and people and addresses are attributes.
      if (passage.kind === 'manifest' && NO_STATEMENT.test(one.unit.text)) continue
      if (!asked.isYesNo && !addsWords(one, questionStems)) continue
      if (!exact.every((version) => isOfVersion(one.unit, version))) continue
      const around = surroundingsOf(units, index)
      const matched = matchUnit(terms, one, around, titleStems)
      if (matched.standings.every((standing) => standing === undefined || standing === 'title')) continue
      // A line of a changelog begins with its area, and one of a manifest with its key.
      const isDescription = passage.kind !== 'changelog' && passage.kind !== 'manifest'
      const defines =
        isDescription && asked.terms.some(({ word, weight }) => weight === 1 && isHeadOf(one.unit.text, word))
      const value = valueOf(asked.form, one, around, passage.kind)
      const isOfForm = hasForm(asked.form, one.unit, value)
      const features = featuresOf({ asked, terms, one, around, matched, passage, rank, isOfForm, defines })
      const missing = terms.flatMap(({ term, weight }, at) =>
        weight > LIGHT && matched.standings[at] === undefined ? [term.word] : [],
      )
      found.push({
        ...evidenceOf(one, around, passage, value),
        coverage: Math.min(1, matched.coverage + (defines ? DEFINES_BONUS : 0)),
        direct: matched.direct >= 0.5 && isOfForm !== false,
        missing,
        features,
      })
    }
  }
  const statements: Statement[] = []
  for (const one of compareStatements(found)) statements.push({ ...one, likelihood: likelihoodOf(one) })
  return statements
}

/** Whether a text begins with a name and describes it: `` `maxLength`: the maximum length ``, `jitterRatio: 0.5 // …`, `| port | … |`. */
function isHeadOf(text: string, word: string): boolean {
  const head = /^[|\s]*(?:--?|\.)?[`"'*]*(?<name>[\w.$-]+)(?:\([^)]*\))?[`"'*?]*\s*(?:[:|=–—]|-\s|\()/.exec(
    text,
  )?.groups?.['name']
  return head?.toLowerCase() === word || head?.toLowerCase().split('.').at(-1) === word
}

/**
 * Whether a unit has a word that the question has not, or has it more often. Otherwise it only repeats the question. "A solid
 * state battery has a solid electrolyte" answers which electrolyte a solid state battery has.
 */
function addsWords({ stems, unit }: ReadUnit, question: ReadonlyMap<string, number>): boolean {
  for (const one of stems) if (!question.has(one)) return true
  for (const [one, count] of countStems(unit.text)) if (count > (question.get(one) ?? 1)) return true
  return false
}

/** How often each word of a text occurs, except words without meaning. */
function countStems(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const word of words(text)) {
    if (!isStopWord(word)) counts.set(stem(word), (counts.get(stem(word)) ?? 0) + 1)
  }
  return counts
}

/** Matches a version in a text; `9` also matches `9.0`, `v9.1` and `9.x`. */
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
  { unit }: ReadUnit,
  { comments, continuation, opening }: Surroundings,
  passage: Evidence['passage'],
  value: FormValue | undefined,
): Omit<Evidence, 'coverage' | 'direct' | 'score'> {
  return {
    unit,
    passage,
    ...(continuation !== undefined && { continuation }),
    ...(opening !== undefined && { opening }),
    ...(comments.length > 0 && { comment: comments.map((above) => above.unit.text).join('\n') }),
    ...(unit.headings.length > 0 && { headings: unit.headings }),
    ...(value !== undefined && {
      value: value.text,
      key: value.key,
      ...(value.number !== undefined && { number: value.number }),
    }),
  }
}

/** The value of the asked form in a unit or in the comments above it. */
function valueOf(
  form: AskedForm | undefined,
  { unit }: ReadUnit,
  { comments }: Surroundings,
  kind: SourcePassage['kind'],
): FormValue | undefined {
  return [unit, ...comments.map((above) => above.unit)].flatMap((one) => valuesOf(form, one, kind))[0]
}

/** Whether a unit has the asked form; undefined if none is asked for that is known. */
function hasForm(
  form: AskedForm | undefined,
  { text }: PlacedUnit,
  value: FormValue | undefined,
): boolean | undefined {
  if (form === 'number') return hasNumber(text)
  return form === undefined || FORMS[form] === undefined ? undefined : value !== undefined
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
