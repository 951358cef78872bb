import { stem } from '../corpus/stems.ts'
import { otherSpelling } from '../corpus/spelling.ts'
import { isStopWord, words } from '../corpus/terms.ts'
import type { Place, Thing } from '../processor/passages/place.ts'
import { readSubject } from '../processor/question/subject.ts'
import { synonymsOf } from '../processor/words/synonyms.ts'
import { isNovelty, isWeak, relatedWords, type Topic, topicOf } from './topics.ts'

/** A word of a query that is neither its subject nor a topic. */
interface InterestTerm {
  readonly word: string
  /** The stems of the word, in each spelling. */
  readonly stems: ReadonlySet<string>
  readonly synonyms: ReadonlySet<string>
  /** Words that may stand for it. */
  readonly related: readonly string[]
  readonly weight: number
}

/** The target of a query in natural language. */
export interface Interest {
  /** The things whose documents it is about; empty if it names none that has documents now. */
  readonly subjects: readonly Thing[]
  /** The topics. One of them must be stated. */
  readonly topics: readonly Topic[]
  readonly terms: readonly InterestTerm[]
}

/** Maximum number of words of a query that are read, and of terms. */
const MAX_WORDS = 64
const MAX_TERMS = 24
/** Maximum number of words of a subject that is a title, such as “security policy”. */
const MAX_TITLE_WORDS = 4
/** Maximum number of subjects. */
const MAX_SUBJECTS = 4
const WEAK_WEIGHT = 0.2
/** The share of a query's words that a statement must be about. */
const MIN_COVERAGE = 0.6

/** Whether a query has words besides those that a passage is expected to have, such as “new” and “in”. */
export function isNaturalLanguage(query: string): boolean {
  return words(query).some((word) => isStopWord(word) || isNovelty(stem(word)))
}

/** Whether a query asks for a topic, such as security. */
export function hasTopic(query: string): boolean {
  return words(query).some((word) => topicOf(stem(word)) !== undefined)
}

/** Reads a query in natural language; undefined if it asks for nothing in particular. */
export function readInterest(query: string, place: Place): Interest | undefined {
  const text = query
    .split(/\s+/)
    .filter((word) => word !== '')
    .slice(0, MAX_WORDS)
    .join(' ')
  const { subjects, rest } = subjectsIn(text, place)
  const named = interestOf(subjects, words(rest))
  const found = areAbout(named, place) ? named : interestOf([], words(text))
  return found.subjects.length + found.topics.length + found.terms.length === 0 ? undefined : found
}

function interestOf(subjects: readonly Thing[], all: readonly string[]): Interest {
  const asked = [...new Set(all.flatMap((word) => topicOf(stem(word)) ?? []))]
  const special = asked.filter((topic) => topic.isGeneral !== true)
  const terms = termsOf(all)
  // “The Node version that undici needs” asks for no release of undici.
  const isDetailed = subjects.length > 0 && terms.some(({ weight }) => weight === 1)
  const general = asked.filter(({ name }) => !isDetailed || name !== 'releases')
  return { subjects, topics: special.length > 0 ? special : general, terms }
}

/** Whether the subjects are likely: packages always, single documents only if they have a word of the rest of the query. */
function areAbout({ subjects, terms }: Interest, place: Place): boolean {
  const strong = terms.filter(({ weight }) => weight === 1)
  if (strong.length === 0 || !subjects.every(isAlone)) return true
  return subjects.some(({ documents }) =>
    documents.some(({ url, title }) => {
      const found = stemsIn(`${title} ${place.document(url)?.text ?? ''}`)
      return strong.some(({ stems, synonyms }) => hasAny(found, stems) || hasAny(found, synonyms))
    }),
  )
}

function isAlone({ documents }: Thing): boolean {
  return documents.every(({ kind }) => kind !== 'readme' && kind !== 'manifest')
}

/** The subjects that a text names, and the text without their names. Titles of several words come before single words. */
function subjectsIn(
  text: string,
  place: Place,
): { readonly subjects: readonly Thing[]; readonly rest: string } {
  const title = titleIn(text, place)
  if (title !== undefined) return { subjects: [title.thing], rest: title.rest }
  // Words of topics are often names of documents too: many packages have a SECURITY.md.
  const candidates = blanked(text, (word) => isNovelty(stem(word)) || topicOf(stem(word)) !== undefined)
  const [main, ...others] = readSubject(place, [candidates]).names
  if (main === undefined) return { subjects: [], rest: text }
  const names = [main, ...others.filter((name) => areListed(text, main, name))].slice(0, MAX_SUBJECTS)
  const subjects = names.flatMap((name) => place.thing(name) ?? [])
  return { subjects, rest: names.reduce(without, text) }
}

/** A part of the text that is the title of a document, or the name of a folder, of several words. */
function titleIn(text: string, place: Place): { readonly thing: Thing; readonly rest: string } | undefined {
  const all = [...text.matchAll(/[^\s"“”'‘’,;:?!()]+/g)]
  for (let length = Math.min(MAX_TITLE_WORDS, all.length); length > 1; length--) {
    for (let first = 0; first + length <= all.length; first++) {
      const part = all.slice(first, first + length)
      const [start, end] = [part[0], part.at(-1)]
      if (start === undefined || end === undefined) continue
      const name = text.slice(start.index, end.index + end[0].length).replace(/[.]+$/, '')
      const thing = place.thing(name)
      if (thing !== undefined && isIntroduced(thing)) return { thing, rest: without(text, name) }
    }
  }
  return undefined
}

function isIntroduced({ documents, root }: Thing): boolean {
  return documents.length === 1 || root.some(({ kind }) => kind === 'readme' || kind === 'manifest')
}

/** Whether two names stand in a list: `undici and hono`. */
function areListed(text: string, one: string, other: string): boolean {
  const [first, second] = [text.indexOf(one), text.indexOf(other)].toSorted((a, b) => a - b)
  if (first === undefined || second === undefined || first < 0) return false
  const between = text.slice(first + (text.startsWith(one, first) ? one : other).length, second)
  return /^\s*(?:,|\band\b|\bor\b|&|\/|[\w@/.-]+,\s*)+(?:\s*(?:and|or)\b)?\s*$/.test(between)
}

function without(text: string, name: string): string {
  const at = text.indexOf(name)
  return at < 0 ? text : `${text.slice(0, at)} ${text.slice(at + name.length)}`
}

/** A text with some of its words replaced with spaces. */
function blanked(text: string, isRemoved: (word: string) => boolean): string {
  return text.replace(/(?<![\p{L}\p{N}@/._-])\p{L}+(?![\p{L}\p{N}/._-]*[\p{L}\p{N}])/gu, (word) =>
    isRemoved(word.toLowerCase()) ? ' '.repeat(word.length) : word,
  )
}

function termsOf(all: readonly string[]): InterestTerm[] {
  const terms = new Map<string, InterestTerm>()
  for (const word of all) {
    const root = stem(word)
    const isFrame = isStopWord(word) || isNovelty(root) || topicOf(root) !== undefined
    if (isFrame || terms.has(root) || terms.size >= MAX_TERMS) continue
    const other = otherSpelling(word)
    const stems = new Set(other === undefined ? [root] : [root, stem(other)])
    const related = [...new Set([...relatedWords(root), ...synonymsOf(root)])]
    const synonyms = new Set(related.map(stem).filter((one) => !stems.has(one)))
    terms.set(root, { word, stems, synonyms, related, weight: isWeak(root) ? WEAK_WEIGHT : 1 })
  }
  const found = [...terms.values()]
  // A query of weak words only asks for them.
  return found.every(({ weight }) => weight < 1) ? found.map((term) => ({ ...term, weight: 1 })) : found
}

/** The words to search passages for. */
export function searchWords({ topics, terms }: Interest): string[] {
  const strong = terms.filter(({ weight }) => weight === 1)
  return [
    ...strong.map(({ word }) => word),
    ...topics.map(({ finds }) => finds),
    ...strong.map(({ related }) => related.join(' ')),
  ].filter((text) => text !== '')
}

/** A changed paragraph, line or list item, and the text around it. */
export interface ChangedBlock {
  /** The new statements of the block. */
  readonly statements: readonly string[]
  /** All of it. */
  readonly text: string
  /** The headings above it, without the document's title. */
  readonly headings: readonly string[]
  /** The passage that has it. */
  readonly passage: string
  readonly title: string
  readonly url: string
}

/** The quality of a word's match, by its position. */
const MATCH = { statement: 1, heading: 0.85, title: 0.7, place: 0.6, block: 0.5, passage: 0.1 } as const
const SYNONYM = 0.9

/** Whether a changed block is about a query. Its subject is not compared: the block is of one of its documents. */
export function isAbout({ topics, terms }: Interest, block: ChangedBlock): boolean {
  const topic = topics.length === 0 ? undefined : Math.max(...topics.map((one) => topicMatch(one, block)))
  // A topic must be in the statement or in a heading above it, not only in the same paragraph.
  if (topic !== undefined && topic < MATCH.heading) return false
  const stems = stemsAround(block)
  let matched = topic ?? 0
  let total = topic === undefined ? 0 : 1
  for (const term of terms) {
    matched += term.weight * termMatch(term, stems)
    total += term.weight
  }
  return total === 0 || matched / total >= MIN_COVERAGE
}

function topicMatch({ says, asks, inHeadings }: Topic, { statements, headings }: ChangedBlock): number {
  if (statements.some((statement) => says.test(statement)) || says.test(statements.join(' ')))
    return MATCH.statement
  if (!inHeadings) return 0
  const asked = new Set(asks.split(' ').map(stem))
  const isBelow = headings.some(
    (heading) => says.test(heading) || words(heading).some((word) => asked.has(stem(word))),
  )
  return isBelow ? MATCH.heading : 0
}

type SurroundingStems = readonly (readonly [match: number, stems: ReadonlySet<string>])[]

function stemsAround({ statements, text, headings, passage, title, url }: ChangedBlock): SurroundingStems {
  return [
    [MATCH.statement, stemsIn(statements.join(' '))],
    [MATCH.heading, stemsIn(headings.join(' '))],
    [MATCH.title, stemsIn(title)],
    [MATCH.place, stemsIn(placeOf(url))],
    [MATCH.block, stemsIn(text)],
    [MATCH.passage, stemsIn(passage)],
  ]
}

function termMatch({ stems, synonyms }: InterestTerm, around: SurroundingStems): number {
  let best = 0
  for (const [match, found] of around) {
    if (hasAny(found, stems)) best = Math.max(best, match)
    else if (hasAny(found, synonyms)) best = Math.max(best, match * SYNONYM)
  }
  return best
}

function hasAny(found: ReadonlySet<string>, wanted: ReadonlySet<string>): boolean {
  for (const one of wanted) if (found.has(one)) return true
  return false
}

function stemsIn(text: string): ReadonlySet<string> {
  return new Set(words(text).map(stem))
}

/** The last folders and the name of a document. */
function placeOf(url: string): string {
  return decoded(url.split('/').slice(3).slice(-4).join(' '))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
