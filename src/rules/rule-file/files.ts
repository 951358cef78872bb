import { glob, open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { TextDecoder } from 'node:util'
import type { RuleProblem } from './problem.ts'
import { MAX_FILE_BYTES } from './yaml-source.ts'

/** Whether a path is a rule file. A pattern such as `rules/*.yaml` must not match the tests beside them. */
export function isRuleFile(path: string): boolean {
  return !/\.test\.ya?ml$/.test(path)
}

/**
 * The paths of files, each once: in the order of the patterns, and sorted if a pattern matches several.
 *
 * @param fits Whether a file that a pattern matches is used. Default: all.
 */
export async function pathsOf(
  patterns: readonly string[],
  problems: RuleProblem[],
  fits: (path: string) => boolean = () => true,
): Promise<string[]> {
  const paths = new Map<string, string>()
  for (const pattern of patterns) {
    const found = /[*?[{]/.test(pattern) ? (await matchesOf(pattern)).filter(fits) : [pattern]
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
export async function readText(path: string, problems: RuleProblem[]): Promise<string | undefined> {
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
