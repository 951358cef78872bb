import type { AskedTerm } from '../question/asked.ts'
import type { ReadPassage, ReadUnit } from '../passages/place.ts'
import type { Surroundings } from '../passages/surroundings.ts'

/** The share of a word's weight that counts as found, by the word's position. */
const MATCH = {
  unit: 1,
  synonym: 0.85,
  /** A value of the kind that the word asks for. */
  kind: 0.8,
  heading: 0.85,
  headingSynonym: 0.7,
  announcement: 0.85,
  comment: 0.9,
  block: 0.8,
  neighbour: 0.5,
  title: 0.7,
} as const

/** The position of a question's word: in the unit itself, in a heading above it, as a synonym, … */
export type Standing = keyof typeof MATCH

/** The nearest standing of a word; undefined if it is nowhere near. */
function standingOf(
  term: AskedTerm,
  { unit, stems, headingStems }: ReadUnit,
  { block, near, comments, announcement }: Surroundings,
  titleStems: ReadonlySet<string>,
): Standing | undefined {
  if (stems.has(term.stem)) return 'unit'
  if (headingStems.has(term.stem)) return 'heading'
  if (hasSynonym(stems, term)) return 'synonym'
  if (term.kind?.test(unit.text) === true) return 'kind'
  if (hasSynonym(headingStems, term)) return 'headingSynonym'
  if (announcement !== undefined && has(announcement.stems, term)) return 'announcement'
  if (comments.some((other) => has(other.stems, term))) return 'comment'
  if (titleStems.has(term.stem)) return 'title'
  if (block.some((other) => has(other.stems, term))) return 'block'
  if (near.some((other) => has(other.stems, term))) return 'neighbour'
  return undefined
}

/** How the words of a question stand to a statement. */
export interface Matched {
  /** How much of the question stands in and around it, 0 to 1. */
  readonly coverage: number
  /** How much of the question is in the statement itself, 0 to 1. */
  readonly direct: number
  /** The standing of each word. */
  readonly standings: readonly (Standing | undefined)[]
}

/** How much of a question stands in and around a unit. */
export function matchUnit(
  terms: readonly WeighedTerm[],
  one: ReadUnit,
  around: Surroundings,
  titleStems: ReadonlySet<string>,
): Matched {
  let total = 0
  let matched = 0
  let inUnit = 0
  const standings = terms.map(({ term, weight }) => {
    const standing = standingOf(term, one, around, titleStems)
    total += weight
    if (standing !== undefined) matched += weight * MATCH[standing]
    if (standing === 'unit' || standing === 'comment' || has(one.stems, term)) inUnit += weight
    return standing
  })
  if (total === 0) return { coverage: 0, direct: 0, standings }
  return { coverage: matched / total, direct: inUnit / total, standings }
}

/** Whether a text has a word or a synonym of it. */
function has(stems: ReadonlySet<string>, term: AskedTerm): boolean {
  return stems.has(term.stem) || hasSynonym(stems, term)
}

function hasSynonym(stems: ReadonlySet<string>, { synonyms }: AskedTerm): boolean {
  for (const synonym of synonyms) if (stems.has(synonym)) return true
  return false
}

/** The least weight of a word that stands in every passage. */
const MIN_WEIGHT = 0.15
/** The least number of passages that rarity is computed with. */
const MIN_PASSAGES = 24

/** A word of a question, and its weight among the passages. */
export interface WeighedTerm {
  readonly term: AskedTerm
  /** How much it says: the more passages have it, the less. */
  readonly weight: number
  /** Number of the passages that have it. */
  readonly passages: number
}

/** Weighs each word: 1 if no passage has it, less the more passages have it. */
export function weighTerms(
  terms: readonly AskedTerm[],
  readings: readonly Pick<ReadPassage, 'units'>[],
): readonly WeighedTerm[] {
  // Few passages say little about which words are rare.
  const size = Math.max(MIN_PASSAGES, readings.length)
  const most = Math.log((size + 1) / 0.5)
  const vocabulary = new Set(readings.flatMap(({ units }) => units.flatMap(({ stems }) => [...stems])))
  return terms.map((bare) => {
    const term = withVariants(bare, vocabulary)
    const passages = readings.filter(({ units }) =>
      units.some(({ stems, headingStems }) => has(stems, term) || has(headingStems, term)),
    ).length
    const rarity = Math.log((size + 1) / (passages + 0.5)) / most
    // A weak word that no passage has is only a way to ask.
    const isWay = passages === 0 && term.weight < 0.5
    const weight = isWay ? term.weight / 2 : term.weight * Math.max(MIN_WEIGHT, rarity)
    return { term, weight, passages }
  })
}

/** The least number of letters that two words of one family have in common: `sampl` in sampling and sampler. */
const FAMILY = 5
/** The most letters that follow them. */
const ENDING = 4

/** A term, with the words of its family that the passages have as synonyms. */
function withVariants(term: AskedTerm, vocabulary: ReadonlySet<string>): AskedTerm {
  const { stem: root } = term
  if (!/^\p{L}{5,}$/u.test(root)) return term
  const family = [...vocabulary].filter((other) => other !== root && isOfFamily(root, other))
  return family.length === 0 ? term : { ...term, synonyms: new Set([...term.synonyms, ...family]) }
}

function isOfFamily(a: string, b: string): boolean {
  let common = 0
  while (common < a.length && a[common] === b[common]) common += 1
  return common >= FAMILY && a.length - common <= ENDING && b.length - common <= ENDING
}
