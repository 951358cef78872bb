import { setMaxListeners } from 'node:events'
import { createResearchService, type ResearchServiceOptions } from 'rivulet/service'
import { installedDocuments } from '../../src/cli/installed.ts'

/** A response of the service. */
interface Answer {
  readonly status: number
  readonly body: unknown
}

/** A service that is measured through its HTTP interface. */
export interface MeasuredService extends AsyncDisposable {
  get(path: string): Promise<Answer>
  post(path: string, body: unknown): Promise<Answer>
  /** The text of a document, as the extract route returns it; undefined if the service has none at this URL. */
  text(url: string): Promise<string | undefined>
  /** Resolves when the index has all changes of the folders. */
  settled(): Promise<void>
}

/** The most characters that the extract route returns of one document. */
const FULL_CONTENT = 500_000

/** Starts the embedded service over the documents of the installed packages, as `rivulet serve` does without options. */
export async function serveInstalled(): Promise<MeasuredService> {
  return serve(await installedDocuments())
}

/** Starts the embedded service on a free port of this machine. */
export async function serve(options: ResearchServiceOptions): Promise<MeasuredService> {
  const service = await createResearchService({ ...options, apiKey: 'none', quotas: false })
  const origin = await service.listen()
  const leaving = new AbortController()
  setMaxListeners(0, leaving.signal)

  async function call(path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = { 'content-type': 'application/json', 'x-api-key': 'none' }
    const response = await fetch(`${origin}${path}`, { ...init, headers, signal: leaving.signal })
    return { status: response.status, body: await response.json() }
  }

  const post = (path: string, body: unknown) => call(path, { method: 'POST', body: JSON.stringify(body) })
  const texts = new Map<string, Promise<string | undefined>>()

  async function loadText(url: string): Promise<string | undefined> {
    const settings = { full_content: { max_chars_per_result: FULL_CONTENT } }
    const { body } = await post('/v1/extract', { urls: [url], advanced_settings: settings })
    const { results }: { results?: readonly { readonly full_content?: string | null }[] } = Object(body)
    return results?.[0]?.full_content ?? undefined
  }

  return {
    get: (path) => call(path),
    post,
    text(url) {
      const text = texts.get(url) ?? loadText(url)
      texts.set(url, text)
      return text
    },
    settled: () => service.corpus.settled(),
    async [Symbol.asyncDispose]() {
      leaving.abort()
      await service.close()
    },
  }
}

/** Calls the function for each item, four at a time, and returns the results in order. */
export async function mapFour<Item, Result>(
  items: readonly Item[],
  call: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const entries = items.entries()
  const work = async () => {
    for (const [index, item] of entries) results[index] = await call(item)
  }
  await Promise.all(Array.from({ length: 4 }, work))
  return results
}
