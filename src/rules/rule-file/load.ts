import { glob, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { TextDecoder } from 'node:util'
import type { Rule, RuleFile } from '../rule.ts'
import type { RuleSet } from '../rule-set.ts'
import { checkRules } from './check-rules.ts'
import type { RuleProblem } from './problem.ts'
import { objectSource } from './source.ts'
import type { Source } from './source.ts'
import { MAX_FILE_BYTES, yamlSource } from './yaml-source.ts'

/**
 * Reads and checks rule files. Their names must be unique over all files.
 *
 * @param files Paths, or patterns such as `rules/*.yaml`. A pattern must match at least one file.
 * @throws {RuleError} With all problems of all files, also those that cannot be read.
 *
 * @example
 * ```ts
 * import { loadRules } from 'rivulet/rules'
 *
 * const rules = await loadRules(['rules/*.yaml', 'more-rules.yaml'])
 * ```
 */
export async function loadRules(files: string | readonly string[]): Promise<RuleSet> {
  const problems: RuleProblem[] = []
  const paths = await pathsOf(typeof files === 'string' ? [files] : files, problems)
  const sources: Source[] = []
  for (const path of paths) {
    const text = await readText(path, problems)
    const source = text === undefined ? undefined : yamlSource(text, path, problems)
    if (source !== undefined) sources.push(source)
  }
  return checkRules(sources, problems)
}

/**
 * Checks the text of a rule file, in YAML or JSON.
 *
 * @param options.file The name of the file in problems. Default: none.
 * @throws {RuleError} With all problems.
 *
 * @example
 * ```ts
 * import { parseRules } from 'rivulet/rules'
 *
 * const rules = parseRules(`
 * version: 1
 * rules:
 *   - alert: MonitorFailed
 *     on: [monitor.error]
 *     key: { monitor: source }
 * `)
 * ```
 */
export function parseRules(text: string, options: { readonly file?: string } = {}): RuleSet {
  const problems: RuleProblem[] = []
  const source = yamlSource(text, options.file ?? null, problems)
  return checkRules(source === undefined ? [] : [source], problems)
}

/**
 * Checks rules that are written in TypeScript: rules, or the content of a rule file. A problem has a path such as
 * `rules[3].when` instead of a line.
 *
 * @throws {RuleError} With all problems.
 *
 * @example
 * ```ts
 * import { defineRules } from 'rivulet/rules'
 *
 * const rules = defineRules([
 *   {
 *     alert: 'ErrorBurst',
 *     count: { when: "type == 'monitor.error'", over: '1h', gte: 3 },
 *     key: { monitor: 'source' },
 *     annotations: { summary: '${value} errors of ${key.monitor} in an hour' },
 *   },
 * ])
 * ```
 */
export function defineRules(rules: readonly Rule[] | RuleFile): RuleSet {
  return checkRules([objectSource(Array.isArray(rules) ? { version: 1, rules } : rules)], [])
}

/** The paths of files, each once: in the order of the patterns, and sorted where a pattern matches several. */
async function pathsOf(patterns: readonly string[], problems: RuleProblem[]): Promise<string[]> {
  const paths = new Map<string, string>()
  for (const pattern of patterns) {
    const found = /[*?[{]/.test(pattern) ? await matchesOf(pattern) : [pattern]
    if (found.length === 0) problems.push(ofFile(pattern, 'No file matches this pattern: write another one.'))
    for (const path of found) {
      const absolute = resolve(path)
      if (!paths.has(absolute)) paths.set(absolute, path)
    }
  }
  return [...paths.values()]
}

async function matchesOf(pattern: string): Promise<string[]> {
  const matches: string[] = []
  for await (const path of glob(pattern)) matches.push(path)
  return matches.toSorted()
}

/** The text of a file. It reads no more than is allowed, whatever the file is. */
async function readText(path: string, problems: RuleProblem[]): Promise<string | undefined> {
  try {
    await using file = await open(path)
    const stat = await file.stat()
    if (stat.isDirectory()) {
      problems.push(ofFile(path, `This is a folder: write ${path.replace(/\/$/, '')}/*.yaml.`))
      return undefined
    }
    // A byte more than is allowed, so that the file is refused.
    const buffer = Buffer.alloc(MAX_FILE_BYTES + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(buffer.subarray(0, length))
  } catch (error) {
    problems.push(ofFile(path, reasonOf(error)))
    return undefined
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT') return 'The file does not exist.'
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'The file is no text in UTF-8: save it as UTF-8.'
  return `The file cannot be read: ${error instanceof Error ? error.message : String(error)}.`
}

function ofFile(file: string, message: string): RuleProblem {
  return { file, line: null, column: null, path: '', rule: null, message }
}
