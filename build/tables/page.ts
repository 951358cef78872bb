import { commandTables } from './commands.ts'
import { interfaceTable } from './interfaces.ts'

/** What the rows of a table are, by the first word of its mark. */
const ROWS = { options: 'Option', members: 'Member', fields: 'Field' }

const TABLE = /^<!-- (options|members|fields|commands)\b(.*) -->\n(?:(?!<!-- (?!oxfmt-)).*\n)*<!-- end -->$/gm
const isRows = (kind: string): kind is keyof typeof ROWS => kind in ROWS

/**
 * A page with its tables from the sources, so that a page, an editor and the help of the command say the same. A page marks where a table is:
 *
 *     <!-- options DedupeOptions -->
 *     <!-- end -->
 *
 * `options DedupeOptions of operators/dedupe.ts` names the file, if several interfaces have the name, and `-signal` after it leaves a member
 * out. `members` and `fields` instead of `options` name the first column otherwise. `commands` has the options of all commands.
 *
 * @throws Error for any other comment, and for a mark without its end.
 */
export function filled(text: string, page: string): string {
  const [wrong] = /^<!-- .*/m.exec(text.replaceAll(TABLE, '')) ?? []
  if (wrong !== undefined) throw new Error(`${page}: ${wrong} marks no table`)
  return text.replaceAll(TABLE, (_, kind: string, what: string) => marked(kind, what))
}

/** A table with its marks. The formatter leaves it as it is. */
function marked(kind: string, what: string): string {
  const text = isRows(kind) ? interfaceTable(ROWS[kind], wanted(what)) : commandTables()
  return [
    `<!-- ${kind}${what} -->`,
    `<!-- oxfmt-ignore-start -->\n\n${text}\n\n<!-- oxfmt-ignore-end -->`,
    '<!-- end -->',
  ].join('\n')
}

function wanted(what: string): Parameters<typeof interfaceTable>[1] {
  const [, name, file, without = ''] = /^ (\w+)(?: of (\S+))?((?: -\w+)*)$/.exec(what) ?? []
  if (name === undefined) throw new Error(`no interface: ${what}`)
  return { name, file, omitted: without.split(' -').slice(1) }
}
