/** Tables of the members of interfaces, from their doc comments. */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseSync } from 'rolldown/utils'

const ROOT = resolve(import.meta.dirname, '../..')

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

/** A piece of the text of a file. */
interface Span {
  readonly start: number
  readonly end: number
}

interface Option {
  readonly name: string
  readonly isRequired: boolean
  readonly type: string
  readonly text: string
}

const declarations = readDeclarations()

/** Which interface a table is of, and which of its members it leaves out. */
interface Wanted {
  readonly name: string
  /** Its file, if several files declare the name. */
  readonly file: string | undefined
  readonly omitted: readonly string[]
}

/** A table of the members of an interface, and of the interfaces that it extends. `rows` is the heading of its first column. */
export function interfaceTable(rows: string, { name, file, omitted }: Wanted): string {
  const all = optionsOf(declared(name, file))
  const strange = omitted.find((each) => !all.some((option) => option.name === each))
  if (strange !== undefined) throw new Error(`${name} has no member ${strange}`)
  const options = all.filter((option) => !omitted.includes(option.name))
  if (options.length === 0) throw new Error(`${name} has no members`)
  const lines = options.map(({ name: option, isRequired, type, text }) => {
    if (text === '') throw new Error(`${name}.${option} has no doc comment`)
    return `| \`${option}\`${isRequired ? ', required' : ''} | \`${type}\` | ${text} |`
  })
  return [`| ${rows} | Type | What it does |`, '| --- | --- | --- |', ...lines].join('\n')
}

/** The names of the members of an interface, sorted. */
export function memberNames(name: string, file?: string): string[] {
  return optionsOf(declared(name, file))
    .map((option) => option.name)
    .toSorted()
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
    optionsOfReference(expression, typeArguments?.params ?? [], declaration),
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
      return optionsOfReference(type.typeName, type.typeArguments?.params ?? [], from)
    default:
      return unread(type, from)
  }
}

/** A table without some of its rows would look complete. */
function unread({ start, end }: Span, { file, code }: Declaration): never {
  throw new Error(`${file}: no members are found in ${code.slice(start, end)}`)
}

/** Members of a named type, or of what `Pick`, `Omit`, `Partial` and `Readonly` make of one. */
function optionsOfReference(
  reference: Span & { readonly name?: unknown },
  [type, keys]: readonly Type[],
  from: Declaration,
): readonly Option[] {
  const { name } = reference
  // `a.b` has no name.
  if (typeof name !== 'string') return unread(reference, from)
  switch (name) {
    case 'Disposable':
    case 'AsyncDisposable':
      return []
    case 'Pick':
    case 'Omit': {
      if (type === undefined || keys === undefined) return unread(reference, from)
      const text = from.code.slice(keys.start, keys.end)
      const named = new Set([...text.matchAll(/'([^']+)'/g)].map(([, key]) => key))
      if (named.size === 0) throw new Error(`${from.file}: the keys are not written out: ${text}`)
      return optionsOfType(type, from).filter((option) => named.has(option.name) === (name === 'Pick'))
    }
    case 'Partial':
    case 'Required':
    case 'Readonly':
      return type === undefined ? unread(reference, from) : optionsOfType(type, from)
    default:
      return optionsOf(declared(name, from.file))
  }
}

function membersOf(members: Interface['body']['body'], from: Declaration): readonly Option[] {
  return members.flatMap((member): readonly Option[] => {
    // A function with members: its call has no name.
    if (member.type === 'TSCallSignatureDeclaration') return []
    if (member.type !== 'TSPropertySignature' && member.type !== 'TSMethodSignature')
      return unread(member, from)
    const { key, computed } = member
    const name = key.type === 'Identifier' ? key.name : 'value' in key ? key.value : undefined
    if (computed || typeof name !== 'string') return unread(member, from)
    const type = member.type === 'TSPropertySignature' ? member.typeAnnotation?.typeAnnotation : member
    const text = type === undefined ? '' : from.code.slice(type.start, type.end)
    const comment = commentBefore(member.start, from)
    // Users neither see nor write it.
    if (/@internal\b/.test(comment)) return []
    return [{ name, isRequired: !member.optional, type: typeText(text), text: firstParagraph(comment) }]
  })
}

function typeText(text: string): string {
  const line = text
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\s+/g, ' ')
    .replace(/^\| /, '')
    // A value that may be undefined may be left out; a result may not.
    .replace(/^([^=]*|\(\([^=]*=> [^=]*\)) \| undefined$/, '$1')
  return cell(line)
}

/** The doc comment that ends before a member; empty if there is none. */
function commentBefore(start: number, { code, comments }: Declaration): string {
  const comment = comments.findLast(({ end }) => end <= start)
  if (comment === undefined || !comment.value.startsWith('*')) return ''
  return code.slice(comment.end, start).trim() === '' ? comment.value : ''
}

/** The first paragraph of a doc comment, as a line. What follows it is for those who use the type. */
function firstParagraph(comment: string): string {
  const text = comment
    .replaceAll(/^\s*\*+ ?/gm, '')
    .trim()
    .replace(/\n\s*\n[^]*/, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\{@link (?:[\w.]*\.)?(\w+)\}/g, '`$1`')
  return cell(text.trim())
}

/** A text within a cell of a table. */
export function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

function distinct(options: readonly Option[]): readonly Option[] {
  const found = new Map<string, Option>()
  for (const option of options) if (!found.has(option.name)) found.set(option.name, option)
  return [...found.values()]
}
