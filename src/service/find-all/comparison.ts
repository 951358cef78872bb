/** A condition on a number, such as `at least 100`. */
export interface Comparison {
  /** The text of the comparison in the condition. */
  readonly text: string
  /** Whether a text has a number that meets it. */
  holds(text: string): boolean
}

/** The words of each comparison. */
const OPERATORS: readonly (readonly [words: string, compare: (value: number, limit: number) => boolean])[] = [
  ['more than|greater than|higher than|over|above|exceeding|after', (value, limit) => value > limit],
  ['at least|no less than|no fewer than|minimum of|since|from', (value, limit) => value >= limit],
  ['less than|fewer than|lower than|under|below|before', (value, limit) => value < limit],
  ['at most|no more than|up to|maximum of|until', (value, limit) => value <= limit],
]
const NUMBER = String.raw`(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)`
const NUMBERS = new RegExp(String.raw`(?<![\p{L}\p{N}.,])${NUMBER}(?![\p{L}\p{N}]|[.,]\d)`, 'gu')

/** Splits a condition into its comparison with a number, if it has one, and the rest. */
export function readComparison(condition: string): {
  readonly text: string
  readonly comparison: Comparison | undefined
} {
  // `no more than` contains `more than`, so the longest match at a position wins.
  const found = OPERATORS.flatMap(([operator, compare]) => {
    const match = new RegExp(String.raw`\b(?:${operator})\s+${NUMBER}(?![\p{L}\p{N}]|[.,]\d)`, 'iu').exec(
      condition,
    )
    return match === null ? [] : [{ match, compare }]
  }).toSorted((a, b) => a.match.index - b.match.index)
  const [first] = found
  if (first === undefined) return { text: condition, comparison: undefined }
  const [text, limit = ''] = first.match
  const bound = toNumber(limit)
  return {
    text: condition.replace(text, ' '),
    comparison: {
      text,
      holds: (statement) =>
        [...statement.matchAll(NUMBERS)].some(([, number = '']) => first.compare(toNumber(number), bound)),
    },
  }
}

function toNumber(text: string): number {
  return Number(text.replaceAll(',', ''))
}
