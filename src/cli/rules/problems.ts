import type { RuleSet } from 'rivulet/rules'
import { UsageError } from '../exit.ts'

/** Reads rule files. Their problems, if any, are a usage error that has all of them. */
export async function readRules(files: readonly string[]): Promise<RuleSet> {
  const { loadRules, RuleError } = await import('rivulet/rules')
  try {
    return await loadRules(files)
  } catch (error) {
    throw error instanceof RuleError ? new UsageError(error.message) : error
  }
}
