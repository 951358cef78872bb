import { RE2JS } from '@bufbuild/re2'

/** Maximum length of a regular expression, in characters. */
export const MAX_PATTERN = 500

/** Maximum size of its program, in instructions: `{1000}` makes many of few characters. */
const MAX_PROGRAM = 2_000

/** Patterns that are known. A pattern is part of a rule, so that there are few. */
const PATTERNS = new Map<string, RE2JS>()
const MAX_PATTERNS = 1_000

/**
 * A regular expression in RE2 syntax, which takes a time that is linear in the text.
 *
 * @throws {RangeError} It is too long.
 * @throws {Error} It is no regular expression.
 */
export function patternOf(text: string): RE2JS {
  const known = PATTERNS.get(text)
  if (known !== undefined) return known
  if (text.length > MAX_PATTERN)
    throw new RangeError(`a regular expression has at most ${MAX_PATTERN} characters`)
  const pattern = RE2JS.compile(text)
  if (pattern.re2().prog.numInst() > MAX_PROGRAM)
    throw new RangeError('the regular expression repeats too much')
  if (PATTERNS.size >= MAX_PATTERNS) PATTERNS.clear()
  PATTERNS.set(text, pattern)
  return pattern
}
