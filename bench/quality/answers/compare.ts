import { isDeepStrictEqual } from 'node:util'
import type { ExpectedField, ExpectedText } from './question.ts'

/** How an answer was: `unknown` if the service says that the documents do not say. */
export type Outcome = 'right' | 'wrong' | 'unknown'

/** The longest answers that are still read, in characters. A longer one is wrong, since whole documents contain everything. */
const LONGEST = { words: 1_000, text: 4_000, field: 300 } as const

/** What begins an answer in prose without an answer. */
const NOTHING = /^(?:the documents do not say|no answer was found)/i
/** What a run says that failed because a required field has no answer. */
const NOTHING_FOR_FIELD = /documents do not say|nothing was found/i

/** Whether an answer in prose says that the documents do not say. */
export function isUnknownText(text: string): boolean {
  return text.trim() === '' || NOTHING.test(text.trim())
}

/** Whether a failed run says that the documents do not say. Any other failure is a wrong answer. */
export function isUnknownFailure(message: string): boolean {
  return NOTHING_FOR_FIELD.test(message)
}

/** Scores an answer in prose. An expected `'unknown'` is right where the answer is unknown. */
export function scoreText(answer: string, expected: ExpectedText, form: 'words' | 'text'): Outcome {
  if (isUnknownText(answer)) return expected === 'unknown' ? 'right' : 'unknown'
  if (expected === 'unknown' || answer.length > LONGEST[form]) return 'wrong'
  const { accept, refuse = [] } = expected
  const isIn = (entry: string) => contains(answer, entry)
  return accept.some(isIn) && !refuse.some(isIn) ? 'right' : 'wrong'
}

/** Scores a field of a JSON answer. Absent, null, `''` and `[]` are unknown, unless they are among the expected values. */
export function scoreField(value: unknown, expected: ExpectedField): Outcome {
  const isEmpty =
    value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
  if (expected === 'unknown') return isEmpty ? 'right' : 'wrong'
  if (expected.some((one) => isEqual(value, one))) return 'right'
  return isEmpty ? 'unknown' : 'wrong'
}

function contains(text: string, entry: string): boolean {
  const pattern = patternOf(entry)
  if (pattern !== undefined) return pattern.test(text)
  return wordsOf(normalised(entry)).test(normalised(text))
}

/** Matches a text between word boundaries; `5` is not in `v15`, `5.1` and `1,500`, but in `v5`. */
function wordsOf(text: string): RegExp {
  const start = /^[\p{L}\p{N}]/u.test(text) ? String.raw`(?<![\p{L}\p{N}]|\d[.,])` : ''
  const end = /[\p{L}\p{N}]$/u.test(text) ? String.raw`(?![\p{L}\p{N}]|[.,]\d)` : ''
  const version = /^\d/.test(text) ? 'v?' : ''
  return new RegExp(
    `${start}${version}${text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`)}${end}`,
    'u',
  )
}

function isEqual(value: unknown, expected: unknown): boolean {
  if (typeof expected === 'string' && typeof value === 'string') {
    const pattern = patternOf(expected)
    if (pattern === undefined) return normalised(value) === normalised(expected)
    return value.length <= LONGEST.field && pattern.test(value)
  }
  if (Array.isArray(expected) && Array.isArray(value)) {
    if (expected.length !== value.length) return false
    const left = [...value]
    return expected.every((one) => {
      const at = left.findIndex((candidate) => isEqual(candidate, one))
      if (at !== -1) left.splice(at, 1)
      return at !== -1
    })
  }
  return isDeepStrictEqual(value, expected)
}

/** The regular expression of an entry `/…/flags`. */
function patternOf(entry: string): RegExp | undefined {
  const [, source, flags] = /^\/(.+)\/([imsu]*)$/s.exec(entry) ?? []
  return source === undefined ? undefined : new RegExp(source, flags)
}

/** Lower case, one space, plain quotes and dashes, without Markdown's marks and a full stop at the end. */
function normalised(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[‘’`´]/g, "'")
    .replaceAll(/[“”]/g, '"')
    .replaceAll(/[‐‑‒–—−]/g, '-')
    .replaceAll(/(?<![a-z0-9])[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}(?![a-z0-9])/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .replace(/[.!]$/, '')
}
