/** Removes secrets from a text. */
export type Redact = (text: string) => string

/** Replaces a secret in errors. */
export const HIDDEN = '(not shown)'

/** The shortest secret of a header, in characters. A shorter one would occur in ordinary words. */
const MIN_LENGTH = 8

/** The shortest beginning of a secret that is removed. A shorter one may be an ordinary word. */
const MIN_BEGINNING = 12

/** Headers whose values are not secret. */
const PUBLIC_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'content-type',
  'pragma',
  'user-agent',
])

/** The values of a request's headers that may be secret, and their parts that may be secret alone. */
export function secretsIn(
  headers: Readonly<Record<string, string>>,
  isPublic: (name: string) => boolean,
): readonly string[] {
  const secrets = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    if (PUBLIC_HEADERS.has(name) || isPublic(name)) continue
    secrets.add(value)
    // The credentials after a scheme (`Bearer`), the values of cookies and parameters, and the password of Basic.
    for (const part of value.split(/[\s;,]+/)) {
      secrets.add(part)
      secrets.add(part.replace(/^[^=]*=/, ''))
    }
    const [, basic] = /^basic\s+([a-z0-9+/=_-]+)$/i.exec(value) ?? []
    if (basic !== undefined) for (const part of credentialsOf(basic)) secrets.add(part)
  }
  return [...secrets].filter((secret) => secret.length >= MIN_LENGTH)
}

function credentialsOf(basic: string): readonly string[] {
  try {
    const credentials = atob(basic)
    return [credentials, credentials.slice(credentials.indexOf(':') + 1)]
  } catch {
    return []
  }
}

/**
 * Creates a function that removes these secrets from a text: plain, escaped for URLs, JSON or HTML, in Base64 (also within a
 * longer text) and in hexadecimal. A truncated secret is removed too, if at least {@link MIN_BEGINNING} characters are left. One of less than
 * {@link MIN_LENGTH} characters is removed only as it is.
 */
export function createRedactor(secrets: readonly string[]): Redact {
  const forms = secrets.filter(Boolean).flatMap(formsOf)
  const readAt = createReader()
  return (text) => {
    const found = forms
      .flatMap((form) => rangesOf(form, text, readAt))
      .toSorted((one, other) => one.from - other.from)
    let left = ''
    let at = 0
    for (const { from, to } of found) {
      // One secret may be contained in another.
      if (from >= at) left += text.slice(at, from) + HIDDEN
      at = Math.max(at, to)
    }
    return left + text.slice(at)
  }
}

/** One form of a secret: for each of its characters the spellings, as sources of regular expressions. */
type Form = readonly (readonly string[])[]

interface Range {
  readonly from: number
  readonly to: number
}

/** The end of the regular expression's match that begins at `from`; undefined if there is none. */
type ReadAt = (source: string, text: string, from: number) => number | undefined

/** Caches the regular expressions, since most characters of a secret share their spellings. */
function createReader(): ReadAt {
  const expressions = new Map<string, RegExp>()
  return (source, text, from) => {
    let expression = expressions.get(source)
    if (expression === undefined) expressions.set(source, (expression = new RegExp(source, 'yi')))
    expression.lastIndex = from
    return expression.test(text) ? expression.lastIndex : undefined
  }
}

function rangesOf(form: Form, text: string, readAt: ReadAt): readonly Range[] {
  const ranges: Range[] = []
  const beginning = form.slice(0, MIN_BEGINNING).map((ways) => `(?:${ways.join('|')})`)
  const first = new RegExp(beginning.join(''), 'gi')
  for (let match = first.exec(text); match !== null; match = first.exec(text)) {
    const to = endOf(form, text, match.index, readAt)
    if (to !== undefined) ranges.push({ from: match.index, to })
    first.lastIndex = to ?? match.index + 1
  }
  return ranges
}

/** A truncated escape, or the first digit of two, at the end of a text. */
const TRUNCATED_CHARACTER = /(?:[%\\&]\S{0,9}|[0-9a-f])$/iy

/**
 * The end of the form that begins at `from`, or of its beginning if it is truncated; undefined below
 * {@link MIN_BEGINNING} characters. An ampersand may be a character or begin an escape, so several ends are followed.
 */
function endOf(form: Form, text: string, from: number, readAt: ReadAt): number | undefined {
  let ends = new Set([from])
  for (const [count, ways] of form.entries()) {
    const next = new Set<number>()
    for (const at of ends) {
      for (const way of ways) {
        const end = readAt(way, text, at)
        if (end !== undefined) next.add(end)
      }
    }
    if (next.size === 0) return count < MIN_BEGINNING ? undefined : endOfTruncated(Math.max(...ends), text)
    ends = next
  }
  return Math.max(...ends)
}

function endOfTruncated(at: number, text: string): number {
  TRUNCATED_CHARACTER.lastIndex = at
  return TRUNCATED_CHARACTER.test(text) ? text.length : at
}

function formsOf(secret: string): readonly Form[] {
  const plain = Array.from(secret, characterForms)
  // In Base64, it would be a few letters.
  if (secret.length < MIN_LENGTH) return [plain]
  const bytes = Array.from(new TextEncoder().encode(secret))
  const hex = bytes.map((byte) => [`${hexOf(byte)}[\\s:-]?`])
  return [plain, hex, ...base64Forms(bytes)]
}

/** The spellings of one character in URLs, JSON, HTML and source code. */
function characterForms(character: string): readonly string[] {
  const code = character.charCodeAt(0)
  const hex = hexOf(code)
  const named = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' }[character]
  const plain = character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&')
  return [
    `\\\\?${plain}`,
    // Separately, since the `25` of an escaped percent sign may also be two characters of the secret.
    ...[0, 1, 2].map((times) => `%${'25'.repeat(times)}${hex}`),
    `%(?:25){3,}${hex}`,
    `\\\\(?:u00|x)${hex}`,
    `&#(?:0*${code}|x0*${hex});`,
    ...(named === undefined ? [] : [`&${named};`]),
    ...(character === ' ' ? ['\\+'] : []),
  ]
}

function hexOf(code: number): string {
  return code.toString(16).padStart(2, '0')
}

/** The characters that depend on the secret alone, for each of its three alignments in Base64. */
function base64Forms(bytes: readonly number[]): readonly Form[] {
  const binary = bytes.map((byte) => String.fromCharCode(byte)).join('')
  return [0, 1, 2].map((before) => {
    const text = btoa('\0'.repeat(before) + binary)
    const own = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    return Array.from(own, (character) => [base64Character(character)])
  })
}

/** The spellings of one character of Base64, plain and in URLs and JSON. */
function base64Character(character: string): string {
  if (character === '+') return '(?:[+-]|%2B)'
  return character === '/' ? '(?:[/_]|%2F|\\\\/)' : character
}
