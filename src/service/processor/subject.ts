import type { SourcePolicy } from '../../protocol/task.ts'
import { isObject } from '../../protocol/event.ts'
import type { Turn } from '../interactions/interactions.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { isStopWord, words } from '../corpus/terms.ts'

/** What a run is about. */
export interface Subject {
  /** Names in the input that are the title, file or folder of a document. */
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

/** Finds the subject of an input: `{ package: 'undici' }` names the documents in the folder `undici`. */
export function readSubject(corpus: Corpus, input: unknown, sourcePolicy: SourcePolicy | undefined): Subject {
  const isName = (name: string) =>
    corpus.search(
      { queries: [name], about: name, sourcePolicy, limit: 1 },
      { charactersPerResult: 1, excerptsPerResult: 1 },
    ).length > 0

  const names = new Set<string>()
  const rest: string[] = []
  let remaining = MAX_CANDIDATES
  for (const value of valuesOf(input)) {
    const text = value.slice(0, MAX_INPUT_LENGTH).trim()
    const length = words(text).length
    if (length === 0) continue
    if (length <= MAX_NAME_WORDS && names.size < MAX_NAMES && remaining-- > 0 && isName(text)) names.add(text)
    else rest.push(text)
  }
  if (names.size === 0) {
    for (const word of rest.flatMap(nameLike)) {
      if (names.size < MAX_NAMES && remaining-- > 0 && isName(word)) names.add(word)
    }
  }
  return { names: [...names], text: rest.join(' ') }
}

/**
 * The subject of a question that continues an interaction: a question without a name, such as "And its licence?", is about
 * the subject of the latest turn that has one.
 */
export function continued(
  corpus: Corpus,
  subject: Subject,
  context: readonly Turn[],
  sourcePolicy: SourcePolicy | undefined,
): Subject {
  if (subject.names.length > 0) return subject
  for (const { question } of context.toReversed()) {
    const { names } = readSubject(corpus, parsed(question), sourcePolicy)
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

/** Words in a sentence that may be names: `@scope/package`, `eventsource-parser`, `rxjs`. */
function nameLike(text: string): string[] {
  const found = text.match(/@?[\p{L}\p{N}][\p{L}\p{N}._-]*(?:\/[\p{L}\p{N}._-]+)*/gu) ?? []
  return found
    .map((word) => word.replace(/[._-]+$/, ''))
    .filter((word) => word.length > 1 && !isStopWord(word.toLowerCase()))
}
