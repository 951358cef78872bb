import { isObject } from '../../../protocol/json.ts'
import type { Turn } from '../../interactions/interactions.ts'
import { isStopWord, words } from '../../corpus/terms.ts'
import type { Place } from '../passages/place.ts'

/** The subject of a run. */
export interface Subject {
  /** Names in the input that are the title, file or folder of a document, the main one first. */
  readonly names: readonly string[]
  /** The rest of the input, as search terms. */
  readonly text: string
}

/** Maximum number of words of a name. */
const MAX_NAME_WORDS = 6
/** Maximum number of names of a subject. Each may cost a search for every field. */
const MAX_NAMES = 6
/** Maximum number of values and words of an input that are tried as names. */
const MAX_CANDIDATES = 24
/** Maximum length of an input value that is read, in characters. */
const MAX_INPUT_LENGTH = 4_000
/** Maximum depth of nested values. */
const MAX_DEPTH = 4

/** Finds the subject of an input: `{ package: 'undici' }` is about the things of that name. */
export function readSubject(place: Place, input: unknown): Subject {
  const names = new Set<string>()
  const rest: string[] = []
  let remaining = MAX_CANDIDATES
  for (const value of valuesOf(input)) {
    const text = value.slice(0, MAX_INPUT_LENGTH).trim()
    const length = words(text).length
    if (length === 0) continue
    const isShort = length <= MAX_NAME_WORDS && names.size < MAX_NAMES
    if (isShort && remaining-- > 0 && place.thing(text) !== undefined) names.add(text)
    else rest.push(text)
  }
  if (names.size > 0) return { names: [...names], text: rest.join(' ') }
  const found = rest.flatMap((text) => namesIn(text)).slice(0, remaining)
  const things = found.filter(({ name }) => isThing(place, name))
  const best = things.toSorted((a, b) => b.score - a.score).map(({ name }) => name)
  return { names: [...new Set(best)].slice(0, MAX_NAMES), text: rest.join(' ') }
}

/**
 * The subject of a question that continues an interaction: a question without a name, such as "And its licence?", is about
 * the subject of the latest turn that has one.
 */
export function continued(place: Place, subject: Subject, context: readonly Turn[]): Subject {
  if (subject.names.length > 0) return subject
  for (const { question } of context.toReversed()) {
    const { names } = readSubject(place, parsed(question))
    if (names.length > 0) return { names, text: subject.text }
  }
  const earlier = context.at(-1)?.question
  return earlier === undefined ? subject : { names: [], text: `${earlier} ${subject.text}` }
}

/** The input of a turn, which is JSON if it was an object. */
function parsed(question: string): unknown {
  if (!question.startsWith('{')) return question
  try {
    return JSON.parse(question)
  } catch {
    return question
  }
}

/** All strings in an input, in order. */
function valuesOf(input: unknown, depth = 0): string[] {
  if (typeof input === 'string') return [input]
  if (typeof input === 'number') return [String(input)]
  if (depth >= MAX_DEPTH) return []
  if (Array.isArray(input)) return input.flatMap((value) => valuesOf(value, depth + 1))
  return isObject(input) ? Object.values(input).flatMap((value) => valuesOf(value, depth + 1)) : []
}

/** A word of a sentence that may be the name of its subject. */
interface NameLike {
  readonly name: string
  readonly score: number
}

/** Names of platforms. A question that names one is usually about something that runs on it. */
const PLATFORMS = new Set(
  'node typescript javascript deno bun browser browsers react http json yaml'.split(' '),
)
/** Names of documents that many things have. */
const ORDINARY = new Set(
  (
    'readme license licence changelog history index docs api package packages security contributing upgrade authors notice ' +
    'version versions install installation author default error errors function method option options name type types'
  ).split(' '),
)
/** Words before the subject of a question. */
const BEFORE =
  /(?:^|\s)(?:of|for|in|by|does|do|is|are|can|has|have|did|will|using|use|with|install|package|library|module|about|the)\s+[`"'“]?$/i
/** Words that precede a thing with which the subject is compared. */
const COMPARED = /\b(?:than|versus|vs\.?|like|unlike|instead of|compared (?:to|with)|to replace)\s+[`"'“]?$/i
const AFTER = /^[`"'”]?(?:['’]s\b|\s+(?:package|library|module|project)\b)/i

/** Words in a sentence that may be names: `@scope/package`, `eventsource-parser`, `rxjs`. The likeliest subject scores best. */
function namesIn(text: string): NameLike[] {
  const found: NameLike[] = []
  for (const { 0: match, index } of text.matchAll(
    /@?[\p{L}\p{N}][\p{L}\p{N}._-]*(?:\/[\p{L}\p{N}._-]+)*/gu,
  )) {
    const name = match.replace(/[._-]+$/, '')
    const lower = name.toLowerCase()
    if (name.length < 2 || isStopWord(lower) || ORDINARY.has(lower)) continue
    let score = -index / 10_000
    if (/[-@/._\d]|\p{Ll}\p{Lu}/u.test(name)) score += 2
    if (BEFORE.test(text.slice(Math.max(0, index - 20), index))) score += 2
    if (AFTER.test(text.slice(index + name.length, index + name.length + 12))) score += 2
    if (PLATFORMS.has(lower)) score -= 4
    if (COMPARED.test(text.slice(Math.max(0, index - 20), index))) score -= 4
    // A capital in the middle of a sentence marks a name, but names of packages have none.
    if (index > 0 && /^\p{Lu}/u.test(name)) score -= 0.5
    found.push({ name, score })
  }
  return found
}

/** Whether a word names a folder with a README or a manifest, or a single document with that title. */
function isThing(place: Place, name: string): boolean {
  const thing = place.thing(name)
  if (thing === undefined) return false
  const isIntroduced = thing.root.some(({ kind }) => kind === 'readme' || kind === 'manifest')
  return isIntroduced || thing.documents.length === 1
}
