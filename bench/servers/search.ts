/**
 * The research service over a folder of documents: `search.ts {folder} {data file}`. For a message with queries, it runs each without
 * HTTP and sends the times in ms.
 */
import { createResearchService } from 'rivulet/service'
import { expectCount } from '../expect-count.ts'
import { announce } from '../server.ts'

/** The limits of a default search over HTTP, with ten results. */
const LIMIT = 10
const BUDGET = { charactersPerResult: 6_400, excerptsPerResult: 8 }

const [docs = '', data = ''] = process.argv.slice(2)
const service = await createResearchService({ docs, data, apiKey: 'none', quotas: false })
const url = await service.listen()
announce(Number(new URL(url).port))

process.on('message', (queries) => {
  if (!isTexts(queries)) throw new Error('expected queries')
  const times = queries.map((query) => {
    const began = process.hrtime.bigint()
    const { length } = service.corpus.search({ queries: [query], limit: LIMIT }, BUDGET)
    const took = Number(process.hrtime.bigint() - began) / 1e6
    expectCount(length, LIMIT, 'results')
    return took
  })
  process.send?.(times)
})

function isTexts(message: unknown): message is readonly string[] {
  return Array.isArray(message) && message.every((text) => typeof text === 'string')
}
