import { DatabaseSync } from 'node:sqlite'
import { TOKENIZER } from './tables.ts'

/** Maximum number of cached stems. A document has some thousands of words. */
const MAX_CACHED = 20_000

/** Finds the stems of words, and caches a bounded number of them. */
export function createStemmer(maxCached: number): (word: string) => string {
  const cache = new Map<string, string>()
  let lookUp: ((word: string) => string | undefined) | undefined
  return (word) => {
    const known = cache.get(word)
    if (known !== undefined) return known
    lookUp ??= openTokenizer()
    const found = lookUp(word) ?? word
    if (cache.size >= maxCached) cache.clear()
    cache.set(word, found)
    return found
  }
}

/** The stem of a lowercase word: `instal` for `installed`. Uses FTS5's tokenizer, so that it is consistent with searches. */
export const stem = createStemmer(MAX_CACHED)

/** FTS5 only exposes its tokens in an index, so this uses an in-memory index of one word. */
function openTokenizer(): (word: string) => string | undefined {
  const database = new DatabaseSync(':memory:')
  database.exec(`
    CREATE VIRTUAL TABLE word USING fts5 (text, content = '', detail = none, tokenize = '${TOKENIZER}');
    CREATE VIRTUAL TABLE stem USING fts5vocab (word, row);
  `)
  const clear = database.prepare("INSERT INTO word (word) VALUES ('delete-all')")
  const insert = database.prepare('INSERT INTO word (text) VALUES (?)')
  const read = database.prepare('SELECT term FROM stem ORDER BY term LIMIT 1')
  return (word) => {
    database.exec('BEGIN')
    try {
      insert.run(word)
      const term = read.get()?.['term']
      clear.run()
      return typeof term === 'string' ? term : undefined
    } finally {
      database.exec('ROLLBACK')
    }
  }
}
