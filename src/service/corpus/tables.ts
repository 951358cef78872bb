import type { DatabaseSync } from 'node:sqlite'
import { transaction } from '../database.ts'

/** Version of the index. Increment it when parsing or splitting changes: an index of another version is rebuilt. */
const LAYOUT = 7

/** The `root` of pages, which are no files. Their `path` is the URL that they were fetched from. */
export const PAGE_ROOT = 'page:'

/** FTS5 tokenizer: words without accents, stemmed. */
export const TOKENIZER = 'porter unicode61 remove_diacritics 2'

/**
 * A passage's id is its document's id, shifted by this, plus its index within the document. So adjacent passages have adjacent ids, except
 * in a manifest, and the document of a match needs no lookup. No document of the maximum size has 2 ** 22 passages.
 */
const PASSAGE_BITS = 22

/** SQL for the document of a passage's id. */
export const documentOf = (passage: string) => `(${passage} >> ${PASSAGE_BITS})`

/** The document of a passage's id. */
export function documentOfPassage(passage: number): number {
  return Math.floor(passage / 2 ** PASSAGE_BITS)
}

/** The id of a document's first passage; the range ends before the first passage of the next document. */
export function firstPassage(document: number): number {
  return document * 2 ** PASSAGE_BITS
}

/**
 * Creates the corpus's tables if they are missing or of another version.
 *
 * - `corpus_files`: each file that was read. It is a document if `visible` is 1; else it is not text (`url` is null), or
 *   another file has the same URL.
 * - `corpus_names`: the names of a document, see `namesOf`.
 * - `corpus_passages`: the text in passages. `gap` is the white space before the next one: passages and gaps, concatenated,
 *   are the text.
 * - `corpus_terms`: the FTS5 index of the passages, without their text. `place` is the path of the document within its
 *   folder, so that `undici` finds the README in the folder of that name.
 * - `corpus_vocabulary`: the terms of that index, with the number of passages that have them.
 */
export function createTables(database: DatabaseSync): void {
  transaction(database, () => {
    database.exec('CREATE TABLE IF NOT EXISTS corpus_layout (version INTEGER NOT NULL)')
    const found = database.prepare('SELECT version FROM corpus_layout').get()?.['version']
    if (found === LAYOUT) return
    database.exec(`
      DROP TABLE IF EXISTS corpus_files;
      DROP TABLE IF EXISTS corpus_names;
      DROP TABLE IF EXISTS corpus_passages;
      DROP TABLE IF EXISTS corpus_vocabulary;
      DROP TABLE IF EXISTS corpus_terms;
      DELETE FROM corpus_layout;
      INSERT INTO corpus_layout VALUES (${LAYOUT});

      CREATE TABLE corpus_files (
        id INTEGER PRIMARY KEY,
        root TEXT NOT NULL,
        path TEXT NOT NULL UNIQUE,
        place TEXT NOT NULL,
        stamp TEXT NOT NULL,
        read_at REAL NOT NULL,
        url TEXT,
        host TEXT,
        title TEXT,
        publish_date TEXT,
        kind TEXT,
        text_hash TEXT,
        visible INTEGER NOT NULL DEFAULT 0
      );
      CREATE INDEX corpus_files_by_url ON corpus_files (url, path);
      CREATE INDEX corpus_files_by_host ON corpus_files (host) WHERE visible = 1;

      CREATE TABLE corpus_names (
        name TEXT NOT NULL,
        document INTEGER NOT NULL,
        PRIMARY KEY (name, document)
      ) WITHOUT ROWID;
      CREATE INDEX corpus_names_by_document ON corpus_names (document);

      CREATE TABLE corpus_passages (
        id INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        gap TEXT NOT NULL
      );

      CREATE VIRTUAL TABLE corpus_terms USING fts5 (
        title, place, text,
        content = '', contentless_delete = 1,
        tokenize = '${TOKENIZER}'
      );
      CREATE VIRTUAL TABLE corpus_vocabulary USING fts5vocab (corpus_terms, row);
    `)
  })
}
