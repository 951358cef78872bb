import { isObject } from '../protocol/event.ts'
import type { RivuletError } from './errors.ts'

/** Takes secrets out of a text. */
export type Redact = (text: string) => string

/** What stands in errors for a secret. */
const HIDDEN = '(not shown)'

/** A secret that is shorter would be found in ordinary words. */
const MIN_LENGTH = 8

/** A shorter beginning of a secret may be an ordinary word too. */
const MIN_BEGINNING = 12

/** An error's message, in characters, at the most: a peer's words are part of some. */
const MAX_MESSAGE = 4_000

/** How deep the causes of an error are followed. */
const MAX_DEPTH = 4

/** Headers whose values are no secrets. */
const PUBLIC_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'content-type',
  'pragma',
  'user-agent',
])

/** The values of a request's headers that may be secret, and the parts of them that may be so alone. */
export function secretsIn(
  headers: Readonly<Record<string, string>>,
  isPublic: (name: string) => boolean,
): readonly string[] {
  const secrets = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    if (PUBLIC_HEADERS.has(name) || isPublic(name)) continue
    secrets.add(value)
    // What comes after a scheme (`Bearer`), the values of cookies and parameters, and the password of Basic.
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
 * What takes these secrets out of a text: as they are, and as a peer may repeat them: escaped for URLs, JSON or HTML, in
 * Base64 (also in the midst of a longer text) and in hexadecimal. A secret may have been cut, so a beginning of it counts as
 * well, if it has at least {@link MIN_BEGINNING} characters.
 */
export function createRedactor(secrets: readonly string[]): Redact {
  const forms = secrets.flatMap(formsOf)
  const readAt = createReader()
  return (text) => {
    const found = forms
      .flatMap((form) => placesOf(form, text, readAt))
      .toSorted((one, other) => one.from - other.from)
    let left = ''
    let at = 0
    for (const { from, to } of found) {
      // One secret may be a part of another.
      if (from >= at) left += text.slice(at, from) + HIDDEN
      at = Math.max(at, to)
    }
    return left + text.slice(at)
  }
}

/** One form of a secret: for each of its characters the ways to write it, as sources of regular expressions. */
type Form = readonly (readonly string[])[]

interface Place {
  readonly from: number
  readonly to: number
}

/** Where the match of a regular expression ends that begins at `from`; undefined where there is none. */
type ReadAt = (source: string, text: string, from: number) => number | undefined

/** Most characters of a secret are written in the same ways, each of which needs one regular expression. */
function createReader(): ReadAt {
  const expressions = new Map<string, RegExp>()
  return (source, text, from) => {
    let expression = expressions.get(source)
    if (expression === undefined) expressions.set(source, (expression = new RegExp(source, 'yi')))
    expression.lastIndex = from
    return expression.test(text) ? expression.lastIndex : undefined
  }
}

function placesOf(form: Form, text: string, readAt: ReadAt): readonly Place[] {
  const places: Place[] = []
  const beginning = form.slice(0, MIN_BEGINNING).map((ways) => `(?:${ways.join('|')})`)
  const first = new RegExp(beginning.join(''), 'gi')
  for (let match = first.exec(text); match !== null; match = first.exec(text)) {
    const to = endOf(form, text, match.index, readAt)
    if (to !== undefined) places.push({ from: match.index, to })
    first.lastIndex = to ?? match.index + 1
  }
  return places
}

/** An escaped character that was cut, or the first digit of two, at the end of a text. */
const CUT_CHARACTER = /(?:[%\\&]\S{0,9}|[0-9a-f])$/iy

/**
 * Where a form ends that begins at `from`, or as much of it as there is. Undefined where less than {@link MIN_BEGINNING}
 * characters are there. An ampersand may be a character, or the beginning of one that is escaped, so that there may be
 * several ways on.
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
    if (next.size === 0) return count < MIN_BEGINNING ? undefined : endOfCut(Math.max(...ends), text)
    ends = next
  }
  return Math.max(...ends)
}

function endOfCut(at: number, text: string): number {
  CUT_CHARACTER.lastIndex = at
  return CUT_CHARACTER.test(text) ? text.length : at
}

function formsOf(secret: string): readonly Form[] {
  const bytes = Array.from(new TextEncoder().encode(secret))
  const hex = bytes.map((byte) => [`${hexOf(byte)}[\\s:-]?`])
  return [Array.from(secret, characterForms), hex, ...base64Forms(bytes)]
}

/** One character of a secret as URLs, JSON, HTML and sources of programs escape it. */
function characterForms(character: string): readonly string[] {
  const code = character.charCodeAt(0)
  const hex = hexOf(code)
  const named = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' }[character]
  const plain = character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&')
  return [
    `\\\\?${plain}`,
    // Each on its own: the `25` of an escaped percent sign may also be two characters of the secret.
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

/** The characters that the secret alone decides, for each of the three places where it can begin. */
function base64Forms(bytes: readonly number[]): readonly Form[] {
  const binary = bytes.map((byte) => String.fromCharCode(byte)).join('')
  return [0, 1, 2].map((before) => {
    const text = btoa('\0'.repeat(before) + binary)
    const own = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    return Array.from(own, (character) => [base64Character(character)])
  })
}

/** One character of Base64, as it is or as URLs and JSON have it. */
function base64Character(character: string): string {
  if (character === '+') return '(?:[+-]|%2B)'
  return character === '/' ? '(?:[/_]|%2F|\\\\/)' : character
}

/** A JSON value without the secrets: in texts, in numbers, in names. */
export function redactJson(value: unknown, redact: Redact): unknown {
  if (typeof value === 'string') return redact(value)
  if (typeof value === 'number') return redact(String(value)) === String(value) ? value : HIDDEN
  if (Array.isArray(value)) return value.map((entry) => redactJson(entry, redact))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [redact(name), redactJson(entry, redact)]),
  )
}

/**
 * The same error without the secrets. Of its cause a copy remains, with what says what happened: the platform's own error
 * may hold the bytes that the peer sent.
 */
export function redactError<Failure extends RivuletError>(error: Failure, redact: Redact): Failure {
  error.message = redact(error.message).slice(0, MAX_MESSAGE)
  if (error.stack !== undefined) error.stack = redact(error.stack)
  if (error.cause !== undefined) error.cause = copyOf(error.cause, redact, 1)
  return error
}

/** Fields of the platform's errors that say what happened. */
const TELLING = ['code', 'errno', 'syscall', 'hostname', 'address', 'port'] as const

function copyOf(cause: unknown, redact: Redact, depth: number): unknown {
  if (typeof cause === 'string') return redact(cause)
  if (!(cause instanceof Error)) return typeof cause === 'object' ? undefined : cause
  const copy: Error & { errors?: readonly unknown[] } = new Error(redact(cause.message).slice(0, MAX_MESSAGE))
  Object.defineProperty(copy, 'name', { value: redact(cause.name), configurable: true })
  if (cause.stack !== undefined) copy.stack = redact(cause.stack)
  for (const field of TELLING) {
    const value: unknown = field in cause ? Reflect.get(cause, field) : undefined
    if (typeof value === 'string') Reflect.set(copy, field, redact(value))
    else if (typeof value === 'number') Reflect.set(copy, field, value)
  }
  if (depth >= MAX_DEPTH) return copy
  if (cause.cause !== undefined) copy.cause = copyOf(cause.cause, redact, depth + 1)
  if (cause instanceof AggregateError) {
    copy.errors = cause.errors.slice(0, MAX_DEPTH).map((each) => copyOf(each, redact, depth + 1))
  }
  return copy
}
