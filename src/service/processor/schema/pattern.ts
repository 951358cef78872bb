import type { Isolated } from '../../isolated/isolated.ts'
import type { PatternMatch } from '../../isolated/match-pattern.ts'

/** Matches the patterns of one run. */
export interface PatternMatcher {
  /**
   * Matches a pattern of a JSON schema against texts, with a result for each. Undefined when the pattern is no regular
   * expression or exceeds its time. Never rejects.
   */
  match(pattern: string, texts: readonly string[]): Promise<readonly PatternMatch[] | undefined>
}

/** Number of patterns of a run that may fail. The run does not match others after them. */
const MAX_FAILURES = 4

/** Creates the matcher of a run. A pattern that failed is not tried again. */
export function createPatternMatcher(isolated: Pick<Isolated, 'matchPattern'>): PatternMatcher {
  const failed = new Set<string>()
  return {
    async match(pattern, texts) {
      if (texts.length === 0) return []
      if (failed.has(pattern) || failed.size >= MAX_FAILURES) return undefined
      try {
        return await isolated.matchPattern(pattern, texts)
      } catch {
        failed.add(pattern)
        return undefined
      }
    },
  }
}
