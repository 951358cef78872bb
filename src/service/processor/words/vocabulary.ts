import { MAX_TERMS } from '../../corpus/query-terms.ts'
import { stem } from '../../corpus/stems.ts'
import { isStopWord, words } from '../../corpus/terms.ts'

/** A common subject of questions: its synonyms, and the form of an answer. Other questions are matched by their words only. */
interface Concept {
  readonly words: readonly string[]
  readonly answer: RegExp
}

const CONCEPTS: readonly Concept[] = [
  {
    words: ['licence', 'license', 'licensed', 'licensing'],
    answer:
      /\b(?:MIT|ISC|Apache(?:[- ](?:License)?,?\s*(?:Version )?2\.0)?|BSD(?:-\d)?|[AL]?GPL(?:v?\d)?|MPL|Unlicense|CC0|CC[- ]BY|0BSD|BlueOak|Public Domain)\b/,
  },
  {
    words: ['install', 'installation', 'setup'],
    answer:
      /\b(?:npm|pnpm|yarn|bun|deno|pip3?|pipx|cargo|brew|gem|composer|apt|apt-get|dnf|go|nuget|conda)\s+(?:install|i|add|get|require|create|init)\b/,
  },
  { words: ['version', 'release'], answer: /\bv?\d+\.\d+(?:\.\d+)?\b/ },
  { words: ['homepage', 'website', 'repository'], answer: /https?:\/\/\S+/ },
  { words: ['requirement', 'requires', 'prerequisite'], answer: /\b(?:requires?|needs?|at least)\b|>=/i },
]

/** Words that ask for a definition. */
const DEFINITION_WORDS =
  'about aim definition describe description does goal intro introduction is mean meaning overview purpose summary'

/** Generic words for things and answers, which are not search terms. */
const GENERIC_WORDS =
  'answer brief briefly command company detail document example explain field following give include includes included information item library ' +
  'line list main module name number one package page paragraph product project sentence short software string tell ' +
  'text thing tool value way words'

/** Maximum length of a question that is read, in characters. */
const MAX_QUESTION_LENGTH = 5_000

const conceptOfStem: ReadonlyMap<string, Concept> = new Map(
  CONCEPTS.flatMap((concept) => concept.words.map((word): [string, Concept] => [stem(word), concept])),
)
const definitionStems: ReadonlySet<string> = new Set(DEFINITION_WORDS.split(' ').map(stem))
const genericStems: ReadonlySet<string> = new Set(GENERIC_WORDS.split(' ').map(stem))

/** A term of a question: any of its stems matches. */
export interface Term {
  /** The word in the question. */
  readonly word: string
  /** The word and its synonyms. */
  readonly words: readonly string[]
  readonly stems: ReadonlySet<string>
  /** The form of an answer, if it is known. */
  readonly answer: RegExp | undefined
}

/** A parsed question. */
export interface ParsedQuestion {
  readonly terms: readonly Term[]
  /** Whether it asks for a definition. */
  readonly asksForDefinition: boolean
}

/** Parses a question. `except` are words that are not terms, such as the name of the document. */
export function questionOf(text: string, except: readonly string[] = []): ParsedQuestion {
  const skipped = new Set(except)
  const terms = new Map<string, Term>()
  let asksForDefinition = false
  for (const word of words(text.slice(0, MAX_QUESTION_LENGTH))) {
    const root = stem(word)
    if (definitionStems.has(root)) asksForDefinition = true
    if (isStopWord(word) || definitionStems.has(root) || genericStems.has(root) || skipped.has(word)) continue
    const concept = conceptOfStem.get(root)
    const names = concept === undefined ? [word] : [word, ...concept.words.filter((name) => name !== word)]
    const key = concept?.words[0] ?? root
    // As many as a search uses, since every unit is compared with each of them.
    if (!terms.has(key) && terms.size < MAX_TERMS) {
      terms.set(key, { word, words: names, stems: new Set(names.map(stem)), answer: concept?.answer })
    }
  }
  return { terms: [...terms.values()], asksForDefinition: asksForDefinition || terms.size === 0 }
}

/** Splits a name into words: `releaseDate` and `release_date` are two words each. */
export function splitName(text: string): string {
  return text.replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2').replaceAll('_', ' ')
}

/** The stems of a text's words, and of the words in its names. */
export function stemsOf(text: string): Set<string> {
  return new Set([...words(text), ...words(splitName(text))].map(stem))
}
