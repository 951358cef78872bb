/**
 * Reports the public API: `npm run api` writes a file for each entry point into `etc/api`, with every exported name and its declaration.
 * With `--check`, it writes nothing and fails for a file that is not up to date, so that a review sees each change of the surface.
 *
 * It reads the declarations of the build.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseSync } from 'rolldown/utils'

const ROOT = resolve(import.meta.dirname, '..')
const REPORTS = join(ROOT, 'etc/api')

/** A module's declarations by name, as text without comments, and what it exports under which name. */
interface Declarations {
  readonly own: ReadonlyMap<string, string>
  /** Names that are imported, or exported from another module. */
  readonly elsewhere: ReadonlyMap<string, { readonly module: string; readonly name: string }>
  /** Exported names, and their names in the module. */
  readonly exported: ReadonlyMap<string, string>
  /** Modules of which everything is exported. */
  readonly all: readonly string[]
}

/** Maximum number of names, so that the surface stays small enough to know. */
const MAX_ROOT_NAMES = 200
const MAX_NAMES = 450

const modules = new Map<string, Declarations>()

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const reports = new Map(
  Object.entries(entryPoints()).map(([entry, file]) => {
    const name = entry === '.' ? 'rivulet' : entry.slice('./'.length)
    return [`${name.replaceAll('/', '-')}.md`, reportOf(name === 'rivulet' ? name : `rivulet/${name}`, file)]
  }),
)
if (values.check) check()
else write()
checkNumbers()

function write(): void {
  rmSync(REPORTS, { recursive: true, force: true })
  mkdirSync(REPORTS, { recursive: true })
  for (const [file, { text }] of reports) writeFileSync(join(REPORTS, file), text)
  process.stdout.write(`${reports.size} entry points, ${allNames()} names\n`)
}

function checkNumbers(): void {
  const root = reports.get('rivulet.md')?.names.length ?? 0
  const total = allNames()
  if (root <= MAX_ROOT_NAMES && total <= MAX_NAMES) return
  process.stderr.write(
    `api: ${root} names in rivulet, ${total} in all: at most ${MAX_ROOT_NAMES} and ${MAX_NAMES}. An indexed access often serves as well\n`,
  )
  process.exitCode = 1
}

/** Number of names. One that two entry points export counts once. */
function allNames(): number {
  return new Set([...reports.values()].flatMap(({ names }) => names)).size
}

function check(): void {
  const stored = new Set(readdirSync(REPORTS))
  const changed = [...reports].filter(
    ([file, { text }]) => !stored.has(file) || readFileSync(join(REPORTS, file), 'utf8') !== text,
  )
  const gone = [...stored].filter((file) => !reports.has(file))
  const wrong = [...changed.map(([file]) => file), ...gone]
  if (wrong.length === 0) return
  process.stderr.write(`api: ${wrong.join(', ')} changed: look at it with \`npm run api\` and git diff\n`)
  process.exitCode = 1
}

/** The declaration files of the entry points, by their names in package.json. */
function entryPoints(): Readonly<Record<string, string>> {
  const manifest: { readonly exports: Readonly<Record<string, string | { readonly types: string }>> } =
    JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  return Object.fromEntries(
    Object.entries(manifest.exports).flatMap(([entry, target]) =>
      typeof target === 'string' ? [] : [[entry, join(ROOT, target.types)]],
    ),
  )
}

function reportOf(title: string, file: string): { readonly text: string; readonly names: readonly string[] } {
  const exported = [...exportsOf(file)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const declarations = exported.map(([, text]) => `\`\`\`ts\n${text}\n\`\`\`\n`)
  return {
    text: [`# ${title}\n`, `${exported.length} names.\n`, ...declarations].join('\n'),
    names: exported.map(([name]) => name),
  }
}

/** The declaration of each name that a module exports. */
function exportsOf(file: string): ReadonlyMap<string, string> {
  const { exported, all } = declarationsOf(file)
  const found = new Map<string, string>()
  for (const module of all) for (const [name, text] of exportsOf(module)) found.set(name, text)
  for (const [name, local] of exported) found.set(name, declared(file, local))
  return found
}

/** The declaration of a name in a module, or where it comes from. */
function declared(file: string, name: string): string {
  const { own, elsewhere, exported, all } = declarationsOf(file)
  const text = own.get(name)
  if (text !== undefined) return text
  const from = elsewhere.get(name)
  if (from !== undefined) {
    if (!from.module.startsWith('/')) return `export { ${name} } from '${from.module}'`
    return declared(from.module, declarationsOf(from.module).exported.get(from.name) ?? from.name)
  }
  const local = exported.get(name)
  if (local !== undefined && local !== name) return declared(file, local)
  for (const module of all) if (exportsOf(module).has(name)) return declared(module, name)
  throw new Error(`${file} does not declare ${name}`)
}

function declarationsOf(file: string): Declarations {
  let declarations = modules.get(file)
  if (declarations === undefined) modules.set(file, (declarations = read(file)))
  return declarations
}

function read(file: string): Declarations {
  const code = readFileSync(file, 'utf8')
  const { program, comments, errors } = parseSync(file, code)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
  const textOf = ({ start, end }: { readonly start: number; readonly end: number }) => {
    const within = comments.filter((comment) => comment.start >= start && comment.end <= end)
    let text = ''
    let at = start
    for (const comment of within) {
      text += code.slice(at, comment.start)
      at = comment.end
    }
    // Lines that had only a comment are left empty.
    return (text + code.slice(at, end)).replaceAll(/\n\s*(?=\n)/g, '')
  }
  const own = new Map<string, string>()
  const elsewhere = new Map<string, { readonly module: string; readonly name: string }>()
  const exported = new Map<string, string>()
  const all: string[] = []
  const moduleOf = (source: string) =>
    source.startsWith('.') ? join(dirname(file), source.replace(/\.[jt]s$/, '.d.ts')) : source
  const declare = (name: string, text: string) => {
    const before = own.get(name)
    own.set(name, before === undefined ? text : `${before}\n${text}`)
  }
  for (const node of program.body) {
    switch (node.type) {
      case 'ImportDeclaration':
        for (const specifier of node.specifiers) {
          const name =
            specifier.type === 'ImportSpecifier' && specifier.imported.type === 'Identifier'
              ? specifier.imported.name
              : 'default'
          elsewhere.set(specifier.local.name, { module: moduleOf(node.source.value), name })
        }
        break
      case 'ExportAllDeclaration':
        all.push(moduleOf(node.source.value))
        break
      case 'ExportNamedDeclaration':
        for (const { local, exported: as } of node.specifiers) {
          if (local.type !== 'Identifier' || as.type !== 'Identifier') continue
          exported.set(as.name, local.name)
          if (node.source !== null)
            elsewhere.set(local.name, { module: moduleOf(node.source.value), name: local.name })
        }
        for (const name of namesOf(node.declaration)) {
          declare(name, textOf(node))
          exported.set(name, name)
        }
        break
      default:
        for (const name of namesOf(node)) declare(name, textOf(node))
    }
  }
  return { own, elsewhere, exported, all }
}

type Node = ReturnType<typeof parseSync>['program']['body'][number]

/** The names that a statement declares. */
function namesOf(node: Node | null): readonly string[] {
  switch (node?.type) {
    case 'VariableDeclaration':
      return node.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
    case 'TSDeclareFunction':
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
      return node.id === null ? [] : [node.id.name]
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
    case 'TSEnumDeclaration':
      return [node.id.name]
    default:
      return []
  }
}
