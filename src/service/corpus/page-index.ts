import type { CorpusDocument } from './corpus.ts'

/** Adds pages to the index and removes them. A key is any URL: several pages may state the same URL of their document. */
export interface PageWriter {
  /** Adds or replaces a page. `place` is the path whose words its passages are found by. */
  put(key: string, place: string, document: CorpusDocument): void
  remove(key: string): void
}

/** The documents of the index that are no files. A file whose document has the same URL takes precedence. */
export interface PageIndex {
  /** Number of pages in the index. */
  count(): number
  /** Number of pages with these keys in the index. */
  countOf(keys: readonly string[]): number
  /** Runs `work` in one transaction of the database, after the queued updates of files; not at all once the corpus is closed. */
  update(work: (pages: PageWriter) => void): Promise<void>
  /** Sets what `Corpus.settled` calls, and waits for, before it scans the folders. */
  refreshBy(refresh: () => Promise<void>): void
}
