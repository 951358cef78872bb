/** `npm run docs:tables` fills the tables of docs that the sources decide. With `--check`, it writes nothing and fails for one that is not up to date. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { filled } from './page.ts'

const ROOT = resolve(import.meta.dirname, '../..')

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const changed = globSync('docs/**/*.md', { cwd: ROOT }).filter((page) => {
  const before = readFileSync(join(ROOT, page), 'utf8')
  const after = filled(before, page)
  if (!values.check && after !== before) writeFileSync(join(ROOT, page), after)
  return after !== before
})
if (values.check && changed.length > 0) {
  process.stderr.write(`tables: ${changed.join(', ')}: npm run docs:tables writes them\n`)
  process.exitCode = 1
}
