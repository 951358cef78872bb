import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomOf } from '../random.ts'

/** The vocabulary of the documents. The n-th most common word is n times as rare as the first (Zipf's law). */
const VOCABULARY = 30_000
/** The most common words, which no query contains, like articles and prepositions. */
const COMMON = 100
const PARAGRAPHS = 4
const WORDS_PER_PARAGRAPH = 75
const FILES_PER_FOLDER = 500

const SYLLABLES = [
  'ba',
  'ce',
  'di',
  'fo',
  'gu',
  'ha',
  'ke',
  'li',
  'mo',
  'nu',
  'pa',
  're',
  'si',
  'to',
  'vu',
  'za',
]

/**
 * Writes this many documents of 300 words (about 2 KB) to the folder, deterministically, and returns as many queries of three words
 * that occur together in a document and are not among the most common ones.
 */
export function writeDocuments(folder: string, documents: number, queries: number): readonly string[] {
  const random = randomOf(1)
  const asked: string[] = []
  for (let number = 0; number < documents; number++) {
    if (number % FILES_PER_FOLDER === 0) mkdirSync(folderOf(folder, number), { recursive: true })
    const title = Array.from({ length: 4 }, () => word(drawn(random)))
    const ranks = Array.from({ length: PARAGRAPHS * WORDS_PER_PARAGRAPH }, () => drawn(random))
    writeFileSync(join(folderOf(folder, number), `${number}.md`), markdown(title, ranks))
    if (number % Math.floor(documents / queries) === 0) asked.push(query(ranks, random))
  }
  return asked.slice(0, queries)
}

function folderOf(folder: string, number: number): string {
  return join(folder, String(Math.floor(number / FILES_PER_FOLDER)))
}

function markdown(title: readonly string[], ranks: readonly number[]): string {
  const paragraphs = Array.from({ length: PARAGRAPHS }, (_, at) =>
    ranks.slice(at * WORDS_PER_PARAGRAPH, (at + 1) * WORDS_PER_PARAGRAPH),
  )
  return `# ${title.join(' ')}\n\n${paragraphs.map((words) => `${words.map(word).join(' ')}.`).join('\n\n')}\n`
}

function query(ranks: readonly number[], random: () => number): string {
  const candidates = [...new Set(ranks)].filter((rank) => rank > COMMON)
  const words = Array.from({ length: 3 }, () => {
    const [rank = 0] = candidates.splice(Math.floor(random() * candidates.length), 1)
    return word(rank)
  })
  return words.join(' ')
}

/** A random rank, from 1, by Zipf's law. */
function drawn(random: () => number): number {
  return Math.floor(VOCABULARY ** random())
}

function word(rank: number): string {
  let rest = rank
  let text = ''
  do {
    text += SYLLABLES[rest % SYLLABLES.length]
    rest = Math.floor(rest / SYLLABLES.length)
  } while (rest > 0)
  // Without suffixes that the tokenizer's stemmer removes.
  return `${text}x`
}
