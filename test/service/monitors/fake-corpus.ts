import type { Corpus, CorpusDocument, CorpusQuery, Passage } from '../../../src/service/corpus/corpus.ts'

/** A document of the fake corpus: each of its paragraphs is a passage. */
interface FakeDocument {
  readonly title: string
  readonly publishDate: string | null
  readonly paragraphs: readonly string[]
}

/** An in-memory corpus, which a test can change, break and block. */
export class FakeCorpus implements Corpus {
  readonly #documents = new Map<string, FakeDocument>()
  #settled: Promise<void> = Promise.resolve()
  /** The error that every search throws, if set. */
  failure: Error | undefined
  /** All queries. */
  readonly queries: CorpusQuery[] = []

  get size(): number {
    return this.#documents.size
  }

  /** Adds a document or changes it. */
  put(url: string, paragraphs: readonly string[], publishDate: string | null = null): void {
    this.#documents.set(url, { title: `Title of ${url}`, publishDate, paragraphs })
  }

  remove(url: string): void {
    this.#documents.delete(url)
  }

  /** Blocks `settled` until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#settled = promise
    return resolve
  }

  passages(query: CorpusQuery): Passage[] {
    this.queries.push(query)
    if (this.failure !== undefined) throw this.failure
    const words = query.queries.join(' ').toLowerCase().split(/\s+/)
    const domains = query.sourcePolicy?.include_domains
    return [...this.#documents]
      .filter(([url]) => domains === undefined || domains.includes(new URL(url).hostname))
      .flatMap(([url, { title, publishDate, paragraphs }]) =>
        paragraphs
          .filter((text) => words.every((word) => text.toLowerCase().includes(word)))
          .map((text) => ({
            url,
            title,
            publishDate,
            kind: 'page' as const,
            text,
            hash: `${url}#${text}`,
            score: 1,
          })),
      )
      .slice(0, query.limit)
  }

  search(): never {
    throw new Error('monitors search for passages')
  }

  unusedTerms(): never {
    throw new Error('monitors search for passages')
  }

  named(): [] {
    return []
  }

  entity(): never {
    throw new Error('monitors search for passages')
  }

  document(url: string): CorpusDocument | undefined {
    const found = this.#documents.get(url)
    if (found === undefined) return undefined
    const { title, publishDate, paragraphs } = found
    return { url, title, publishDate, kind: 'page', text: paragraphs.join('\n\n') }
  }

  settled(): Promise<void> {
    return this.#settled
  }

  onChange() {
    return () => {}
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
