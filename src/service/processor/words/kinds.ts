import { stem } from '../../corpus/stems.ts'

/**
 * Words that ask for a kind of value. A text that has such a value need not have the word: `Chrome >= 84` states the lowest
 * version, and `is written in TypeScript` the language.
 */
const KINDS: readonly (readonly [words: string, value: RegExp])[] = [
  [
    'min minimum minimal least lowest oldest earliest newer later',
    />=|≥|\b\d[\d.]*\+|\bat least\b|\bor (?:later|higher|newer|above|greater|more)\b|\bas of\b|\bsince\b/i,
  ],
  [
    'max maximum most highest largest longest limit',
    /<=|≤|\bup to\b|\bat most\b|\bno more than\b|\blimited to\b|\bunlimited\b/i,
  ],
  ['version versions release', /(?<![\w.])v?\d+\.\d+|\bv\d+\b|[><]=?\s*v?\d+|\b\p{Lu}\w+\s+\d{1,3}\b/u],
  ['date day', /\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}(?:st|nd|rd|th)?,? (?:19|20)\d{2}\b/],
  ['year', /\b(?:19|20)\d{2}\b/],
  [
    'language',
    /\b(?:TypeScript|JavaScript|Rust|Python|Java|Kotlin|Swift|Ruby|Haskell|Elixir|Scala|Zig|PHP|Perl|Lua|OCaml|WebAssembly|CoffeeScript|ReScript|(?:in|from) (?:Go|C))\b|\bC(?:\+\+|#)/,
  ],
  ['port', /:\d{2,5}\b/],
  ['kb kilobytes kilobyte', /\d\s*[kK](?:i?B)?\b/],
  ['mb megabytes megabyte', /\d\s*M(?:i?B)?\b/],
  ['size footprint big large', /\d\s*(?:[kKMG](?:i?B)?|bytes?)\b/],
  ['percent percentage share', /\d\s*%/],
  ['times faster smaller slower factor', /\b\d[\d.]*\s*(?:x|×|times)(?!\w)/i],
  [
    'seconds milliseconds minutes ms duration',
    /\d\s*(?:ms|s|secs?|seconds?|milliseconds?|minutes?|hours?)\b/i,
  ],
  ['environment env', /(?<![\w-])[A-Z][A-Z\d]*_[A-Z\d_]+\b|\bprocess\.env\b/],
  ['url link address', /https?:\/\//],
  ['email mail', /[\w.+-]+@[\w-]+\.\w/],
]

const kindOfStem: ReadonlyMap<string, RegExp> = new Map(
  KINDS.flatMap(([words, value]) => words.split(' ').map((word): [string, RegExp] => [stem(word), value])),
)

/** Matches texts with a value of the kind that a word asks for; undefined if the word asks for no known kind. */
export function kindOf(root: string): RegExp | undefined {
  return kindOfStem.get(root)
}
