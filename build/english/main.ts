/** `npm run check:english`: reads the English of pages and doc comments, or of the files that are named, and fails for a finding. */
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { lint } from './lint.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const FILES = ['*.md', 'docs/**/*.md', 'examples/**/*.md', 'src/**/*.{ts,tsx}', 'operators/**/*.ts']

const named = process.argv.slice(2)
const files = named.length > 0 ? named : globSync(FILES, { cwd: ROOT }).toSorted()
let count = 0
for (const file of files) {
  for (const { line, rule, message } of await lint(file, readFileSync(resolve(ROOT, file), 'utf8'))) {
    process.stdout.write(`${file}:${line}: ${message} (${rule})\n`)
    count += 1
  }
}
if (count > 0) {
  process.stdout.write(`${count} sentences to be rewritten: see "English" in CONTRIBUTING.md.\n`)
  process.exitCode = 1
}
