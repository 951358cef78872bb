import { MAX_TERMS } from '../../corpus/query-terms.ts'
import { stem } from '../../corpus/stems.ts'
import { isStopWord, words } from '../../corpus/terms.ts'
import { type Attribute, attributeOf } from './attributes.ts'
import { kindOf } from '../words/kinds.ts'
import { literal } from '../words/literal.ts'
import { synonymsOf } from '../words/synonyms.ts'
import { type ParsedQuestion, questionOf, splitName } from '../words/vocabulary.ts'

/** The form that an answer must have, according to the words of the question. */
export type AskedForm = 'command' | 'default' | 'number' | 'date' | 'version' | 'address' | 'name'

/** A word of a question, and the words that may replace it. */
export interface AskedTerm {
  readonly word: string
  readonly stem: string
  readonly synonyms: ReadonlySet<string>
  /** Matches the values that the word asks for, if it asks for a known kind. */
  readonly kind: RegExp | undefined
  /** How much it contributes to the question, 0 to 1, regardless of the documents. */
  readonly weight: number
}

/** The target of a question. */
export interface Asked {
  readonly text: string
  readonly attribute: Attribute | undefined
  readonly form: AskedForm | undefined
  /** The version that it asks about, such as `7.8.2` or `9`. */
  readonly release: string | undefined
  /** Versions that an answer must have, or a heading above it: `16.1.0` in "exposed in 16.1.0". */
  readonly exact: readonly string[]
  /** Whether it only asks for the changes in that version. */
  readonly asksForChanges: boolean
  /** Whether it can be answered with yes or no. */
  readonly isYesNo: boolean
  /** Whether it asks for the name of something: an option, a function, a package. */
  readonly asksForName: boolean
  readonly terms: readonly AskedTerm[]
  /** The question as FindAll's judge reads it. */
  readonly question: ParsedQuestion
}

const FORMS: readonly (readonly [AskedForm, RegExp])[] = [
  ['command', /\binstall(?:ed|ation|ing)?\b(?!\(|\s+(?:size|footprint|base))/i],
  [
    'default',
    /\bdefaults?\b|\binitial values?\b|\bout of the box\b|\b(?:if|when|unless) (?:nothing|none|otherwise|told|configured|not (?:set|given|configured|specified))\b/i,
  ],
  ['date', /\bwhen (?:was|is|did|were|will|could)\b|\b(?:which|what) (?:date|day|month|year)\b|\bdate\b/i],
  [
    'version',
    /^\s*version\b|\bversion that\b|\b(?:which|what|since|from|in which|as of which|minimum) (?:\w+ )?(?:versions?|release)\b/i,
  ],
  [
    'number',
    /\bhow (?:many|much|long|often|large|big|small|fast|old)\b|\bnumber of\b|\bwhat (?:percentage|number|size)\b/i,
  ],
  ['address', /\b(?:url|link|web address)\b/i],
]

/** Words that say little by themselves: they frame a question, or stand in most documents. */
const WEAK = new Set(
  (
    'use used uses using have has get gets make makes work works provide provides support supports allow allows need needs ' +
    'call called name named happen happens mean means return returns value option options setting default type kind way ' +
    'number amount package library module function method user users set sets give given state stated list described ' +
    'say says describe describes recommend recommended should exactly default many much long take takes one first find added since lowest highest smallest largest tell tells level instance available release releases day date month year ' +
    'without within among version major minor patch'
  )
    .split(' ')
    .map(stem),
)
/** Words of a question that are never terms. */
const FRAME = new Set(
  (
    'what which who whom whose where when how why is are was were does do did can could please tell name package library ' +
    'thing project documentation document docs readme according much many often mean means called value answer question field ' +
    'e.g eg say says happen happens long software tool company organisation organization firm product year'
  ).split(' '),
)
/** Common words of English for a situation or a manner. A document states the same in other words, or leaves them out. */
const COMMON = new Set(
  (
    'someone somebody something anyone anybody anything everyone everything nothing nobody none people person folks ' +
    'explain said mention mentions mentioned claim claims claimed stated according show shows shown know known think point points ' +
    'become becomes became come comes goes going went want wants wanted wish like likes look looks looked care cares try tries ' +
    'put puts hand hands keep keeps kept turn turns turned bring brings help helps matter matters apply applies applied ' +
    'rather mostly roughly approximately exactly actually really simply still already yet ever never always usually normally typically ' +
    'again anymore today now currently nowadays back away together instead else otherwise besides ' +
    'because since although though unless whenever wherever once past beyond before after during upon toward across along against ' +
    'every each either neither both several few another certain various else ' +
    'may might must shall would should able need needs needed required have having ' +
    'effect consequence reason purpose case situation moment time way ways kind sort piece part parts place right left ' +
    'came appeared arrived landed learnt learned gained rid lose loses lost vanished gone went took gave ' +
    'good better best bad big little new old different same own whole certain possible ' +
    'let lets cause causes caused occur occurs happen affected affect'
  )
    .split(' ')
    .map(stem),
)

/** The weights of words. */
const WEIGHTS = { usual: 1, weak: 0.4, common: 0.2 } as const
/** The weight of a word within a name: `hide` in `hideBin`. */
const PART_WEIGHT = 0.3
/** Maximum length of a question that is read, in characters. */
const MAX_LENGTH = 5_000

const RELEASE =
  /(?:\bversions?|\brelease|\bv)\s*(?<first>\d+(?:\.\d+){0,2}(?:-[\w.]+)?)\b|(?<![\w.])(?<second>\d+\.\d+\.\d+(?:-[\w.]+)?)\b/i
/** A number with parts, which is one word: the parts of `2.0` have no meaning alone. */
const DECIMAL = /(?<![\w./-])v?(?<number>\d+(?:\.\d+)+(?:\.x)?|\d+\.x(?:-[a-z][\w.]*)?)(?!\w)/gi
/** A word in quotation marks is a term, even if it is common elsewhere. */
const QUOTED = /["`“](\w+)["`”]/g
/** The kind of thing that is asked for: the name of a function, not the word `function`. */
const TYPE_OF_ANSWER =
  /\b(?<which>(?:which|what|name of the|the name of)\s+(?:\w+\s+)?)(?:export|function|method|option|class|property|event|command|package|release|flag|setting|parameter|variable|field)\b/gi
const ASKS_FOR_NAME =
  /\b(?:exports?|functions?|methods?|options?|class|property|properties|events?|commands?|packages?|module|flags?|settings?|parameters?|variables?|fields?|switch|hook|callback|keyword|subpath|formatter|names?)\b|\bcalled\b|\bwhat do i (?:call|use|set)\b/i
const CHANGES = /\b(?:chang\w*|new|news|differ\w*|happened|release notes)\b/i
const YES_NO = /^\s*(?:does|do|is|are|can|could|has|have|did|was|were|will|may|must|should)\b/i

/** Reads a question. `names` are the names of the subject, which are not terms. */
export function readAsked(text: string, names: readonly string[]): Asked {
  const whole = text.slice(0, MAX_LENGTH)
  const bare = withoutNames(whole, names)
  const release = releaseOf(bare)
  const exact = [...bare.matchAll(DECIMAL)].map(({ groups }) => groups?.['number'] ?? '')
  const terms = termsOf(bare.replace(DECIMAL, ' ').replace(TYPE_OF_ANSWER, ' $<which> '))
  const others = terms.filter(({ word, weight }) => !CHANGES.test(word) && weight > 0.5 && !/^\d/.test(word))
  return {
    text: bare,
    // A call such as `install()` is a function of the thing.
    attribute: release === undefined && !/\w\(/.test(bare) ? attributeOf(bare) : undefined,
    form: FORMS.find(([, asks]) => asks.test(bare))?.[0],
    release,
    exact: release === undefined || exact.includes(release) ? exact : [release, ...exact],
    asksForChanges: release !== undefined && CHANGES.test(bare) && others.length === 0,
    isYesNo: YES_NO.test(whole),
    asksForName: ASKS_FOR_NAME.test(bare),
    terms,
    question: questionOf(
      whole,
      names.flatMap((name) => words(name)),
    ),
  }
}

/** A text without the names of its subject. */
function withoutNames(text: string, names: readonly string[]): string {
  const any = names.filter((name) => name !== '').map(literal)
  if (any.length === 0) return text
  return text.replace(
    new RegExp(String.raw`\s*(?<![\p{L}\p{N}@/-])(?:${any.join('|')})(?:['’]s)?(?![\p{L}\p{N}/-])\s*`, 'giu'),
    ' ',
  )
}

function releaseOf(text: string): string | undefined {
  const { first, second } = RELEASE.exec(text)?.groups ?? {}
  return first ?? second
}

function weightOf(root: string, isWhole: boolean): number {
  if (WEAK.has(root)) return WEIGHTS.weak
  if (COMMON.has(root)) return WEIGHTS.common
  return isWhole ? WEIGHTS.usual : PART_WEIGHT
}

function termsOf(text: string): AskedTerm[] {
  const terms = new Map<string, AskedTerm>()
  const whole = new Set(words(text))
  const quoted = new Set([...text.matchAll(QUOTED)].map(([, word]) => word?.toLowerCase()))
  for (const word of [...words(text), ...words(splitName(text))]) {
    const root = stem(word)
    const isFrame = !quoted.has(word) && (isStopWord(word) || FRAME.has(word))
    if (isFrame || terms.has(root) || terms.size >= MAX_TERMS) continue
    const synonyms = new Set(synonymsOf(root).map(stem))
    if (/^un\p{L}{4}/u.test(word)) synonyms.add(stem(word.slice(2)))
    synonyms.delete(root)
    const weight = weightOf(root, whole.has(word))
    terms.set(root, { word, stem: root, synonyms, kind: kindOf(root), weight })
  }
  return [...terms.values()]
}
