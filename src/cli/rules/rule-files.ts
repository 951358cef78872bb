import { glob, stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import type { RuleSet } from 'rivulet/rules'

/** How often the files are looked at, in ms. */
const INTERVAL = 1_000

/** Reads rule files. Rejects with a `RuleError` that has all of their problems. */
export async function readRules(files: readonly string[]): Promise<RuleSet> {
  const { loadRules } = await import('rivulet/rules')
  return loadRules(files)
}

/**
 * Calls the function when rule files have changed, also if files were added, replaced or removed. It looks at their times instead of
 * watching them: that also sees files that are mounted, or replaced by a link to others.
 *
 * @param files Paths and patterns. Resolves when the signal aborts.
 * @param onChange Called once for each change; the next one waits for it.
 */
export async function watchRuleFiles(
  files: readonly string[],
  signal: AbortSignal,
  onChange: () => Promise<void>,
): Promise<void> {
  let before = await stateOf(files)
  for (;;) {
    try {
      await setTimeout(INTERVAL, undefined, { signal, ref: false })
    } catch {
      return
    }
    const now = await stateOf(files)
    if (now === before) continue
    before = now
    await onChange()
  }
}

/** A text that changes with the files. */
async function stateOf(patterns: readonly string[]): Promise<string> {
  const states: string[] = []
  for (const pattern of patterns) {
    // A file that cannot be read is a state, too.
    try {
      const paths = /[*?[{]/.test(pattern) ? await matchesOf(pattern) : [pattern]
      for (const path of paths.toSorted()) states.push(path, await stateOfFile(path))
    } catch (error) {
      states.push(String(error))
    }
  }
  return states.join('\n')
}

async function matchesOf(pattern: string): Promise<string[]> {
  const paths: string[] = []
  for await (const path of glob(pattern)) paths.push(path)
  return paths
}

async function stateOfFile(path: string): Promise<string> {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(path)
    return [ino, size, mtimeMs, ctimeMs].join()
  } catch (error) {
    return String(error)
  }
}
