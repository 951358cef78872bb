import type { SearchResponse } from 'rivulet'
import { installedReadmes } from '../../../src/cli/installed.ts'
import { pathToFileURL } from 'node:url'
import type { Measured } from '../report.ts'
import { mapFour, type MeasuredService } from '../service.ts'
import type { Query } from './query.ts'
import { isReadme, rankOf, type Result, searchFigures } from './rank.ts'

/** More than the ten that count, since manifests are removed for half of the figures. */
const RESULTS = 30

/** Searches for each query and ranks its package. */
export async function measureSearch(service: MeasuredService, items: readonly Query[]): Promise<Measured> {
  const readmes = new Map(
    (await installedReadmes()).map((readme) => [readme.package, pathToFileURL(readme.path).href]),
  )
  const ranked = await mapFour(items, async (item) => {
    const readme = readmes.get(item.subject)
    // A package that is not installed cannot be found, and its absence is no answer of the service.
    if (readme === undefined) throw new Error(`${item.subject} is not installed: npm ci installs it`)
    const urls = await search(service, item.query)
    const results = await Promise.all(
      urls.map(async (url): Promise<Result> => ({
        url,
        readme: isReadme(url) ? await service.text(url) : undefined,
      })),
    )
    return { item, urls, ranks: rankOf(item, results, await service.text(readme)) }
  })
  return {
    figures: searchFigures(ranked.map(({ ranks }) => ranks)),
    misses: ranked
      .filter(({ ranks }) => (ranks.withoutManifests ?? Infinity) > 3)
      .map(({ item, urls, ranks }) => ({
        id: item.subject,
        detail: `${ranks.withoutManifests ?? 'beyond 10'}: ${item.query} → ${urls.slice(0, 3).map(nameOf).join(', ')}`,
      })),
  }
}

async function search(service: MeasuredService, query: string): Promise<string[]> {
  const { status, body } = await service.post('/v1/search', {
    search_queries: [query],
    advanced_settings: { max_results: RESULTS, excerpt_settings: { max_chars_per_result: 1_000 } },
  })
  const { results }: Partial<SearchResponse> = Object(body)
  if (status !== 200 || results === undefined) throw new Error(`${query}: ${status}: ${JSON.stringify(body)}`)
  return results.map(({ url }) => url)
}

function nameOf(url: string): string {
  return url.split('/node_modules/').at(-1) ?? url
}
