import type { Warning } from '../../protocol/problem.ts'
import { MAX_SEARCH_TERMS } from '../corpus/query-terms.ts'
import { MAX_REPORTED_ISSUES } from './request-limits.ts'

/** Minimum of limits of characters; beyond the interface document. */
export const MIN_CHARACTERS = 1_000

/** Maximum number of unused words that a warning lists. */
const MAX_REPORTED_WORDS = 100

/** Returns the value within the limits, and adds a warning if it differs from the given one. */
export function adjusted(
  warnings: Warning[],
  name: string,
  value: number,
  { min, max = Infinity }: { readonly min: number; readonly max?: number },
): number {
  const used = Math.min(max, Math.max(min, value))
  if (used !== value) {
    warnings.push({
      type: 'input_validation_warning',
      message: `${name} was adjusted from ${value} to ${used}`,
      detail: { parameter: name, given: value, used },
    })
  }
  return used
}

/** The warning of a parameter without an effect. */
export function ignored(parameter: string, reason: string): Warning {
  return { type: 'warning', message: `${parameter} is ignored: ${reason}`, detail: { parameter } }
}

/** The warnings of unknown fields, of a bounded number. */
export function ignoredFields(unknown: readonly string[], area: string): Warning[] {
  const warnings = unknown
    .slice(0, MAX_REPORTED_ISSUES)
    .map((field) => ignored(field, `${area} has no such field`))
  const others = unknown.length - warnings.length
  if (others > 0) warnings.push({ type: 'warning', message: `${others} more fields are ignored` })
  return warnings
}

/** The warning of the words of a search that are not used, if there are any. */
export function wordsLeftOut(words: readonly string[]): Warning[] {
  if (words.length === 0) return []
  const message =
    `search_queries and objective have more than ${MAX_SEARCH_TERMS} different words: ` +
    `each of them was searched by some of its words, without ${words.length} others`
  const unused = words.slice(0, MAX_REPORTED_WORDS)
  return [{ type: 'warning', message, detail: { parameter: 'search_queries', unused } }]
}
