import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { ExtractError, ExtractRequest, ExtractResponse, ExtractResult } from '../../protocol/extract.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { FetchPolicy } from '../../protocol/search.ts'
import { extractRequest } from '../../protocol/requests/extract.ts'
import { type Clock, realTimeOf } from '../clock.ts'
import type { Corpus, CorpusDocument } from '../corpus/corpus.ts'
import { JsonResponse } from '../http/json-response.ts'
import { adjusted, ignoredFields, MIN_CHARACTERS, wordsLeftOut } from '../http/parameter-warnings.ts'
import { bodySchema } from '../http/request-schema.ts'
import { readJsonAndUnknown, unprocessable } from '../http/validation.ts'
import { identifier } from '../identifier.ts'
import type { Isolated } from '../isolated/isolated.ts'
import type { Web } from '../web/safe-fetch.ts'
import { WebError } from '../web/web-error.ts'
import { createLivePages, type LivePages, PageStatusError } from './live-pages.ts'
import { type ExcerptQuery, selectExcerpts, unusedWords } from './page-excerpts.ts'
import type { Page } from './page.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Settings of {@link createExtract}. */
export interface ExtractOptions {
  readonly corpus: Corpus
  readonly web: Web
  readonly isolated: Pick<Isolated, 'readPage'>
  readonly clock: Clock
}

/** Extraction from documents of the index and pages of the web. */
export interface Extract {
  /** `POST /v1/extract`; beyond the interface document. */
  readonly routes: Hono<{ Bindings: HttpBindings }>
  /** Extracts by a valid request, which also had these fields. */
  extract(body: ExtractRequest, signal: AbortSignal, unknown?: readonly string[]): Promise<ExtractResponse>
}

const extractBody = bodySchema(extractRequest)

/** How long all pages of a request may take, in s of real time. */
const DEFAULT_TIMEOUT = 15
const MAX_TIMEOUT = 60
/** Default limits of excerpts, in characters: of one result, and of all that are divided among the results. */
const PER_RESULT = 10_000
const IN_TOTAL = 64_000
const EXCERPTS_PER_RESULT = 8
/** Maximum length of a full content, in characters. */
const MAX_FULL_CONTENT = 500_000

/** The result of one URL: the page with its URL, or an error. */
type Outcome =
  | { readonly url: string; readonly page: Page | CorpusDocument }
  | { readonly url: string; readonly error: ExtractError }

/** What is taken from the pages of a request. */
interface Selection {
  readonly words: ExcerptQuery
  /** Maximum length of the excerpts of one result, in characters. */
  readonly perResult: number
  /** Maximum length of all excerpts, in characters. */
  readonly total: number
  /** Maximum length of a full content, in characters. Undefined if no full content is requested. */
  readonly fullContent: number | undefined
}

/** Creates the extraction: documents by their URL in the index, never by a path, and other pages over the web. */
export function createExtract({ corpus, web, isolated, clock }: ExtractOptions): Extract {
  const livePages = createLivePages(web, isolated, () => realTimeOf(clock).now())
  const routes = new Hono<{ Bindings: HttpBindings }>()

  routes.post('/v1/extract', async (c) => {
    const { body, unknown } = await readJsonAndUnknown(c, extractBody, unprocessable)
    const leaving = new AbortController()
    const leave = () => leaving.abort(new WebError('fetch_error', 'The client has disconnected'))
    c.env.outgoing.once('close', leave)
    const response = await extract(body, leaving.signal, unknown)
    c.env.outgoing.off('close', leave)
    return new JsonResponse(response)
  })

  const extract: Extract['extract'] = async (body, leaving, unknown = []) => {
    const warnings = ignoredFields(unknown, 'extract')
    const urls = [...new Set(body.urls)]
    const selection = selectionOf(body, urls.length, warnings)
    warnings.push(...wordsLeftOut(unusedWords(selection.words)))
    const policy = body.advanced_settings?.fetch_policy ?? {}
    const outcomes = await new PageLoading(corpus, livePages, policy, warnings).load(urls, leaving)
    const pages = outcomes.filter((outcome) => 'page' in outcome)
    const results = await resultsOf(pages, selection, warnings, leaving)
    return {
      extract_id: identifier('extract'),
      session_id: body.session_id ?? identifier('session'),
      results,
      errors: outcomes.flatMap((outcome) => ('error' in outcome ? [outcome.error] : [])),
      warnings: warnings.length === 0 ? null : warnings,
      usage: [{ name: 'extract', count: results.length }],
    }
  }

  return { routes, extract }
}

/** Loads the pages of one request, all at once. Pages that are not there in time are errors. */
class PageLoading {
  readonly #corpus: Corpus
  readonly #livePages: LivePages
  readonly #policy: FetchPolicy
  readonly #warnings: Warning[]
  readonly #timeout: number
  /** Different spellings of a URL are fetched once. */
  readonly #loading = new Map<string, Promise<Outcome>>()

  constructor(corpus: Corpus, livePages: LivePages, policy: FetchPolicy, warnings: Warning[]) {
    this.#corpus = corpus
    this.#livePages = livePages
    this.#policy = policy
    this.#warnings = warnings
    const { timeout_seconds: given = DEFAULT_TIMEOUT } = policy
    this.#timeout = 1_000 * adjusted(warnings, 'timeout_seconds', given, { min: 0, max: MAX_TIMEOUT })
  }

  async load(urls: readonly string[], leaving: AbortSignal): Promise<Outcome[]> {
    const late = new AbortController()
    const lateness = new WebError('timeout', `No complete response within ${this.#timeout} ms`)
    const timer = setTimeout(() => late.abort(lateness), this.#timeout)
    const signal = AbortSignal.any([leaving, late.signal])
    try {
      return await Promise.all(urls.map((url) => this.#outcomeOf(url, signal)))
    } finally {
      clearTimeout(timer)
    }
  }

  async #outcomeOf(url: string, signal: AbortSignal): Promise<Outcome> {
    const target = new URL(url)
    target.hash = ''
    const { href, protocol } = target
    const document = this.#corpus.document(url) ?? this.#corpus.document(href)
    if (document !== undefined) return { url, page: document }
    if (protocol === 'file:') {
      return { url, error: toError(url, new WebError('invalid_url', 'The index has no such document')) }
    }
    const loaded = this.#loading.get(href) ?? this.#fetch(href, signal)
    this.#loading.set(href, loaded)
    const outcome = await loaded
    return 'page' in outcome ? { url, page: outcome.page } : { url, error: { ...outcome.error, url } }
  }

  async #fetch(url: string, signal: AbortSignal): Promise<Outcome> {
    try {
      const request = { policy: this.#policy, timeout: this.#timeout, signal }
      const { page, isFallback } = await this.#livePages.load(url, request)
      if (isFallback) {
        const message = `${url} could not be fetched. The result is from an earlier request`
        this.#warnings.push({ type: 'warning', message, detail: { url } })
      }
      return { url, page }
    } catch (error) {
      return { url, error: toError(url, error) }
    }
  }
}

async function resultsOf(
  pages: readonly { readonly url: string; readonly page: Page | CorpusDocument }[],
  { words, perResult, total, fullContent }: Selection,
  warnings: Warning[],
  signal: AbortSignal,
): Promise<ExtractResult[]> {
  let charactersLeft = total
  const results: ExtractResult[] = []
  for (const { url, page } of pages) {
    const { title, publishDate, text } = page
    // The unused share of a result is divided among the results after it.
    const share = Math.floor(charactersLeft / (pages.length - results.length))
    // oxlint-disable-next-line no-await-in-loop -- the share depends on the results before it
    const selected = await selectExcerpts(
      page,
      words,
      { charactersPerResult: Math.min(perResult, share), excerptsPerResult: EXCERPTS_PER_RESULT },
      signal,
    )
    charactersLeft -= selected.reduce((sum, { length }) => sum + length, 0)
    const result = { url, title, publish_date: publishDate, excerpts: selected }
    if (fullContent === undefined) {
      results.push(result)
      continue
    }
    if (text.length > fullContent) {
      const message = `The full content of ${url} was cut from ${text.length} to ${fullContent} characters`
      warnings.push({ type: 'warning', message, detail: { url } })
    }
    results.push({ ...result, full_content: cutText(text, fullContent) })
  }
  return results
}

function selectionOf(body: ExtractRequest, urls: number, warnings: Warning[]): Selection {
  const {
    search_queries: queries = [],
    objective,
    max_chars_total: total,
    advanced_settings: settings,
  } = body
  const perResult = settings?.excerpt_settings?.max_chars_per_result
  const full = settings?.full_content ?? false
  const fullContent =
    typeof full === 'object' ? (full.max_chars_per_result ?? MAX_FULL_CONTENT) : MAX_FULL_CONTENT
  const least = { min: MIN_CHARACTERS }
  const fullRange = { min: MIN_CHARACTERS, max: MAX_FULL_CONTENT }
  return {
    words: { queries, objective },
    perResult:
      perResult === undefined
        ? Math.min(PER_RESULT, Math.max(MIN_CHARACTERS, Math.floor(IN_TOTAL / urls)))
        : adjusted(warnings, 'max_chars_per_result', perResult, least),
    total: total === undefined ? Infinity : adjusted(warnings, 'max_chars_total', total, least),
    fullContent:
      full === false
        ? undefined
        : adjusted(warnings, 'full_content.max_chars_per_result', fullContent, fullRange),
  }
}

function toError(url: string, error: unknown): ExtractError {
  if (error instanceof PageStatusError) {
    return { url, error_type: 'http_error', http_status_code: error.status, content: error.content }
  }
  if (!(error instanceof WebError)) {
    return { url, error_type: 'fetch_error', http_status_code: null, content: 'The page could not be read' }
  }
  const { kind, status, message } = error
  const isStatus = status !== undefined && (status < 200 || status > 299)
  return {
    url,
    error_type: isStatus ? 'http_error' : kind,
    http_status_code: status ?? null,
    content: message,
  }
}
