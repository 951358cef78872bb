/**
 * Fills the tables of options in docs: `npm run docs:options`. A page names an interface, and the table between the two comments has its
 * members with their types and doc comments, so that a page and an editor say the same:
 *
 *     <!-- options DedupeOptions -->
 *     <!-- end -->
 *
 * Members of the interfaces that an interface extends are among its members. `DedupeOptions of operators/dedupe.ts` says which one, if several have the name,
 * and `-signal` after it leaves a member out. With `--check`, it writes nothing and fails for a table that is not up to date.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseSync } from 'rolldown/utils'

const ROOT = resolve(import.meta.dirname, '..')
const TABLE = /<!-- options (\w+)(?: of (\S+))?((?: -\w+)*) -->\n[^]*?<!-- end -->/g

type Program = ReturnType<typeof parseSync>
type Statement = Program['program']['body'][number]
type Interface = Extract<Statement, { type: 'TSInterfaceDeclaration' }>
type Alias = Extract<Statement, { type: 'TSTypeAliasDeclaration' }>
type Type = Alias['typeAnnotation']

/** A declaration of an interface or of a type alias, with the text of its file. */
interface Declaration {
  readonly node: Interface | Alias
  readonly file: string
  readonly code: string
  readonly comments: Program['comments']
}

interface Option {
  readonly name: string
  readonly type: string
  readonly text: string
}

const declarations = readDeclarations()

if (import.meta.main) {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
  const changed = globSync('docs/**/*.md', { cwd: ROOT }).filter((page) => {
    const before = readFileSync(join(ROOT, page), 'utf8')
    const after = withTables(before)
    if (!values.check && after !== before) writeFileSync(join(ROOT, page), after)
    return after !== before
  })
  if (values.check && changed.length > 0) {
    process.stderr.write(`options: ${changed.join(', ')}: npm run docs:options writes the tables\n`)
    process.exitCode = 1
  }
}

/** A page with its tables as the sources have them. */
export function withTables(page: string): string {
  return page.replaceAll(TABLE, (_, name: string, file: string | undefined, without: string) => {
    const omitted = new Set(without.split(' -'))
    const options = optionsOf(declared(name, file)).filter((option) => !omitted.has(option.name))
    if (options.length === 0) throw new Error(`${name} has no members`)
    const rows = options.map(({ name: option, type, text }) => `| \`${option}\` | \`${type}\` | ${text} |`)
    const head = ['| Option | Type | What it does |', '| --- | --- | --- |']
    const title = `options ${name}${file === undefined ? '' : ` of ${file}`}${without}`
    return generated(title, [...head, ...rows].join('\n'))
  })
}

function generated(title: string, text: string): string {
  return `<!-- ${title} -->\n<!-- oxfmt-ignore-start -->\n\n${text}\n\n<!-- oxfmt-ignore-end -->\n<!-- end -->`
}

function readDeclarations(): ReadonlyMap<string, readonly Declaration[]> {
  const found = new Map<string, Declaration[]>()
  for (const file of globSync('{src,operators}/**/*.ts', { cwd: ROOT, exclude: ['src/cli/**'] }).toSorted()) {
    const code = readFileSync(join(ROOT, file), 'utf8')
    const { program, comments } = parseSync(file, code)
    for (const statement of program.body) {
      const node = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
      if (node?.type !== 'TSInterfaceDeclaration' && node?.type !== 'TSTypeAliasDeclaration') continue
      const others = found.get(node.id.name) ?? []
      found.set(node.id.name, [...others, { node, file, code, comments }])
    }
  }
  return found
}

/** The declaration of a name: in the file that refers to it, or the only one. */
function declared(name: string, from?: string): Declaration {
  const found = declarations.get(name) ?? []
  const declaration = found.find(({ file }) => file === from) ?? found[0]
  if (declaration === undefined) throw new Error(`no interface is called ${name}`)
  if (found.length > 1 && declaration.file !== from)
    throw new Error(`${name} is declared in ${found.map(({ file }) => file).join(', ')}`)
  return declaration
}

/** Members of a declaration, its own first. */
function optionsOf(declaration: Declaration): readonly Option[] {
  const { node } = declaration
  if (node.type === 'TSTypeAliasDeclaration') return optionsOfType(node.typeAnnotation, declaration)
  const inherited = node.extends.flatMap(({ expression, typeArguments }) =>
    expression.type === 'Identifier'
      ? optionsOfReference(expression.name, typeArguments?.params ?? [], declaration)
      : [],
  )
  return distinct([...membersOf(node.body.body, declaration), ...inherited])
}

function optionsOfType(type: Type, from: Declaration): readonly Option[] {
  switch (type.type) {
    case 'TSIntersectionType':
      return distinct(type.types.flatMap((each) => optionsOfType(each, from)))
    case 'TSTypeLiteral':
      return membersOf(type.members, from)
    case 'TSTypeReference':
      return type.typeName.type === 'Identifier'
        ? optionsOfReference(type.typeName.name, type.typeArguments?.params ?? [], from)
        : []
    default:
      throw new Error(`${from.file}: no members are found in ${from.code.slice(type.start, type.end)}`)
  }
}

/** Members of a named type, or of what `Pick`, `Omit`, `Partial` and `Readonly` make of one. */
function optionsOfReference(
  name: string,
  [type, keys]: readonly Type[],
  from: Declaration,
): readonly Option[] {
  switch (name) {
    case 'Pick':
    case 'Omit': {
      if (type === undefined || keys === undefined) return []
      const named = new Set(
        [...from.code.slice(keys.start, keys.end).matchAll(/'([^']+)'/g)].map(([, key]) => key),
      )
      return optionsOfType(type, from).filter((option) => named.has(option.name) === (name === 'Pick'))
    }
    case 'Partial':
    case 'Required':
    case 'Readonly':
      return type === undefined ? [] : optionsOfType(type, from)
    default:
      return optionsOf(declared(name, from.file))
  }
}

function membersOf(members: Interface['body']['body'], from: Declaration): readonly Option[] {
  return members.flatMap((member): readonly Option[] => {
    if (member.type !== 'TSPropertySignature' && member.type !== 'TSMethodSignature') return []
    if (member.key.type !== 'Identifier') return []
    const type = member.type === 'TSPropertySignature' ? member.typeAnnotation?.typeAnnotation : member
    const text = type === undefined ? '' : from.code.slice(type.start, type.end)
    return [{ name: member.key.name, type: typeText(text), text: commentBefore(member.start, from) }]
  })
}

function typeText(text: string): string {
  const line = text
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\s+/g, ' ')
    .replace(/^\| /, '')
    .replaceAll(' | undefined', '')
  return cell(line)
}

/** The doc comment that ends before a member, as a line. */
function commentBefore(start: number, { code, comments }: Declaration): string {
  const comment = comments.findLast(({ end }) => end <= start)
  if (comment === undefined || !comment.value.startsWith('*') || code.slice(comment.end, start).trim() !== '')
    return ''
  const text = comment.value
    .replaceAll(/^\s*\*+ ?/gm, '')
    .replaceAll(/\{@link (?:[\w.]*\.)?(\w+)\}/g, '`$1`')
    .replaceAll(/\s+/g, ' ')
  return cell(text.trim())
}

/** A text within a cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

function distinct(options: readonly Option[]): readonly Option[] {
  const found = new Map<string, Option>()
  for (const option of options) if (!found.has(option.name)) found.set(option.name, option)
  return [...found.values()]
}
