import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { packageRoot } from '../installed.ts'
import { invocation } from '../invocation.ts'

/** The pages to read and the commands to try next, each with a description. */
export function nextSteps(
  root = packageRoot(),
  folder = process.cwd(),
): readonly (readonly [where: string, what: string])[] {
  const files = FILES.filter(([path]) => existsSync(join(root, path))).map(
    ([path, what]) => [shortest(join(root, path), folder), what] as const,
  )
  const command = invocation(root, folder)
  return [...files, ...COMMANDS.map(([args, what]) => [`${command} ${args}`, what] as const)]
}

const FILES = [
  ['README.md', 'installation, a first pipeline, a diagram'],
  ['docs/README.md', 'the index of the documentation'],
  ['examples', 'runnable programs'],
] as const

const COMMANDS = [
  ['serve --docs FOLDER', 'a research service over your own documents'],
  ['run "a question"', 'an answer of such a service, with its citations'],
  ['start --dashboard', 'the same, and its log stays open in the browser'],
  ['start --json', 'the output above as NDJSON, for other programs'],
] as const

/** The path relative to the current folder; absolute if it is outside the folder. */
function shortest(path: string, folder: string): string {
  const from = relative(folder, path)
  return from.startsWith('..') ? path : from
}
