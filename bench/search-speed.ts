import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Agent } from 'undici'
import { messageOf } from './child.ts'
import { expectCount } from './expect-count.ts'
import { result, rounded } from './figure.ts'
import type { Result } from './figure.ts'
import { compare, inTurns, median } from './rounds.ts'
import { startServer } from './server.ts'
import type { BenchServer } from './server.ts'
import { bareSearch } from './servers/bare-query.ts'
import { writeDocuments } from './servers/documents.ts'

const QUERIES = 100
const RESULTS = 10

/**
 * p50 in ms of 100 sequential queries of three words over this number of documents, against the FTS5 query alone: the same
 * index, words and bm25 weights, ten rows, a prepared statement, in a separate process.
 * `service-search`: a `POST /v1/search` over loopback HTTP, with validation, ranking and excerpts, against the FTS5 query behind a
 * `node:http` server. `service-search-within`: the search in the service's process against the query, both without HTTP.
 */
export async function measureSearch(folder: string, documents: number, suffix = ''): Promise<Result[]> {
  const docs = join(folder, 'docs')
  const data = join(folder, 'service.db')
  const queries = writeDocuments(docs, documents, QUERIES)
  await using service = await startServer('search', [docs, data])
  await using bareServer = await startServer('bare-search', [data])
  using database = new DatabaseSync(data, { readOnly: true })
  const query = bareSearch(database)
  const overHttp = async ({ url }: BenchServer) => {
    // A server closes connections that are idle while the other sides are measured.
    const agent = new Agent()
    const time = await p50(queries, async (text) => expectFull(await post(agent, url, text)))
    await agent.close()
    return time
  }
  const [http, within, bare, bareHttp] = await inTurns(
    [
      () => overHttp(service),
      () => timesWithin(service, queries),
      () => p50(queries, (text) => expectFull(query(text))),
      () => overHttp(bareServer),
    ],
    { warmUp: 4 },
  )
  const compared = (name: string, ours: readonly number[], theirs: readonly number[], more = {}) => {
    const { ratio, ...details } = compare(ours, theirs)
    return result(`${name}${suffix}`, ratio, { atMost: 1.5 }, { ...details, unit: 'ms, p50', ...more })
  }
  return [
    compared('service-search', http, bareHttp, { againstBareQuery: rounded(compare(http, bare).ratio) }),
    compared('service-search-within', within, bare),
  ]
}

/** The median time of sequential searches, in ms. */
async function p50(queries: readonly string[], search: (query: string) => unknown): Promise<number> {
  const times: number[] = []
  for (const query of queries) {
    const began = process.hrtime.bigint()
    await search(query)
    times.push(Number(process.hrtime.bigint() - began) / 1e6)
  }
  return median(times)
}

async function timesWithin({ process: service }: BenchServer, queries: readonly string[]): Promise<number> {
  service.send(queries)
  const times = await messageOf(service, 'the service', 'sent its times')
  if (!isNumbers(times)) throw new Error('the service sent something other than its times')
  return median(times)
}

function isNumbers(message: unknown): message is readonly number[] {
  return Array.isArray(message) && message.every((value) => typeof value === 'number')
}

async function post(agent: Agent, origin: string, query: string): Promise<readonly unknown[]> {
  const { statusCode, body } = await agent.request({
    origin,
    path: '/v1/search',
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'none' },
    body: JSON.stringify({ search_queries: [query] }),
  })
  const answer = await body.text()
  if (statusCode !== 200) throw new Error(`${statusCode}: ${answer}`)
  const { results }: { results: readonly unknown[] } = JSON.parse(answer)
  return results
}

/** Every query matches some documents. */
function expectFull(results: readonly unknown[]): void {
  expectCount(results.length, RESULTS, 'results')
}
