/** A part of a text that satisfies a pattern. */
export interface PatternMatch {
  /** Whether the text as a whole is a value that the pattern allows. */
  readonly isMatch: boolean
  /** The parts of the text that are values that the pattern allows, in the order of the text; at most 1,000. */
  readonly parts: readonly TextPart[]
}

/** A part of a text. */
export interface TextPart {
  readonly text: string
  /** Start, in characters. */
  readonly index: number
}

const MAX_PARTS = 1_000

/**
 * Matches a pattern of a JSON schema against texts, with a result for each. The pattern may backtrack forever. Throws when it
 * is no regular expression.
 */
export function matchPattern(pattern: string, texts: readonly string[]): readonly PatternMatch[] {
  const whole = new RegExp(pattern, 'u')
  // An anchored pattern is for the value alone, so its anchors do not apply to the text.
  const inner = new RegExp(pattern.replace(/^\^/, '').replace(/\$$/, ''), 'gu')
  return texts.map((text) => {
    const parts: TextPart[] = []
    for (const { 0: part, index } of text.matchAll(inner)) {
      if (whole.test(part)) parts.push({ text: part, index })
      if (parts.length === MAX_PARTS) break
    }
    return { isMatch: whole.test(text), parts }
  })
}
