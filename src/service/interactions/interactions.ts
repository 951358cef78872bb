import type { DatabaseSync } from 'node:sqlite'
import { cutText } from '../../protocol/cut-text.ts'

/** One question and its answer, as text. */
export interface Turn {
  readonly question: string
  /** Empty if the question has no answer, because its run failed. */
  readonly answer: string
}

/** A turn to store. */
export interface Interaction extends Turn {
  readonly id: string
  /** The interaction that this one continues. */
  readonly previous?: string | undefined
}

/** Maximum number of turns that {@link Interactions.turns} returns. */
const MAX_TURNS = 16
/** Maximum length of a stored question and of a stored answer, in characters; the rest is dropped. */
const MAX_TEXT = 8_000
/** Maximum length of all turns that {@link Interactions.turns} returns, in characters. */
const MAX_CONTEXT = 32_000

/** The latest turns, in the same order: at most 16, each clipped, of 32,000 characters together. */
export function latestTurns(turns: readonly Turn[]): readonly Turn[] {
  const latest: Turn[] = []
  let characters = 0
  for (const { question, answer } of turns.slice(-MAX_TURNS).toReversed()) {
    const turn = { question: cutText(question, MAX_TEXT), answer: cutText(answer, MAX_TEXT) }
    characters += turn.question.length + turn.answer.length
    if (characters > MAX_CONTEXT) break
    latest.unshift(turn)
  }
  return latest
}

/** Questions and answers of runs, chats and responses, from which a later request continues. Beyond the interface document. */
export class Interactions {
  readonly #insert
  readonly #remove
  readonly #chain

  constructor(database: DatabaseSync) {
    database.exec(`
      CREATE TABLE IF NOT EXISTS interactions (
        interaction_id TEXT PRIMARY KEY,
        previous_id TEXT,
        question TEXT NOT NULL,
        answer TEXT NOT NULL
      ) STRICT, WITHOUT ROWID;
    `)
    this.#insert = database.prepare(
      `INSERT INTO interactions (interaction_id, previous_id, question, answer) VALUES (?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
    )
    // In the order of bytes, the slash follows the dot.
    this.#remove = database.prepare(
      `DELETE FROM interactions WHERE interaction_id = ?1 OR (interaction_id > ?1 || '.' AND interaction_id < ?1 || '/')`,
    )
    // The limit also ends a chain that refers to itself.
    this.#chain = database.prepare(
      `WITH RECURSIVE chain (depth, previous_id, question, answer) AS (
         SELECT 1, previous_id, question, answer FROM interactions WHERE interaction_id = ?
         UNION ALL
         SELECT chain.depth + 1, earlier.previous_id, earlier.question, earlier.answer
         FROM chain JOIN interactions AS earlier ON earlier.interaction_id = chain.previous_id
         WHERE chain.depth < ${MAX_TURNS}
       )
       SELECT question, answer FROM chain ORDER BY depth`,
    )
  }

  /** Stores a turn, in the transaction of the caller. An id that is stored already keeps its turn. */
  add({ id, previous, question, answer }: Interaction): void {
    this.#insert.run(id, previous ?? null, cutText(question, MAX_TEXT), cutText(answer, MAX_TEXT))
  }

  /** Removes a turn, and those whose ids are its own with a dot and more. */
  remove(id: string): void {
    this.#remove.run(id)
  }

  /**
   * The turns of an interaction, oldest first, itself included; undefined if the id is unknown. A long interaction returns only its latest
   * turns: at most 16, of 32,000 characters together.
   */
  turns(id: string): readonly Turn[] | undefined {
    const turns: Turn[] = []
    let characters = 0
    for (const row of this.#chain.iterate(id)) {
      const turn = { question: String(row['question']), answer: String(row['answer']) }
      characters += turn.question.length + turn.answer.length
      if (characters > MAX_CONTEXT) break
      turns.unshift(turn)
    }
    return turns.length === 0 ? undefined : turns
  }
}
