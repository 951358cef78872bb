import { addresses, dates } from '../passages/forms.ts'
import { type Mark, plainSpans, type MarkedSpan } from '../passages/spans.ts'

/** The shape of a short value: which parts of a statement may be one. */
export interface Shape {
  readonly name: string
  /** The words that name such a value, in the singular. */
  readonly nouns: string
  /** Words before these nouns that say which kind of value is wanted. Default none. */
  readonly qualifiers?: string
  /** Whether it is the name of a thing, which a list, a table or a heading may describe. */
  readonly isThing: boolean
  /** Whether a part of a statement with this mark may be a value. */
  fits(text: string, mark: Mark): boolean
  /** Finds values without marks, if the shape is known without them. */
  readonly plain?: (statement: string) => MarkedSpan[]
}

const LITERAL = /^(?:true|false|null|undefined|NaN|Infinity|[-−]?\d[\d_,.]*)$/
const QUANTITY = String.raw`[-−]?\d[\d_,]*(?:\.\d+)?\s*(?:%|x\b|×|ns\b|µs\b|ms\b|m?secs?\b|s\b|(?:milli|micro|nano)?seconds?\b|min(?:ute)?s?\b|h(?:ou)?rs?\b|days?\b|weeks?\b|months?\b|years?\b|[kKMGT]i?B?(?![\w-])|B\b|(?:kilo|mega|giga)?bytes?\b|bits?\b|pixels?\b|px\b|columns?\b|characters?\b|lines?\b|times\b)`
const LANGUAGE =
  'TypeScript|JavaScript|Rust|Python|Java|Kotlin|Swift|Ruby|Haskell|Elixir|Erlang|Scala|Zig|PHP|Perl|Lua|OCaml|WebAssembly|CoffeeScript|ReScript|Dart|Clojure|Fortran|Pascal|Julia|C\\+\\+|C#|Go|C'

const words = (text: string) => text.split(/\s+/).length
const isToken = (text: string) => /^[^\s]{1,60}$/.test(text) && /[\p{L}\p{N}]/u.test(text)
const plainOf = (pattern: RegExp) => (statement: string) => plainSpans(statement, pattern)
const UNIT =
  /^(?:(?:milli|micro|nano)?seconds?|ms|s|minutes?|hours?|days?|weeks?|months?|(?:kilo|mega|giga|kibi|mebi)?bytes?|[KMG]i?B|bits?|pixels?|px|characters?|percent|%)$/i

/** The shapes, and the words that name a value of each in the singular. */
const SHAPES: readonly Shape[] = [
  {
    name: 'function',
    nouns:
      'function method helper call callback hook constructor factory handler export operator listener matcher',
    isThing: true,
    fits: (text, mark) =>
      mark !== 'quote' &&
      /^(?:await |new )?[\w$.#]+(?:\(.*\))?;?$/s.test(text) &&
      !/^-|^\d/.test(text) &&
      !LITERAL.test(text),
  },
  {
    name: 'flag',
    nouns: 'flag switch',
    qualifiers: 'short long',
    isThing: true,
    fits: (text) => /^--?[a-z]/i.test(text),
    plain: plainOf(/(?<![\w-])--?[a-z][\w-]*/gi),
  },
  {
    name: 'option',
    nouns: 'option setting property parameter field argument prop',
    isThing: true,
    fits: (text) => /^(?:--?)?[\w$][\w$.-]*(?:\(\))?(?:: ?\w+)?$/.test(text) && !LITERAL.test(text),
  },
  {
    name: 'command',
    nouns: 'command script invocation',
    isThing: true,
    fits: (text, mark) => mark === 'code' && /^[$a-z@./]/i.test(text) && words(text) <= 14,
  },
  {
    name: 'package',
    nouns:
      'package library module dependency project tool framework plugin engine product bundler runner database provider platform fork',
    isThing: true,
    fits: (text) =>
      /^@?\p{L}[\p{L}\p{N}@/._+#! -]*$/u.test(text) &&
      words(text) <= 4 &&
      !LITERAL.test(text) &&
      !/[.!]$/.test(text),
  },
  {
    name: 'variable',
    nouns: 'environment variable',
    isThing: true,
    fits: (text) => /^[A-Z][A-Z\d]*(?:_[A-Z\d]+)*$/.test(text) || /^process\.env\.\w+$/.test(text),
    plain: plainOf(/(?<![\w-])[A-Z][A-Z\d]*(?:_[A-Z\d]+)+(?![\w-])/g),
  },
  {
    name: 'header',
    nouns: 'header',
    isThing: true,
    fits: (text) => /^[A-Z][\w]*(?:-[\w]+)*$/i.test(text),
  },
  {
    name: 'file',
    nouns: 'file path folder directory filename',
    isThing: true,
    fits: (text) => /^[^\s`'"]*[./][^\s`'"]*$/.test(text) && /\w/.test(text) && !/^https?:|\($/.test(text),
    plain: plainOf(
      /(?<![\w/@.-])(?:[\w.-]+\/)*[\w-]+\.(?:json|m?[jt]sx?|c[jt]s|ya?ml|toml|md|txt|html?|css|lock|conf|ini|env|xml|csv|sqlite|db|log|d\.ts)(?![\w.])/g,
    ),
  },
  {
    name: 'media',
    nouns: 'mime media',
    isThing: false,
    fits: (text) => /^[\w.+-]+\/[\w.+*-]+$/.test(text),
    plain: plainOf(
      /(?<![\w/.])(?:application|audio|font|image|message|model|multipart|text|video)\/[\w.+-]*\w/g,
    ),
  },
  {
    name: 'type',
    nouns: 'type signature interface',
    qualifiers: 'typescript',
    isThing: false,
    fits: (text, mark) =>
      mark === 'code' &&
      /^(?:[A-Z][\w$.]*|(?:string|number|boolean|void|object|unknown|any|never|bigint|symbol|function|array|buffer|integer|int|float|double|date|regexp|null|undefined)|.*[<>|{[(].*)$/s.test(
        text,
      ) &&
      !/^(?:true|false|\d+)$/.test(text),
  },
  {
    name: 'token',
    nouns:
      'value code status mode level strategy runtime encoding format protocol algorithm charset locale prefix suffix extension separator delimiter character symbol scheme tag branch channel port key identifier id token region',
    isThing: false,
    fits: (text) => isToken(text),
  },
  {
    name: 'symbol',
    nouns:
      'alternative replacement successor predecessor class event error exception import subpath entrypoint entry attribute constant selector element keyword rule decorator method component object namespace member alias',
    isThing: true,
    fits: (text) => isToken(text) && !LITERAL.test(text) && !/^\d/.test(text),
  },
  {
    name: 'phrase',
    nouns:
      'name standard specification spec draft organisation organization company sponsor origin user client model city country colour color brand',
    isThing: true,
    fits: (text) => words(text) <= 5 && !/[.!?:]$/.test(text) && /[\p{L}\p{N}]/u.test(text),
  },
  {
    name: 'version',
    nouns: 'version release',
    isThing: false,
    fits: (text) => /^(?:[><=~^≥]+\s*)?v?\d+(?:\.(?:\d+|x))*(?:-[\w.]+)?\+?$/.test(text),
    plain: plainOf(
      /(?<![\w.,#/:-])v?\d+(?:\.(?:\d+|x))*(?:-(?:alpha|beta|rc|next|pre|canary)[\w.]*)?(?![\w%]|[.,:/]\d|-\d)/g,
    ),
  },
  {
    name: 'language',
    nouns: 'language',
    isThing: false,
    fits: (text) => new RegExp(`^(?:${LANGUAGE})$`).test(text),
    plain: plainOf(new RegExp(String.raw`(?<![\w.])(?:${LANGUAGE})(?![\w+#.]\w|\w)`, 'g')),
  },
  {
    name: 'quantity',
    nouns:
      'size duration timeout interval delay limit length percentage ratio footprint speed period lifetime age expiry ttl window',
    isThing: false,
    fits: (text) => new RegExp(`^(?:${QUANTITY})$`).test(text),
    plain: plainOf(new RegExp(String.raw`(?<![\w.,#/-])(?:${QUANTITY})`, 'g')),
  },
  {
    name: 'unit',
    nouns: 'unit',
    isThing: false,
    fits: (text) => UNIT.test(text),
    plain: plainOf(
      /(?<![\p{L}\p{N}])(?:(?:milli|micro|nano)?seconds?|ms|minutes?|hours?|days?|weeks?|months?|(?:kilo|mega|giga|kibi|mebi)?bytes?|[KMG]i?B|bits?|pixels?|px|characters?|percent)(?![\p{L}\p{N}])/gu,
    ),
  },
  {
    name: 'person',
    nouns: 'author maintainer creator person owner founder developer artist editor lead contact',
    isThing: false,
    fits: (text, mark) => mark !== 'code' && /^\p{Lu}[\p{L}.'’-]*(?:\s+\p{L}[\p{L}.'’-]*){0,3}$/u.test(text),
    plain: plainOf(
      /(?<=\b(?:by|from|of|at|to|is|are|be|with|thanks to)\s+)\p{Lu}[\p{L}.'’-]*[\p{L}](?:\s+(?:(?:van|von|de|der|la)\s+)*\p{Lu}[\p{L}.'’-]*\p{L}){0,3}/gu,
    ),
  },
  {
    name: 'address',
    nouns: 'url link address website homepage',
    isThing: false,
    fits: (text) => /^https?:\/\/\S+$/.test(text),
    plain: (statement) =>
      addresses(statement).map(({ text, index }) => ({
        text,
        mark: 'plain',
        start: index,
        end: index + text.length,
      })),
  },
  {
    name: 'date',
    nouns: 'date day',
    isThing: false,
    fits: () => false,
    plain: (statement) =>
      dates(statement).map(({ text, index }) => ({
        text,
        mark: 'plain',
        start: index,
        end: index + text.length,
      })),
  },
  {
    name: 'email',
    nouns: 'email mail e-mail',
    isThing: false,
    fits: (text) => /^[\w.+-]+@[\w-]+(?:\.[\w-]+)+$/.test(text),
    plain: plainOf(/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g),
  },
]

const shapeOfWord: ReadonlyMap<string, Shape> = new Map(
  SHAPES.flatMap((shape) => shape.nouns.split(' ').map((noun): [string, Shape] => [noun, shape])),
)

/** The shape of a name; undefined if there is none. */
function shapeNamed(name: string): Shape | undefined {
  return SHAPES.find((shape) => shape.name === name)
}

/** A description without the example or the remark at its end. */
export function withoutExample(description: string): string {
  const at = description.search(ASIDE)
  if (at === -1) return description
  // The space is trimmed here: in the expression, a long run of spaces would take quadratic time.
  return description
    .slice(0, at)
    .trimEnd()
    .replace(/[,(;]$/, '')
    .trimEnd()
}

/** A description that asks for words instead of a value. */
const STATEMENT =
  /\b(?:sentences?|summar(?:y|ise|ize)|descriptions?|describes?|explain|explains|explanation|reasons?|why|how(?! (?:many|much|long|often|large|big|fast|old|far|wide))|statement|paragraphs?|overview|purpose|quote|passage|changes?|changed|happens|happened|behaviou?r|differences?|effects?|consequences?|meaning|advice|recommendations?|conditions?|warning|note|notes|details?|features?|benefits?|limitations?|use case|in (?:a few )?words|what it (?:is|does)|policy|fix|fixes|fixed|way|ways|requirements?|restrictions?|guarantees?|instructions?|steps?|caveats?)\b/i
/** Words after which an example or a remark follows. */
const ASIDE = /\b(?:e\.g\.|(?:such as|like|for example|for instance|null if|empty if|if stated|as in)\b)/i

/** The content that a text field wants: a short value of a shape, or words. */
export type Wanted = Shape | 'statement' | undefined

/**
 * The content that a text field wants, according to its description first and its name second: a short value of a shape, or words.
 * Undefined if neither says.
 */
export function wantedOf(name: string, description: string): Wanted {
  const text = withoutExample(description)
  const lastOfName = name.split(/\s+/).at(-1) ?? ''
  if (STATEMENT.test(lastOfName)) return 'statement'
  const described = nounIn(text)
  const named = nounIn(name.split(/\s+/).toReversed().join(' '))
  if (described !== undefined && !asksForWords(text, described.index)) return described.shape
  if (STATEMENT.test(text)) return 'statement'
  if (named !== undefined) return named.shape
  return thingIn(text)
}

/** A noun with a clause that describes it, such as "Profile that ignores errors", asks for a thing of an unknown kind. */
function thingIn(text: string): Shape | undefined {
  const nouns =
    /^(?:the |an? )?(?<nouns>(?:[\p{L}-]+ ){0,2}[\p{L}-]+) (?:that|which|whose|with (?:the|an?)|for the|to which|of which|in which|under which|upon which)\b/iu.exec(
      text,
    )?.groups?.['nouns']
  const phrase = shapeNamed('phrase')
  return nouns === undefined || phrase === undefined ? undefined : { ...phrase, nouns }
}

function asksForWords(text: string, before: number): boolean {
  return STATEMENT.test(text.slice(0, before))
}

/** The first word that names a value. `name of the command` is a command. */
function nounIn(text: string): { readonly shape: Shape; readonly index: number } | undefined {
  const plain = text.toLowerCase()
  if (/\benvironment variables?\b/.test(plain))
    return withIndex(shapeNamed('variable'), plain.indexOf('environment'))
  const bare = plain.replace(/\bnames? of (?:the |its |an? )?/g, (frame) => ' '.repeat(frame.length))
  let found: { readonly shape: Shape; readonly index: number } | undefined
  let end = -1
  for (const { 0: word, index } of bare.matchAll(/[\p{L}\p{N}-]+/gu)) {
    // If several nouns are in a row, the last one counts: an error code is a code.
    if (found !== undefined && index !== end + 1) break
    const shape = shapeOf(word)
    if (shape !== undefined) found = { shape, index: found?.index ?? index }
    else if (found !== undefined) break
    end = index + word.length
  }
  return found
}

function shapeOf(word: string): Shape | undefined {
  const singulars = [
    word,
    word.replace(/(?<=[a-z]{2})s$/, ''),
    word.replace(/(?<=[a-z]{2})es$/, ''),
    word.replace(/ies$/, 'y'),
  ]
  return singulars.map((one) => shapeOfWord.get(one)).find((shape) => shape !== undefined)
}

function withIndex(
  shape: Shape | undefined,
  index: number,
): { readonly shape: Shape; readonly index: number } | undefined {
  return shape === undefined ? undefined : { shape, index }
}
