import type { JsonSchema } from '../../protocol/requests/json-schema.ts'
import type { ParsedText } from '../corpus/parsed-text.ts'
import type { Page, PageSource } from '../extract/page.ts'
import type { ListingContent, ListingRefusal, ListingSource } from '../live-documents/listing-content.ts'
import type { SchemaIssue } from '../processor/schema/json-schema.ts'
import type { SchemaReading } from '../processor/schema/schema.ts'
import { IsolatedError } from './isolated-error.ts'
import { JobThread } from './job-thread.ts'
import type { jobs } from './jobs.ts'
import type { PatternMatch } from './match-pattern.ts'
import { WORKER_FILE } from './worker-file.ts'

/**
 * Work on schemas, patterns and pages that may be hostile, in a separate thread: the event loop of the service continues. Work
 * that was lost with its thread is tried once more. All methods reject with an {@link IsolatedError} unless they say otherwise.
 */
export interface Isolated {
  /**
   * Why a JSON schema cannot be used; empty if it can. A schema that exceeds its time or memory has an issue. Rejects when too many
   * jobs wait, and when the thread crashes.
   */
  checkSchema(schema: JsonSchema): Promise<readonly SchemaIssue[]>
  /** The fields of a JSON schema. */
  readSchema(schema: JsonSchema): Promise<SchemaReading>
  /**
   * The first reason why a value, as JSON, does not satisfy a schema; undefined if it does. A validation that exceeds its time or
   * memory has an issue.
   */
  validate(schema: JsonSchema, value: unknown): Promise<SchemaIssue | undefined>
  /** Matches a pattern of a JSON schema against texts, with a result for each. */
  matchPattern(pattern: string, texts: readonly string[]): Promise<readonly PatternMatch[]>
  /** Reads a page as Markdown. Rejects with the signal's reason when it aborts. */
  readPage(source: PageSource, signal?: AbortSignal): Promise<Page>
  /** Reads a sitemap or a feed; undefined for anything else. Rejects with the signal's reason when it aborts. */
  readListing(
    source: ListingSource,
    signal?: AbortSignal,
  ): Promise<ListingContent | ListingRefusal | undefined>
  /** Parses HTML for the index. Rejects with the signal's reason when it aborts. */
  parseHtml(source: string, signal?: AbortSignal): Promise<ParsedText>
  /** Parses Markdown for the index. Rejects with the signal's reason when it aborts. */
  parseMarkdown(source: string, signal?: AbortSignal): Promise<ParsedText>
  /** Rejects the work for requests and for pages of the web, also later work. The work of runs continues. */
  refuse(): void
  /** Ends the thread. Work that waits is rejected. */
  close(): Promise<void>
}

/** Maximum time for checking a schema, and for validating one value, in ms of real time. */
const MAX_SCHEMA_TIME = 1_000
/** Maximum time for a pattern to search the evidence of a field, in ms of real time. */
const MAX_PATTERN_TIME = 250
/** Maximum time for a page, a sitemap or a feed, in ms of real time. */
const MAX_PAGE_TIME = 3_000
/** Number of schemas whose issues are kept. */
const CACHE_SIZE = 64

/** Creates the thread, which starts with its first work, and executes this file. */
export function createIsolated(file: URL = WORKER_FILE): Isolated {
  const thread = new JobThread<typeof jobs>({ file })
  const checked = new Map<string, readonly SchemaIssue[]>()
  const page = (signal: AbortSignal | undefined) => ({ limit: MAX_PAGE_TIME, isRefusable: true, signal })

  /** The work may not be the cause of the crash, so the first crash does not count against it. */
  const run: typeof thread.run = (...job) =>
    thread.run(...job).catch((error: unknown) => {
      if (!(error instanceof IsolatedError) || error.kind !== 'crash') throw error
      return thread.run(...job)
    })

  return {
    async checkSchema(schema) {
      const text = JSON.stringify(schema)
      const known = checked.get(text)
      if (known !== undefined) return known
      try {
        const issues = await run('checkSchema', text, { limit: MAX_SCHEMA_TIME, isRefusable: true })
        const [oldest] = checked.keys()
        if (checked.size >= CACHE_SIZE && oldest !== undefined) checked.delete(oldest)
        checked.set(text, issues)
        return issues
      } catch (error) {
        return [issueOf(error)]
      }
    },
    readSchema: (schema) => run('readSchema', JSON.stringify(schema), { limit: MAX_SCHEMA_TIME }),
    async validate(schema, value) {
      const input = { schema: JSON.stringify(schema), value: JSON.stringify(value) ?? 'null' }
      try {
        return await run('validate', input, { limit: MAX_SCHEMA_TIME })
      } catch (error) {
        return issueOf(error)
      }
    },
    matchPattern: (pattern, texts) => run('matchPattern', { pattern, texts }, { limit: MAX_PATTERN_TIME }),
    readPage: (source, signal) => run('readPage', source, page(signal)),
    readListing: (source, signal) => run('readListing', source, page(signal)),
    parseHtml: (source, signal) => run('parseHtml', source, page(signal)),
    parseMarkdown: (source, signal) => run('parseMarkdown', source, page(signal)),
    refuse: () => thread.refuse(),
    close: () => thread.close(),
  }
}

/** The issue of a schema that ended its job. Throws other errors again. */
function issueOf(error: unknown): SchemaIssue {
  if (!(error instanceof IsolatedError) || error.isTemporary) throw error
  const reason: Readonly<Partial<Record<IsolatedError['kind'], string>>> = {
    timeout: `It cannot be processed within ${MAX_SCHEMA_TIME} ms`,
    memory: 'It takes too much memory',
  }
  return { path: [], message: reason[error.kind] ?? 'It cannot be processed', isTimeout: true }
}
