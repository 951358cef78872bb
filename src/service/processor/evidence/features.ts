import { stem } from '../../corpus/stems.ts'
import { words } from '../../corpus/terms.ts'
import type { Asked } from '../question/asked.ts'
import { hasNewName, isNameLike } from '../words/name-like.ts'
import type { ReadUnit, SourcePassage } from '../passages/place.ts'
import type { Surroundings } from '../passages/surroundings.ts'
import type { Matched, Standing, WeighedTerm } from './term-match.ts'

/** The features by which the statements of one question are compared. Each is a number, mostly from 0 to 1. */
export const RANKING_FEATURES = [
  // Shares of the weight of the question's words that any passage has, by the position of these words.
  'inUnit',
  'asSynonym',
  'asKind',
  'inHeading',
  'inComment',
  'around',
  /** The weightiest of these words stands in the statement, or nowhere near. */
  'topInUnit',
  'topMissing',
  /** The words of the question that are names, such as `maxAge`: the share in the statement, and the share nowhere near. */
  'namesInUnit',
  'namesMissing',
  /** The statement begins with a word of the question and describes it. */
  'defines',
  /** Share of the neighbouring words of the question that are neighbours in the statement. */
  'phrases',
  /** Share of the statement's words that are words of the question. */
  'density',
  /** It has a value of the form that is asked for, or has none. */
  'ofForm',
  'notOfForm',
  /** The question asks for a name, and the statement has one that the question has not. */
  'newName',
  'code',
  'row',
  'item',
  /** It has more than 200 characters, or fewer than 50: by how many powers of two. */
  'long',
  'short',
  /** It ends with a colon or a question mark, and something follows, or nothing. */
  'announces',
  'open',
  // The kind of its document.
  'manifest',
  'changelog',
  'page',
  /** How late the search ranks its passage. */
  'late',
] as const

/** The features that decide, besides the rank, whether a statement answers the question at all. */
export const ACCEPTANCE_FEATURES = [
  'inUnit',
  'inHeading',
  'ofForm',
  'notOfForm',
  'newName',
  'namesMissing',
  'open',
  /** Share of the weight of all words, by their position; the definition of a name adds to it. */
  'coverage',
  /** Share of the weight of all words that are in the statement itself. */
  'direct',
  /** Number of words that stand nowhere near. */
  'missingTerms',
  /** Share of the weight of all words that no passage has, and the share of the names. */
  'unknownWords',
  'unknownNames',
] as const

/** The name of a feature. */
type Feature = (typeof RANKING_FEATURES)[number] | (typeof ACCEPTANCE_FEATURES)[number]

/** The features of a statement. */
export type StatementFeatures = Readonly<Record<Feature, number>>

/** The observations from which the features of a statement are computed. */
export interface Observed {
  readonly asked: Asked
  readonly terms: readonly WeighedTerm[]
  readonly one: ReadUnit
  readonly around: Surroundings
  readonly matched: Matched
  readonly passage: SourcePassage
  /** How well the search ranks its passage, from 0. */
  readonly rank: number
  /** Undefined if the question asks for no known form. */
  readonly isOfForm: boolean | undefined
  /** Whether it begins with a word of the question and describes it. */
  readonly defines: boolean
}

const SHARES = {
  unit: 'inUnit',
  synonym: 'asSynonym',
  kind: 'asKind',
  heading: 'inHeading',
  headingSynonym: 'inHeading',
  announcement: 'inComment',
  comment: 'inComment',
  title: 'around',
  block: 'around',
  neighbour: 'around',
} as const satisfies Readonly<Record<Standing, Feature>>

/** Words that weigh no more are not counted as missing. */
const LIGHT = 0.2
/** The latest rank that is distinguished from later ones. */
const LAST = 60

/** The features of a statement. */
export function featuresOf(observed: Observed): StatementFeatures {
  const { asked, terms, one, around, matched, passage, rank, isOfForm, defines } = observed
  const { unit, stems } = one
  const { length } = unit.text
  const isOpen = /[?:]$/.test(unit.text)
  const ownStems = [...stems].filter((root) => terms.some(({ term }) => term.stem === root)).length
  return {
    ...sharesOf(observed),
    ...topOf(observed),
    ...namesOf(observed),
    defines: Number(defines),
    phrases: phrasesIn(asked, unit.text),
    density: ownStems / Math.max(4, stems.size),
    ofForm: Number(isOfForm === true),
    notOfForm: Number(isOfForm === false),
    newName: Number(asked.asksForName && hasNewName(unit.text, asked.text)),
    code: Number(unit.kind === 'code'),
    row: Number(unit.kind === 'row'),
    item: Number(unit.kind === 'item'),
    long: Math.min(2, Math.max(0, Math.log2(length / 200))),
    short: Math.min(2, Math.max(0, Math.log2(50 / length))),
    announces: Number(isOpen && around.continuation !== undefined),
    open: Number(isOpen && around.continuation === undefined),
    manifest: Number(passage.kind === 'manifest'),
    changelog: Number(passage.kind === 'changelog'),
    page: Number(passage.kind === 'page'),
    late: Math.log1p(Math.min(rank, LAST)) / Math.log1p(LAST),
    coverage: matched.coverage,
    direct: matched.direct,
    missingTerms: terms.filter(({ weight }, at) => weight > LIGHT && matched.standings[at] === undefined)
      .length,
    unknownWords: ratio(weightOf(terms.filter(({ passages }) => passages === 0)), weightOf(terms)),
  }
}

type ShareFeature = (typeof SHARES)[Standing]

function sharesOf({ terms, matched }: Observed): Record<ShareFeature, number> {
  const shares = { inUnit: 0, asSynonym: 0, asKind: 0, inHeading: 0, inComment: 0, around: 0 }
  // A word that no passage has does not distinguish statements.
  const total = weightOf(terms.filter(({ passages }) => passages > 0))
  for (const [at, { weight, passages }] of terms.entries()) {
    const standing = matched.standings[at]
    if (standing !== undefined && passages > 0) shares[SHARES[standing]] += ratio(weight, total)
  }
  return shares
}

function topOf({ terms, matched }: Observed): Record<'topInUnit' | 'topMissing', number> {
  let top: number | undefined
  for (const [at, { weight, passages }] of terms.entries()) {
    if (passages > 0 && weight > (terms[top ?? -1]?.weight ?? 0)) top = at
  }
  if (top === undefined) return { topInUnit: 0, topMissing: 0 }
  const standing = matched.standings[top]
  return { topInUnit: Number(standing === 'unit'), topMissing: Number(standing === undefined) }
}

function namesOf({
  asked,
  terms,
  matched,
}: Observed): Record<'namesInUnit' | 'namesMissing' | 'unknownNames', number> {
  const names = terms.flatMap(({ term, passages }, at) =>
    isNameLike(term.word, asked.text) ? [{ passages, standing: matched.standings[at] }] : [],
  )
  const shareOf = (some: readonly unknown[]) => ratio(some.length, names.length)
  return {
    namesInUnit: shareOf(names.filter(({ standing }) => standing === 'unit')),
    namesMissing: shareOf(names.filter(({ standing }) => standing === undefined)),
    unknownNames: shareOf(names.filter(({ passages }) => passages === 0)),
  }
}

/** Share of the pairs of neighbouring words of a question that are at most one word apart in a text, in any order. */
function phrasesIn({ terms }: Asked, text: string): number {
  const roots = words(text).map(stem)
  const pairs = terms.slice(1).map(({ stem: second }, at) => ({ first: terms[at]?.stem, second }))
  const isPhrase = ({ first, second }: (typeof pairs)[number]) =>
    roots.some((root, at) => root === first && roots.slice(Math.max(0, at - 2), at + 3).includes(second))
  return ratio(pairs.filter(isPhrase).length, pairs.length)
}

function weightOf(terms: readonly WeighedTerm[]): number {
  return terms.reduce((sum, { weight }) => sum + weight, 0)
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
