import type { PageSource } from '../extract/page.ts'
import type { ListingSource } from '../live-documents/listing-content.ts'

/** A pattern, and the texts that it is matched against. */
interface PatternInput {
  readonly pattern: string
  readonly texts: readonly string[]
}

/** A value and its schema, as JSON. */
interface ContentInput {
  readonly schema: string
  readonly value: string
}

/**
 * The jobs that the isolated thread executes. Each job may take any time and any memory. Its modules are loaded when it is first used,
 * which is no part of its time.
 */
export const jobs = {
  async checkSchema() {
    const { checkSchema } = await import('../processor/schema/json-schema.ts')
    return (schema: string) => checkSchema(schema)
  },
  async readSchema() {
    const { readSchema } = await import('../processor/schema/schema.ts')
    return (schema: string) => readSchema(JSON.parse(schema))
  },
  async validate() {
    const { validateContent } = await import('../processor/schema/json-schema.ts')
    return ({ schema, value }: ContentInput) => validateContent(schema, value)
  },
  async matchPattern() {
    const { matchPattern } = await import('./match-pattern.ts')
    return ({ pattern, texts }: PatternInput) => matchPattern(pattern, texts)
  },
  async readPage() {
    const { readPage } = await import('../extract/page.ts')
    return (source: PageSource) => readPage(source)
  },
  async readListing() {
    const { readListingContent } = await import('../live-documents/listing-content.ts')
    return (source: ListingSource) => readListingContent(source)
  },
  async parseHtml() {
    const { parseHtml } = await import('../corpus/html.ts')
    return (source: string) => parseHtml(source)
  },
  async parseMarkdown() {
    const { parseMarkdown } = await import('../corpus/markdown.ts')
    return (source: string) => parseMarkdown(source)
  },
}
