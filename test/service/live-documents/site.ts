import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterAll, onTestFinished } from 'vitest'
import { type Clock, ManualClock } from '../../../src/service/clock.ts'
import { openCorpus } from '../../../src/service/corpus/open-corpus.ts'
import { openDatabase } from '../../../src/service/database.ts'
import {
  LiveDocuments,
  type LiveDocumentsOptions,
} from '../../../src/service/live-documents/live-documents.ts'
import { createIsolated } from '../../../src/service/isolated/isolated.ts'
import { createWeb, type WebOptions } from '../../../src/service/web/safe-fetch.ts'
import { serve } from '../../support/serve.ts'

/** A response of a site: a text is an HTML page. */
export type Content =
  | string
  | {
      readonly status?: number
      readonly type?: string
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string | Uint8Array
    }
  | ((request: IncomingMessage, response: ServerResponse) => void)

/** A request that a site received. */
interface Received {
  readonly path: string
  readonly headers: IncomingMessage['headers']
}

/** A site whose content a test changes. Without a robots.txt of the test, it has none (404). */
export interface Site {
  readonly url: string
  readonly host: string
  readonly content: Record<string, Content>
  /** The requests, without those of robots.txt. */
  readonly requests: Received[]
  /** The paths of the requests, which are then forgotten. */
  paths(): string[]
}

/** Starts a site on a free port, closed when the test ends. */
export async function site(content: Record<string, Content> = {}): Promise<Site> {
  const requests: Received[] = []
  const url = await serve((request, response) => {
    const path = request.url ?? '/'
    if (path !== '/robots.txt') requests.push({ path, headers: request.headers })
    respond(content[path] ?? { status: 404 }, request, response)
  })
  return {
    url,
    host: new URL(url).host,
    content,
    requests,
    paths: () => requests.splice(0).map(({ path }) => path),
  }
}

function respond(content: Content, request: IncomingMessage, response: ServerResponse): void {
  if (typeof content === 'function') {
    content(request, response)
    return
  }
  const {
    status = 200,
    type = 'text/html; charset=utf-8',
    headers = {},
    body = '',
  } = typeof content === 'string' ? { body: content } : content
  response.writeHead(status, { 'content-type': type, ...headers }).end(body)
}

/** A page with a paragraph. */
export function html(text: string, head = '<title>Page</title>'): string {
  return `<!doctype html><html><head>${head}</head><body><p>${text}</p></body></html>`
}

/** XML as a response. */
export function xml(body: string, type = 'application/xml'): Content {
  return { type, body }
}

/** A sitemap with these URLs. */
export function sitemap(...urls: readonly string[]): Content {
  return xml(
    `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls
      .map((url) => `<url><loc>${url}</loc></url>`)
      .join('')}</urlset>`,
  )
}

export const MINUTE = 60_000
export const INTERVAL = 15 * MINUTE

/** One thread for all tests of a file. It starts with its first page. */
export const isolated = createIsolated()
afterAll(() => isolated.close())

type Options = Partial<Omit<LiveDocumentsOptions, 'database' | 'web' | 'clock'>> & {
  readonly file?: string
  readonly clock?: ManualClock
  /** Used instead of `clock`: a faster one. */
  readonly fastClock?: Clock
  readonly web?: WebOptions
  /** Whether to wait for the first requests. Default true. */
  readonly settle?: boolean
}

/** Live documents of these sources over a manual clock, refreshed once. Closed when the test ends. */
export async function liveDocuments(sources: readonly string[], options: Options = {}) {
  const {
    file = ':memory:',
    clock = new ManualClock(),
    fastClock,
    web: webOptions = { isAllowed: () => true },
    settle = true,
    ...own
  } = options
  const database = openDatabase(file)
  const web = createWeb(webOptions)
  const corpus = await openCorpus(database, { folders: [], watch: false, pages: true })
  const errors: string[] = []
  const live = new LiveDocuments({
    database,
    clock: fastClock ?? clock,
    web,
    corpus,
    isolated,
    sources,
    interval: INTERVAL,
    hostDelay: 0,
    onError: (error) => errors.push(error instanceof Error ? error.message : String(error)),
    ...own,
  })
  let closed = false
  async function close() {
    if (closed) return
    closed = true
    web.close()
    await live.close()
    await corpus.close()
    database.close()
  }
  onTestFinished(close)
  await live.start()
  if (settle) await corpus.settled()

  return {
    corpus,
    live,
    clock,
    database,
    errors,
    close,
    /** Lets time pass, and waits for the requests that are due. */
    async pass(ms: number) {
      clock.advance(ms)
      await corpus.settled()
    },
    /** The text of a document, on one line. */
    text: (url: string) => corpus.document(url)?.text,
    /** The URLs of documents with this word. */
    find: (word: string) =>
      corpus
        .search({ queries: [word], limit: 100 }, { charactersPerResult: 1_000, excerptsPerResult: 1 })
        .map(({ url }) => url)
        .toSorted(),
  }
}
