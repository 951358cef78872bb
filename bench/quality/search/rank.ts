import { type Figure, share } from '../report.ts'
import type { Query } from './query.ts'

/** A result of a search, as far as the score needs it. */
export interface Result {
  readonly url: string
  /** The whole text of a README; undefined for other documents. */
  readonly readme?: string | undefined
}

/** The ranks of a query's package, from 1; undefined beyond the tenth result. */
export interface Ranks {
  readonly kind: Query['kind']
  readonly rank: number | undefined
  /** The rank among the results that are not manifests. */
  readonly withoutManifests: number | undefined
}

/** The results that count. */
const FIRST = 10

/**
 * Ranks the package of a query.
 *
 * A result counts if it is a document of the package's own folder: any of them, but not one of a package nested in it. The service
 * returns only one of several documents with equal text. So a README of another package counts too where its text equals that of
 * this package's README. Equal licences do not count, since they are about no package. Of a family of packages with one description,
 * only the package of the query counts.
 *
 * A manifest is a result named `package.json`. Its text has the description, so `withoutManifests` removes manifests before it
 * ranks.
 */
export function rankOf(
  { subject, kind }: Pick<Query, 'subject' | 'kind'>,
  results: readonly Result[],
  readme: string | undefined,
): Ranks {
  const counts = (result: Result) =>
    packageOf(result.url) === subject || (readme !== undefined && result.readme === readme)
  const rank = (list: readonly Result[]) => {
    const index = list.slice(0, FIRST).findIndex(counts)
    return index === -1 ? undefined : index + 1
  }
  return { kind, rank: rank(results), withoutManifests: rank(results.filter(({ url }) => !isManifest(url))) }
}

/** The package whose own folder has the document; undefined for a nested package and for other documents. */
export function packageOf(url: string): string | undefined {
  const parts = decodeURI(url).split('/node_modules/')
  const [, name] = /^((?:@[^/]+\/)?[^/]+)\//.exec(parts[1] ?? '') ?? []
  return parts.length === 2 ? name : undefined
}

/** Whether a result is a README. */
export function isReadme(url: string): boolean {
  return /\/readme(?:[.-][\w.-]*)?$/i.test(url)
}

function isManifest(url: string): boolean {
  return url.endsWith('/package.json')
}

/** The figures of a half: of descriptions, of paraphrases and of both. The targets are those of both, without manifests. */
export function searchFigures(all: readonly Ranks[]): readonly Figure[] {
  const kinds: readonly [name: string, of: readonly Ranks[]][] = [
    ['', all],
    ['descriptions: ', all.filter(({ kind }) => kind === 'description')],
    ['paraphrases: ', all.filter(({ kind }) => kind === 'paraphrase')],
  ]
  return kinds
    .flatMap(([name, of]) => {
      const without = of.map((one) => one.withoutManifests)
      const every = of.map((one) => one.rank)
      return [ranked(`${name}without manifests: `, without, name === ''), ranked(name, every, name === '')]
    })
    .flat()
}

function ranked(name: string, ranks: readonly (number | undefined)[], hasTarget: boolean): Figure[] {
  const within = (limit: number) => ranks.filter((rank) => rank !== undefined && rank <= limit).length
  const reciprocal = ranks.reduce<number>((sum, rank) => sum + (rank === undefined ? 0 : 1 / rank), 0)
  const target = (atLeast: number) => (hasTarget ? { atLeast } : undefined)
  return [
    share(`${name}first 10`, within(10), ranks.length, target(0.95)),
    share(`${name}first 3`, within(3), ranks.length, target(0.85)),
    share(`${name}MRR`, reciprocal, ranks.length, target(0.8)),
  ]
}
