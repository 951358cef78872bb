import type { SourcePolicy } from '../../protocol/task.ts'
import { isObject } from '../../protocol/event.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { isStopWord, words } from '../corpus/terms.ts'

/** What a run is about. */
export interface Subject {
  /** Names in the input that documents bear: their title, file or folder. */
  readonly names: readonly string[]
  /** The rest of the input: words to look for. */
  readonly text: string
}

/** Words of a value that may be a name, at the most. */
const LONGEST_NAME = 6
/** Names of a subject, at the most. Each is a search for every field, where nothing is found. */
const MOST_NAMES = 6
/** Values and words of an input that are tried as names, at the most. */
const MOST_CANDIDATES = 24
/** Characters of the input that are read. */
const LONGEST_INPUT = 4_000
/** Values within values, at the most. */
const DEEPEST = 4

/** Finds out what an input is about: `{ package: 'undici' }` names the documents in the folder `undici`. */
export function readSubject(corpus: Corpus, input: unknown, sourcePolicy: SourcePolicy | undefined): Subject {
  const bearsName = (name: string) =>
    corpus.search(
      { queries: [name], about: name, sourcePolicy, limit: 1 },
      { charactersPerResult: 1, excerptsPerResult: 1 },
    ).length > 0

  const names = new Set<string>()
  const rest: string[] = []
  let left = MOST_CANDIDATES
  for (const value of valuesOf(input)) {
    const text = value.slice(0, LONGEST_INPUT).trim()
    const length = words(text).length
    if (length === 0) continue
    if (length <= LONGEST_NAME && names.size < MOST_NAMES && left-- > 0 && bearsName(text)) names.add(text)
    else rest.push(text)
  }
  if (names.size === 0) {
    for (const word of rest.flatMap(nameLike)) {
      if (names.size < MOST_NAMES && left-- > 0 && bearsName(word)) names.add(word)
    }
  }
  return { names: [...names], text: rest.join(' ') }
}

/** Every text in an input, in its order. */
function valuesOf(input: unknown, depth = 0): string[] {
  if (typeof input === 'string') return [input]
  if (typeof input === 'number') return [String(input)]
  if (depth >= DEEPEST) return []
  if (Array.isArray(input)) return input.flatMap((value) => valuesOf(value, depth + 1))
  return isObject(input) ? Object.values(input).flatMap((value) => valuesOf(value, depth + 1)) : []
}

/** The words in a sentence that can be names: `@scope/package`, `eventsource-parser`, `rxjs`. */
function nameLike(text: string): string[] {
  const found = text.match(/@?[\p{L}\p{N}][\p{L}\p{N}._-]*(?:\/[\p{L}\p{N}._-]+)*/gu) ?? []
  return found
    .map((word) => word.replace(/[._-]+$/, ''))
    .filter((word) => word.length > 1 && !isStopWord(word.toLowerCase()))
}
