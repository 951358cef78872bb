import type { DatabaseSync } from 'node:sqlite'
import { transaction } from '../database.ts'

/** Counts up whenever documents are read or split in another way: an index made by another version is made anew. */
const LAYOUT = 4

/** How FTS5 takes texts apart: words without their accents and endings. */
export const TOKENIZER = 'porter unicode61 remove_diacritics 2'

/**
 * A passage's id is its document's id, shifted by this, plus its number within the document. So neighbours have
 * neighbouring ids, and the document of a match is known without a look-up. No document that is small enough to be read
 * has 2 ** 22 of them, so that none has the last one before the next document's first.
 */
const PASSAGE_BITS = 22

/** The SQL for the document that a passage's id belongs to. */
export const documentOf = (passage: string) => `(${passage} >> ${PASSAGE_BITS})`

/** The document that a passage's id belongs to. */
export function documentOfPassage(passage: number): number {
  return Math.floor(passage / 2 ** PASSAGE_BITS)
}

/** The first id that a document's passages can have; the next document's first one ends the range. */
export function firstPassage(document: number): number {
  return document * 2 ** PASSAGE_BITS
}

/**
 * Creates the corpus's tables where they are missing.
 *
 * - `corpus_files`: each file that was looked at. It is a document where `visible` is 1; else it could not be read as
 *   text (`url` is null), or another file has the same URL.
 * - `corpus_passages`: the text in passages. `gap` is the white space up to the next one, so the passages of a document
 *   and their gaps, one after the other, are its text.
 * - `corpus_terms`: the FTS5 index over the passages. It keeps no text of its own. `place` holds the path of the
 *   document below its folder, so that `undici` finds the read-me in the folder of that name.
 */
export function createTables(database: DatabaseSync): void {
  transaction(database, () => {
    database.exec('CREATE TABLE IF NOT EXISTS corpus_layout (version INTEGER NOT NULL)')
    const found = database.prepare('SELECT version FROM corpus_layout').get()?.['version']
    if (found === LAYOUT) return
    database.exec(`
      DROP TABLE IF EXISTS corpus_files;
      DROP TABLE IF EXISTS corpus_passages;
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
        text_hash TEXT,
        visible INTEGER NOT NULL DEFAULT 0
      );
      CREATE INDEX corpus_files_by_url ON corpus_files (url, path);
      CREATE INDEX corpus_files_by_host ON corpus_files (host) WHERE visible = 1;

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
    `)
  })
}
