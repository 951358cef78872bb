import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { packageRoot } from '../installed.ts'
import { invocation } from '../invocation.ts'

/** What to read and what to try next, each with what it is for. */
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
  ['README.md', 'install, a first pipeline, the picture of the flow'],
  ['docs/architecture.md', 'the modules, and the promises that they keep'],
  ['examples', 'programs that run as they are'],
] as const

const COMMANDS = [
  ['serve --docs FOLDER', 'a research service over your own documents'],
  ['run "a question"', 'what such a service answers, with its citations'],
  ['start --json', 'the same as above, as NDJSON for other programs'],
] as const

/** The path from the folder where the command was typed, unless it leads out of it. */
function shortest(path: string, folder: string): string {
  const from = relative(folder, path)
  return from.startsWith('..') ? path : from
}
