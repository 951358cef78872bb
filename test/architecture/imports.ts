import { posix } from 'node:path'
import { parseSync, Visitor } from 'rolldown/utils'

/** One import of a file, in any of its forms: static, dynamic, re-export, or within a type. */
export interface Import {
  /** The file that imports, as a path from the root of the repository. */
  readonly file: string
  /** What it imports: a path from the root of the repository, a package's name, or an entry point of this package. */
  readonly target: string
  /** Whether it is erased before the program runs. */
  readonly isType: boolean
}

/** The files that a name of package.json's `imports` may lead to, by the name. */
export type PackageImports = ReadonlyMap<string, readonly string[]>

/** What a file imports, in the order of its text. */
export function importsOf(file: string, text: string, packageImports: PackageImports): Import[] {
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors.map(({ message }) => message).join('; ')}`)

  const imports: Import[] = []
  const add = (specifier: unknown, isType: boolean) => {
    if (typeof specifier !== 'string') {
      throw new TypeError(`${file}: an import() whose specifier is not a string literal cannot be checked`)
    }
    for (const target of targetsOf(file, specifier, packageImports)) imports.push({ file, target, isType })
  }
  new Visitor({
    ImportDeclaration: ({ source, importKind }) => add(source.value, importKind === 'type'),
    ExportAllDeclaration: ({ source, exportKind }) => add(source.value, exportKind === 'type'),
    ExportNamedDeclaration: ({ source, exportKind }) => {
      if (source != null) add(source.value, exportKind === 'type')
    },
    ImportExpression: ({ source }) => add('value' in source ? source.value : undefined, false),
    TSImportType: ({ source }) => add(source.value, true),
    // `declare module './file.ts'` adds to the declarations of another file; with a package's name, it declares a package.
    TSModuleDeclaration: ({ id }) => {
      if (id.type === 'Literal') add(id.value, true)
    },
  }).visit(program)
  return imports
}

function targetsOf(file: string, specifier: string, packageImports: PackageImports): readonly string[] {
  if (specifier.startsWith('.')) return [posix.join(posix.dirname(file), specifier)]
  if (specifier.startsWith('#')) {
    const targets = packageImports.get(specifier)
    if (targets === undefined) throw new Error(`${file}: package.json has no import ${specifier}`)
    return targets
  }
  // The table names the entry points of this package one by one, and other packages as a whole.
  if (specifier.startsWith('node:') || specifier.split('/')[0] === 'rivulet') return [specifier]
  return [specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')]
}

/** The sources that package.json's `imports` lead to, on any platform. */
export function packageImportsOf(manifest: string): PackageImports {
  const { imports }: { readonly imports: Record<string, Record<string, unknown>> } = JSON.parse(manifest)
  return new Map(
    Object.entries(imports).map(([name, conditions]) => {
      const source = conditions['rivulet-source'] ?? {}
      // One file, or one by platform.
      const sources = typeof source === 'string' ? [source] : Object.values(source)
      return [name, [...new Set(sources.map((path) => posix.normalize(String(path))))]]
    }),
  )
}
