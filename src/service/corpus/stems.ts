import { DatabaseSync } from 'node:sqlite'
import { TOKENIZER } from './tables.ts'

/** Words whose stems are remembered, at the most. A document has some thousands of them, and they repeat. */
const MOST_REMEMBERED = 20_000

/** Finds the stems of words, and caches a bounded number of them. */
export function createStemmer(mostRemembered: number): (word: string) => string {
  const remembered = new Map<string, string>()
  let lookUp: ((word: string) => string | undefined) | undefined
  return (word) => {
    const known = remembered.get(word)
    if (known !== undefined) return known
    lookUp ??= openTokenizer()
    const found = lookUp(word) ?? word
    if (remembered.size >= mostRemembered) remembered.clear()
    remembered.set(word, found)
    return found
  }
}

/**
 * The stem of a word in lower case: `instal` for `installed`. It is what FTS5's own tokenizer makes of it, so that what a
 * search finds by a word and what is read in it by that word are the same.
 */
export const stem = createStemmer(MOST_REMEMBERED)

/** FTS5 shows what it makes of a text only in an index: one in memory that never holds more than a word. */
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
