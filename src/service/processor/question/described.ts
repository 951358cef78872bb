import { manifestLines } from '../../corpus/manifest.ts'
import { stem } from '../../corpus/stems.ts'
import { isStopWord, significantTerms, words } from '../../corpus/terms.ts'
import { type Asked, readAsked } from './asked.ts'
import { NAME } from './attributes.ts'
import type { Place, Thing } from '../passages/place.ts'

/** A thing that a question describes instead of naming it, and the attribute that the question asks for. */
export interface Described {
  readonly thing: Thing
  readonly asked: Asked
}

/** How the line of a description begins. */
const DESCRIPTION = 'description: '
/** Minimum fraction of a description's words that the question has. */
const MIN_DESCRIBED = 0.7
/** Minimum number of words of a description that the question has. */
const MIN_WORDS = 3

/**
 * The thing that a question describes in the words of its manifest: "the author of the super fast, all natural json logger". Undefined if
 * no thing or several things fit, or if the question asks for no attribute.
 */
export function describedThing(place: Place, text: string, depth: number): Described | undefined {
  const asked = rootsOf(text)
  if (asked.size < MIN_WORDS) return undefined
  const candidates = place
    .passages(significantTerms(text).join(' '), undefined, depth)
    .filter(({ kind }) => kind === 'manifest')
    .flatMap((passage) => {
      const description = manifestLines(passage.text).find((line) => line.startsWith(DESCRIPTION)) ?? ''
      const roots = rootsOf(description.slice(DESCRIPTION.length))
      const common = [...roots].filter((root) => asked.has(root)).length
      const share = common / Math.max(1, roots.size)
      return common >= MIN_WORDS && share >= MIN_DESCRIBED ? [{ name: passage.title, roots, share }] : []
    })
    .toSorted((a, b) => b.share - a.share)
  const [best, second] = candidates
  if (
    best === undefined ||
    (second !== undefined && second.share === best.share && second.name !== best.name)
  )
    return undefined
  const thing = place.thing(best.name)
  if (thing === undefined) return undefined
  const rest = withoutDescription(text, best.roots)
  const { attribute, ...others } = readAsked(rest, [])
  const wanted = attribute === undefined || attribute.name === 'definition' ? nameAsked(text) : attribute
  return wanted === undefined ? undefined : { thing, asked: { ...others, attribute: wanted } }
}

/** A text without the words of a description; the last occurrence of each is removed. */
function withoutDescription(text: string, roots: ReadonlySet<string>): string {
  const left = new Set(roots)
  return text
    .split(/(?<![\p{L}\p{N}])(?=[\p{L}\p{N}])/u)
    .toReversed()
    .filter((part) => !left.delete(stem(/[\p{L}\p{N}]+/u.exec(part)?.[0]?.toLowerCase() ?? '')))
    .toReversed()
    .join('')
}

function nameAsked(text: string): Asked['attribute'] {
  return /\b(?:which|what) (?:\w+ ){0,2}(?:package|library|module|tool|object|cache|client|parser|logger)\b|\bname\b/i.test(
    text,
  )
    ? NAME
    : undefined
}

function rootsOf(text: string): Set<string> {
  return new Set(
    words(text)
      .filter((word) => !isStopWord(word))
      .map(stem),
  )
}
