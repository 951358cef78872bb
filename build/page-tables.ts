/**
 * Fills the tables of docs that the sources decide, so that a page, an editor and the help of the command say the same: `npm run docs:tables`.
 * A page marks where a table stands:
 *
 *     <!-- options DedupeOptions -->
 *     <!-- end -->
 *
 * `options DedupeOptions of operators/dedupe.ts` says which one, if several interfaces have the name, and `-signal` after it leaves a member
 * out. `commands` stands for the options of all commands. With `--check`, it writes nothing and fails for a table that is not up to date.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { commandTables } from './command-tables.ts'
import { optionTable } from './option-tables.ts'

const ROOT = resolve(import.meta.dirname, '..')
const TABLE = /<!-- (options|commands)\b(.*) -->\n[^]*?<!-- end -->/g

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const changed = globSync('docs/**/*.md', { cwd: ROOT }).filter((page) => {
  const before = readFileSync(join(ROOT, page), 'utf8')
  const after = before.replaceAll(TABLE, (_, kind: string, what: string) => marked(kind, what))
  if (!values.check && after !== before) writeFileSync(join(ROOT, page), after)
  return after !== before
})
if (values.check && changed.length > 0) {
  process.stderr.write(`tables: ${changed.join(', ')}: npm run docs:tables writes them\n`)
  process.exitCode = 1
}

/** A table with its marks. The formatter leaves it as it is. */
function marked(kind: string, what: string): string {
  const text = kind === 'commands' ? commandTables() : optionTable(wanted(what))
  return [
    `<!-- ${kind}${what} -->`,
    `<!-- oxfmt-ignore-start -->\n\n${text}\n\n<!-- oxfmt-ignore-end -->`,
    '<!-- end -->',
  ].join('\n')
}

function wanted(what: string): Parameters<typeof optionTable>[0] {
  const [, name, file, without = ''] = /^ (\w+)(?: of (\S+))?((?: -\w+)*)$/.exec(what) ?? []
  if (name === undefined) throw new Error(`no interface: options${what}`)
  return { name, file, omitted: new Set(without.split(' -')) }
}
