import { RE2JS } from '@bufbuild/re2'

/** Maximum length of a regular expression, in characters. */
const MAX_PATTERN = 500

/** Maximum size of its program, in instructions: a few characters such as `{1000}` can make many. */
const MAX_PROGRAM = 500

/** Maximum number of states of its automaton. A text that needs more has no answer. The library continues without states, slowly. */
const MAX_STATES = 500

/** A regular expression in RE2 syntax, which takes a time that is linear in the text. */
export interface Pattern {
  /** How much more it costs for each character than the cheapest one. */
  readonly cost: number
  /**
   * Whether a part of the text matches.
   *
   * @throws {RangeError} The text needs too many states.
   */
  test(text: string): boolean
}

/** Patterns that are known. A pattern is part of a rule, so that there are few. */
const PATTERNS = new Map<string, Pattern>()
const MAX_PATTERNS = 1_000

/**
 * The pattern, compiled once.
 *
 * @throws {RangeError} It is too long.
 * @throws {Error} It is no regular expression.
 */
export function patternOf(text: string): Pattern {
  const known = PATTERNS.get(text)
  if (known !== undefined) return known
  if (text.length > MAX_PATTERN)
    throw new RangeError(`a regular expression has at most ${MAX_PATTERN} characters`)
  const compiled = RE2JS.compile(text)
  const re2 = compiled.re2()
  if (re2.prog.numInst() > MAX_PROGRAM) throw new RangeError('the regular expression repeats too much')
  bound(re2)
  const pattern = {
    cost: /[$^]|\\[AbBz]/.test(text) ? ASSERTION_COST : 1,
    test: (value: string) => compiled.test(value),
  }
  if (PATTERNS.size >= MAX_PATTERNS) PATTERNS.clear()
  PATTERNS.set(text, pattern)
  return pattern
}

/** `^`, `$` and `\b` are looked at for each character. */
const ASSERTION_COST = 4

type Re2 = ReturnType<RE2JS['re2']>
type Resolved = ReturnType<Re2['dfa']['resolveEmptyWidth']>

/** Bounds the states, and caches results that the automaton would compute anew for each character of a pattern with `^`, `$` or `\b`. */
function bound(re2: Re2): void {
  const { dfa } = re2
  dfa.stateLimit = MAX_STATES
  re2['_nfaFallback'] = () => {
    // Otherwise five such texts would end the use of the pattern.
    dfa.failed = false
    dfa.cacheClears = 0
    throw new RangeError('the regular expression needs too many states for this text')
  }
  const resolve = dfa.resolveEmptyWidth.bind(dfa)
  const resolved = new Map<Int32Array, (Resolved | undefined)[]>()
  dfa.resolveEmptyWidth = (states, context) => {
    let known = resolved.get(states)
    if (known === undefined) {
      if (resolved.size >= MAX_STATES) resolved.clear()
      known = []
      resolved.set(states, known)
    }
    return (known[context] ??= resolve(states, context))
  }
}
