/**
 * Reports the public API: `npm run api` writes a file for each entry point into `etc/api`, with every exported name and its declaration,
 * and one with the declarations that these use and that have no exported name. With `--check`, it writes nothing and fails for a file
 * that is not up to date, so that a review sees each change of the surface.
 *
 * It reads the declarations of the build.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { parseSync } from 'rolldown/utils'

const ROOT = resolve(import.meta.dirname, '..')
const REPORTS = join(ROOT, 'etc/api')

/** Declarations of one name in a module: their text without comments, and the identifiers in it. */
interface Declared {
  readonly text: string
  readonly identifiers: ReadonlySet<string>
}

/** A module's declarations by name, and what it exports under which name. */
interface Declarations {
  readonly own: ReadonlyMap<string, Declared>
  /** Names that are imported, or exported from another module. */
  readonly elsewhere: ReadonlyMap<string, { readonly module: string; readonly name: string }>
  /** Exported names, and their names in the module. */
  readonly exported: ReadonlyMap<string, string>
  /** Modules of which everything is exported. */
  readonly all: readonly string[]
}

/** Maximum number of names, so that the surface stays small enough to know. */
const MAX_ROOT_NAMES = 200
const MAX_NAMES = 491

/** The report of declarations without an exported name. */
const WITHOUT_NAME = 'without-exported-name.md'

const modules = new Map<string, Declarations>()

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } })
const reports = new Map<string, Report>(
  Object.entries(entryPoints()).map(([entry, file]) => {
    const name = entry === '.' ? 'rivulet' : entry.slice('./'.length)
    return [`${name.replaceAll('/', '-')}.md`, reportOf(name === 'rivulet' ? name : `rivulet/${name}`, file)]
  }),
)
checkNames()
reports.set(WITHOUT_NAME, reportWithoutName())
if (values.check) check()
else write()
checkNumbers()

function write(): void {
  rmSync(REPORTS, { recursive: true, force: true })
  mkdirSync(REPORTS, { recursive: true })
  for (const [file, { text }] of reports) writeFileSync(join(REPORTS, file), text)
  process.stdout.write(`${reports.size - 1} entry points, ${allNames()} names\n`)
}

/** Fails for a name that stands for different things in two entry points. */
function checkNames(): void {
  const places = new Map<string, Place>()
  for (const { exported } of reports.values()) {
    for (const [name, place] of exported) {
      const other = places.get(name) ?? place
      if (other.file !== place.file || other.name !== place.name)
        throw new Error(`${name} is declared in ${other.file} and in ${place.file}`)
      places.set(name, place)
    }
  }
}

function checkNumbers(): void {
  const root = reports.get('rivulet.md')?.exported.size ?? 0
  const total = allNames()
  if (root <= MAX_ROOT_NAMES && total <= MAX_NAMES) return
  process.stderr.write(
    `api: ${root} names in rivulet, ${total} in all: at most ${MAX_ROOT_NAMES} and ${MAX_NAMES}. An indexed access often serves as well\n`,
  )
  process.exitCode = 1
}

/** Number of names. One that two entry points export counts once. */
function allNames(): number {
  return new Set([...reports.values()].flatMap(({ exported }) => Array.from(exported.keys()))).size
}

function check(): void {
  const stored = new Set(existsSync(REPORTS) ? readdirSync(REPORTS) : [])
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

/** A declaration: the file that has it, and its name there. A package's name stands for a file of another package. */
interface Place {
  readonly file: string
  readonly name: string
}

interface Report {
  readonly text: string
  /** The declaration of each name that it lists as exported. */
  readonly exported: ReadonlyMap<string, Place>
}

function reportOf(title: string, file: string): Report {
  const exported = new Map([...exportsOf(file)].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const declarations = [...exported.values()].map((place) => blockOf(textOf(place)))
  return { text: [`# ${title}\n`, `${exported.size} names.\n`, ...declarations].join('\n'), exported }
}

/** The report of all that users reach through an exported declaration, such as the interface that a function returns. */
function reportWithoutName(): Report {
  const keyOf = ({ file, name }: Place) => `${relative(join(ROOT, 'dist'), file)} ${name}`
  const pending = [...reports.values()].flatMap(({ exported }) => Array.from(exported.values()))
  const named = new Set(pending.map(keyOf))
  const reached = new Map<string, Place>()
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    for (const used of usedBy(place)) {
      const key = keyOf(used)
      if (named.has(key) || reached.has(key)) continue
      reached.set(key, used)
      pending.push(used)
    }
  }
  const sections = [...reached]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, place]) => `## ${key}\n\n${blockOf(textOf(place))}`)
  return { text: ['# Without an exported name\n', ...sections].join('\n'), exported: new Map() }
}

function blockOf(text: string): string {
  return `\`\`\`ts\n${text}\n\`\`\`\n`
}

/** The declarations of this package that a declaration refers to. */
function usedBy({ file, name }: Place): readonly Place[] {
  if (!file.startsWith('/')) return []
  const { own, elsewhere } = declarationsOf(file)
  return [...(own.get(name)?.identifiers ?? [])]
    .filter((identifier) => identifier !== name && (own.has(identifier) || elsewhere.has(identifier)))
    .map((identifier) => placeOf(file, identifier))
    .filter((place) => place.file.startsWith('/'))
}

function textOf({ file, name }: Place): string {
  if (!file.startsWith('/')) return `export { ${name} } from '${file}'`
  return declarationsOf(file).own.get(name)?.text ?? ''
}

/** The declaration of each name that a module exports. */
function exportsOf(file: string): ReadonlyMap<string, Place> {
  const { exported, all } = declarationsOf(file)
  const found = new Map<string, Place>()
  for (const module of all) for (const [name, place] of exportsOf(module)) found.set(name, place)
  for (const [name, local] of exported) found.set(name, placeOf(file, local))
  return found
}

/** The declaration of a name in a module, or where it comes from. */
function placeOf(file: string, name: string): Place {
  const { own, elsewhere, exported, all } = declarationsOf(file)
  if (own.has(name)) return { file, name }
  const from = elsewhere.get(name)
  if (from !== undefined) {
    if (!from.module.startsWith('/')) return { file: from.module, name: from.name }
    return placeOf(from.module, declarationsOf(from.module).exported.get(from.name) ?? from.name)
  }
  const local = exported.get(name)
  if (local !== undefined && local !== name) return placeOf(file, local)
  for (const module of all) if (exportsOf(module).has(name)) return placeOf(module, name)
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
  const declaredText = ({ start, end }: { readonly start: number; readonly end: number }) => {
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
  const own = new Map<string, Declared>()
  const elsewhere = new Map<string, { readonly module: string; readonly name: string }>()
  const exported = new Map<string, string>()
  const all: string[] = []
  const moduleOf = (source: string) =>
    source.startsWith('.') ? join(dirname(file), source.replace(/\.[jt]s$/, '.d.ts')) : source
  const declare = (name: string, node: Node) => {
    const before = own.get(name)
    const text = declaredText(node)
    // The compiler writes these for a type that it has inferred.
    const imported = [...text.matchAll(/\bimport\("([^"]+)"\)\.(\w+)/g)]
    for (const [path, module = '', type = ''] of imported)
      elsewhere.set(path, { module: moduleOf(module), name: type })
    own.set(name, {
      text: before === undefined ? text : `${before.text}\n${text}`,
      identifiers: new Set([
        ...(before?.identifiers ?? []),
        ...identifiersIn(node),
        ...imported.map(([path]) => path),
      ]),
    })
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
        if (node.exported !== null) throw new Error(`${file}: namespaces are not reported`)
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
          declare(name, node)
          exported.set(name, name)
        }
        break
      default:
        for (const name of namesOf(node)) declare(name, node)
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

/** The identifiers in a node. Names of properties are among them, and lead at most to a declaration of this name in the same module. */
function identifiersIn(node: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  JSON.stringify(node, (key, value: unknown) => {
    if (key === 'name' && typeof value === 'string') found.add(value)
    return value
  })
  return found
}
