import { relative, sep } from 'node:path'
import { packageRoot } from './installed.ts'

/**
 * How to call the command from the current folder: by the npm script in a clone, by npx if it is installed in the folder or a parent, and
 * by its name if it is installed globally.
 */
export function invocation(root = packageRoot(), folder = process.cwd()): string {
  const end = root.lastIndexOf(`${sep}node_modules${sep}`)
  if (end === -1) return 'npm run rivulet --'
  return relative(root.slice(0, end), folder).startsWith('..') ? 'rivulet' : 'npx rivulet'
}
