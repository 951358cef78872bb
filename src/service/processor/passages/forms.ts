/** A value in a text, in the form that was asked for. */
export interface FormValue {
  /** A verbatim part of the text. */
  readonly text: string
  /** Equal for values that mean the same. */
  readonly key: string
  /** The value as a number, if it has one: the major number of a version. */
  readonly number?: number
  /** Start in the text, in characters. */
  readonly index: number
}

/** A form of values, such as licences: finds them in a text, in its order. */
export type Form = (text: string) => readonly FormValue[]

/** Maximum length of a text in which values are searched, in characters. */
const MAX_TEXT = 4_000

function formOf(pattern: RegExp, keyOf: (text: string) => string | undefined): Form {
  return (text) =>
    [...text.slice(0, MAX_TEXT).matchAll(pattern)].flatMap((match) => {
      const value = (match.groups?.['value'] ?? match[0]).trim()
      const key = keyOf(value)
      return key === undefined || value === ''
        ? []
        : [{ text: value, key, index: match.index + match[0].indexOf(value) }]
    })
}

/** Names of licences by their SPDX identifier, more specific ones first. */
const LICENCES: readonly (readonly [id: string, name: RegExp])[] = [
  [
    'Apache-2.0',
    /\bApache(?:[- ]Licen[cs]e)?,?[- ]*(?:v(?:ersion)?\.?\s*)?2(?:\.0)?\b|\bApache\b(?! \w+ (?:Foundation|server))/,
  ],
  ['MIT-0', /\bMIT-0\b/],
  ['MIT', /\bMIT\b/],
  ['ISC', /\bISC\b/],
  ['0BSD', /\b0BSD\b|\bBSD Zero[- ]Clause\b/],
  [
    'BSD-3-Clause',
    /\bBSD[- ]3(?:[- ]Clause)?\b|\b(?:3|three)-Clause BSD\b|\b(?:New|Modified|Revised) BSD\b/i,
  ],
  ['BSD-2-Clause', /\bBSD[- ]2(?:[- ]Clause)?\b|\b(?:2|two)-Clause BSD\b|\b(?:Simplified|FreeBSD) BSD\b/i],
  ['BSD', /\bBSD\b/],
  ['AGPL-3.0', /\bAGPL(?:[- ]?v?\d(?:\.\d)?)?(?:-only|-or-later)?\b/],
  ['LGPL', /\bLGPL(?:[- ]?v?\d(?:\.\d)?)?(?:-only|-or-later)?\b/],
  ['GPL', /\bGPL(?:[- ]?v?\d(?:\.\d)?)?(?:-only|-or-later)?\b/],
  ['MPL-2.0', /\bMPL(?:[- ]?2(?:\.0)?)?\b|\bMozilla Public License(?:,? (?:v(?:ersion)?\.? ?)?2\.0)?/],
  ['EPL', /\bEPL(?:[- ]?\d(?:\.\d)?)?\b/],
  ['BlueOak-1.0.0', /\bBlue ?Oak(?: Model License)?(?:[- ]1\.0\.0)?/],
  ['Unlicense', /\bUnlicense\b/],
  ['CC0-1.0', /\bCC0(?:[- ]1\.0)?\b/],
  ['CC-BY', /\bCC[- ]BY(?:[- ](?:SA|NC|ND))*(?:[- ]\d\.\d)?\b/],
  ['Python-2.0', /\bPython-2\.0\b|\bPSF\b/],
  ['WTFPL', /\bWTFPL\b/],
  ['Zlib', /\bzlib License\b/i],
  ['Artistic-2.0', /\bArtistic(?:[- ]License)?[- ]2\.0\b/],
]
const ANY_LICENCE = new RegExp(LICENCES.map(([, { source }]) => `(?:${source})`).join('|'), 'g')

/** The SPDX identifier of a licence's name; undefined if the text names none. */
export function licenceId(text: string): string | undefined {
  return LICENCES.find(([, name]) => name.test(text))?.[0]
}

/** The names of licences. */
export const licences: Form = formOf(ANY_LICENCE, licenceId)

const VERSION = String.raw`v?\d+(?:\.(?:\d+|x))*(?:-[\w.]+)?`

/** Versions with at least two numbers, or `v1`. */
export const versions: Form = formOf(
  /(?<![\w.#/-])(?:v\d+(?:\.\d+)*|\d+\.\d+(?:\.\d+)?)(?:-[a-z][\w.]*)?(?![\w/-])/g,
  (text) => text.replace(/^v/, ''),
)

/** Minimum versions of Node.js in prose, such as `Node.js 18 or later`, and ranges, such as `node >= 18`. */
const RUNTIME = new RegExp(
  String.raw`\bnode(?:\.?js)?\b["'\`*\])(]*(?:\([^)]*\))?\s*(?:version|versions|runtime|:|v\.?|LTS)?\s*["'\`]?\s*(?<value>(?:>=?|\^|~)?\s*${VERSION}\+?(?:\s*\|\|\s*(?:>=?|\^|~)?\s*${VERSION})*)`,
  'gi',
)
/** Words of a requirement. Without one, a version is only mentioned. */
const REQUIREMENT =
  /\b(?:requires?|required|requirement|needs?|minimum|at least|or (?:later|higher|newer|above|greater)|and (?:later|higher|newer|above|up)|supports?|supported|engines?|prerequisites?|compatible|runs? (?:on|in))\b|>=|≥|\d\+/i

/** Minimum versions of Node.js. */
export const runtimes: Form = (text) => {
  if (!REQUIREMENT.test(text)) return []
  return formOf(RUNTIME, rangeKey)(text).map(withMajor)
}

/** A range of versions as a whole text, such as `>=18.17.0`. */
export function rangeOf(text: string): FormValue {
  return withMajor({ text, key: rangeKey(text), index: 0 })
}

function rangeKey(range: string): string {
  return range
    .replaceAll(/[\sv+]|>=|\^/g, '')
    .replace(/(?:\.(?:0|x))+$/, '')
    .split('||', 1)
    .join('')
}

/** The value with the lowest major number of a range. */
function withMajor(value: FormValue): FormValue {
  const majors = value.text.split('||').map((part) => Number(/\d+/.exec(part)?.[0] ?? Number.NaN))
  const lowest = Math.min(...majors)
  return Number.isFinite(lowest) ? { ...value, number: lowest } : value
}

/** Commands that install packages, without comments after them. */
export const installations: Form = formOf(
  /(?<![\w/-])(?:npm|pnpm|yarn|bun|deno|jsr|npx|pip3?|pipx|cargo|brew|gem|composer|apt|apt-get|dnf|go|nuget|conda)\s+(?:install|i|add|get|require|global add)\s+(?:(?!\s(?:#|\/\/|&&|\|\||or\s|and\s|to\s))[^`\n<>(),;"])+/gi,
  (text) =>
    text
      .toLowerCase()
      .replace(/\s+/g, ' ')
      .replace(/^npm i /, 'npm install '),
)

/** Web addresses, without a trailing punctuation mark. */
export const addresses: Form = formOf(/\bhttps?:\/\/[^\s<>()[\]"'`]+[^\s<>()[\]"'`.,;:]/g, (text) =>
  text
    .toLowerCase()
    .replace(/^https?:\/\/(?:www\.)?/, '')
    .replace(/(?:\.git)?\/?(?:#.*)?$/, ''),
)

const MONTHS =
  'Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?'
const DATE = new RegExp(
  String.raw`\b\d{4}-\d{2}-\d{2}\b|\b\d{4}\/\d{2}\/\d{2}\b|\b(?:${MONTHS})\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}\b|\b\d{1,2}(?:st|nd|rd|th)?\s+(?:${MONTHS})\.?,?\s+\d{4}\b`,
  'g',
)

/** Calendar dates, by their ISO form. */
export const dates: Form = formOf(DATE, isoDate)

/** A date as YYYY-MM-DD; undefined if the text is no date. */
function isoDate(text: string): string | undefined {
  const iso = /^(\d{4})[-/](\d{2})[-/](\d{2})$/.exec(text)
  // As UTC: a date is a day, not an instant of the local time zone.
  const plain = text.replace(/(\d)(?:st|nd|rd|th)\b/, '$1').replace(/\./g, '')
  const ms = Date.parse(iso === null ? `${plain} UTC` : `${iso.slice(1).join('-')}T00:00:00Z`)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString().slice(0, 10)
}

const NUMBER_WORDS = 'zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve'.split('|')

/** Whether a text has a number, in digits or as a word. */
export function hasNumber(text: string): boolean {
  return (
    /\d/.test(text) ||
    new RegExp(String.raw`\b(?:${NUMBER_WORDS.join('|')}|no limit|unlimited|infinity|never)\b`, 'i').test(
      text,
    )
  )
}

/** Patterns of stated defaults: `Default: 10`, `defaults to 10`, `10 by default`. */
const DEFAULTS: readonly RegExp[] = [
  /\bby default,?[^.`]{0,60}?(?<value>`[^`]+`)/gi,
  /\bdefault(?:s|ed)?(?:\s+(?:value|setting|limit|timeout|size|level|is set))?\s*(?:to|is|are|of|=|:|is:|→)?\s*\**\s*[:=]?\s*\**\s*(?:the\s+)?(?<value>`[^`]+`|"[^"]+"|'[^']+'|[-−]?\d[\d_,]*(?:\.\d+)?(?:\s*(?:ms|s|seconds?|milliseconds?|minutes?|bytes?|[kKMG]i?B)\b)?|(?:true|false|null|undefined|none|Infinity)\b)/gi,
  /(?<value>`[^`]+`|"[^"]+"|'[^']+'|(?<![\w.])\d[\d_,]*(?:\.\d+)?(?:\s*(?:ms|s|seconds?|milliseconds?|minutes?|bytes?|[kKMG]i?B)\b)?|\b(?:true|false|null|undefined|Infinity)\b)\s*(?:\(?(?:by|the|is the|as the|being the)\s+)?\(?default\b/gi,
]

/** Values that are stated as a default, without quotes. */
export const defaults: Form = (text) =>
  DEFAULTS.flatMap((pattern) => formOf(pattern, bare)(text)).map(({ text: quoted, index }) => {
    const inner = bare(quoted)
    const value = { text: inner, key: inner.toLowerCase(), index }
    return /^[-\d]/.test(inner) ? withNumber(value, Number(inner.replaceAll(/[_,]/g, ''))) : value
  })

function withNumber(value: FormValue, number: number): FormValue {
  return Number.isFinite(number) ? { ...value, number } : value
}

/** A text without the quotes around it. */
function bare(text: string): string {
  return text.replace(/^(?:\*\*)?[`"']+|[`"']+(?:\*\*)?$/g, '').trim()
}

/** The name of a person, as npm writes one: `Name <email> (url)`. */
export function personOf(text: string): string {
  return text.replace(/\s*[<(].*$/s, '').trim()
}
