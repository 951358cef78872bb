import { literal } from '../words/literal.ts'
import { dates } from '../passages/forms.ts'
import type { ReadPassage, SourcePassage } from '../passages/place.ts'
import type { Evidence } from './judge.ts'
import { readUnits } from '../passages/units.ts'
import { splitPassages } from '../../corpus/passages.ts'
import type { CorpusDocument } from '../../corpus/corpus.ts'

/** Maximum length of the section of a version that is read, in characters. */
const MAX_SECTION = 12_000

/** The section of a version in a changelog: its heading, and the passages below it. */
export interface ReleaseSection {
  readonly readings: readonly Pick<ReadPassage, 'passage'>[]
  /** The changes of the version, in order. */
  readonly evidence: readonly Evidence[]
  /** The day of its release, if the heading has it. */
  readonly released: Evidence | undefined
}

/** Finds the section of a version by its heading; undefined if the changelog has none. `9` also matches `9.0` and `9.0.0`. */
export function releaseSection(
  { url, title, kind, text }: CorpusDocument,
  release: string,
): ReleaseSection | undefined {
  const number = String.raw`v?${literal(release)}(?:\.0){0,${Math.max(0, 3 - release.split('.').length)}}`
  const heading = new RegExp(
    String.raw`^(?<marks>#{1,6})[ \t]+[^\n(]{0,60}?(?<![\w.])${number}(?![\w]|\.\d|-\w)[^\n]{0,200}$`,
    'm',
  ).exec(text)
  if (heading === null) return undefined
  const level = heading.groups?.['marks']?.length ?? 1
  const start = heading.index
  const rest = text.slice(start + heading[0].length)
  const next = new RegExp(String.raw`^#{1,${level}}[ \t]+`, 'm').exec(rest)
  const end = Math.min(start + heading[0].length + (next?.index ?? rest.length), start + MAX_SECTION)
  const section = text.slice(start, end).trimEnd()
  const passages = splitPassages(section).map((span) => ({
    url,
    title,
    kind,
    text: section.slice(span.start, span.end),
  }))
  const evidence = passages.flatMap((passage, rank) =>
    readUnits(passage.text, []).units.map((unit, index): Evidence => ({
      unit,
      passage,
      coverage: 1,
      direct: true,
      score: 10 - rank - index * 0.05,
    })),
  )
  return {
    readings: passages.map((passage) => ({ passage })),
    evidence,
    released: releasedIn(heading[0].replace(/^#+\s*/, ''), passages[0]),
  }
}

function releasedIn(heading: string, passage: SourcePassage | undefined): Evidence | undefined {
  const [date] = dates(heading)
  if (date === undefined || passage === undefined) return undefined
  const unit = { text: heading, kind: 'sentence', heading: '' } as const
  return { unit, passage, coverage: 1, direct: true, score: 10, value: date.text, key: date.key }
}
