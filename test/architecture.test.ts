import { globSync, readFileSync } from 'node:fs'
import { join, matchesGlob, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importsOf, packageImportsOf } from './architecture/imports.ts'
import { readPage } from './architecture/page.ts'
import { typeNamesOf } from './architecture/type-names.ts'
import {
  circleOf,
  forbiddenImports,
  importsBetweenStores,
  importsOfInsides,
  permittedEdges,
  repeatedNames,
  strayFiles,
  wrongArrows,
} from './architecture/violations.ts'

const root = resolve(import.meta.dirname, '..')
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const exists = (pattern: string) => globSync(pattern, { cwd: root }).length > 0

const page = readPage(read('docs/internals/architecture.md'))
const files = globSync('{operators,src}/**/*.{ts,tsx}', { cwd: root })
  .map((file) => file.replaceAll('\\', '/'))
  .toSorted()
const packageImports = packageImportsOf(read('package.json'))
const imports = files.flatMap((file) => importsOf(file, read(file), packageImports))

const typeNames = files.flatMap((file) => typeNamesOf(file, read(file)))

describe('the code', () => {
  it('has no file outside of the modules of docs/internals/architecture.md', () => {
    expect(strayFiles(files, page.modules)).toEqual([])
    expect(files).toEqual(expect.arrayContaining(['operators/dedupe.ts', 'src/client.ts']))
  })

  it('imports in each module only what the list of modules permits', () => {
    expect(forbiddenImports(imports, page.modules)).toEqual([])
    expect(imports).toContainEqual({ file: 'operators/dedupe.ts', target: 'rxjs', isType: false })
  })

  it('imports no insides of a file of another module', () => {
    expect(importsOfInsides(imports, files, page.modules)).toEqual([])
  })

  it('has no store of a log that imports another one', () => {
    expect(importsBetweenStores(imports)).toEqual([])
    expect(files).toEqual(
      expect.arrayContaining(['src/log/memory/store.ts', 'src/log/sqlite/store.ts', 'src/log/nats/store.ts']),
    )
  })

  it('has no two types with one name in a module', () => {
    expect(repeatedNames(typeNames, page.modules)).toEqual([])
    expect(typeNames).toContainEqual({ file: 'src/protocol/gate.ts', name: 'Gate' })
  })

  it('has no circle of imports, not even of types', () => {
    expect(circleOf(imports)).toBeUndefined()
  })
})

describe('docs/internals/architecture.md', () => {
  it('permits no circle of modules', () => {
    expect(circleOf(permittedEdges(page.modules))).toBeUndefined()
  })

  it('has a list of files and folders that exist', () => {
    expect(page.modules.map(({ path }) => path).filter((path) => !exists(path))).toEqual([])
  })

  it('has a picture whose arrows are the imports that the list permits', () => {
    expect(wrongArrows(page.arrows, page.modules)).toEqual([])
  })

  it('limits permissions to files that exist', () => {
    const limited = page.modules.flatMap(({ path, permissions }) =>
      permissions.flatMap((permission) => permission.files.map((file) => `${path}${file}`)),
    )
    expect(limited.filter((file) => !exists(file))).toEqual([])
  })

  it('names no file or folder that does not exist', () => {
    const entries = globSync('{bench,build,docs,examples,operators,src,test}/**', {
      cwd: root,
      exclude: ['**/node_modules'],
      withFileTypes: true,
    })
    // From the project's folder: a pattern does not match a folder above it whose name begins with a dot.
    const paths = entries.map((entry) =>
      join(relative(root, entry.parentPath), entry.name, entry.isDirectory() ? '/' : ''),
    )
    const isThere = (name: string) =>
      exists(name) || paths.some((path) => matchesGlob(path, join('**', name)))
    expect(page.named.filter((name) => !isThere(name))).toEqual([])
  })
})

describe('a check of the architecture', () => {
  const made = readPage(
    [
      '```',
      ' src/client.ts ─▶ operators/ ──▶ src/low/',
      '```',
      '- `operators/`: `deep/`.',
      '  May import: `src/low/`, `rxjs`',
      '- `src/low/`: `gone.ts`.',
      '  May import: `rxjs`, `undici` (`http.ts`, `tcp.ts`), `node:http` (types), `zod`',
      '- `src/client.ts`: one file.',
      '  May import: `operators/`, `src/low/`, `node:*`',
      '- `src/cli/`: the command.',
      '  May import: `rivulet`, `rivulet/operators`',
      '```',
      'bytes',
      '  src/low/way.ts   where they go: high/',
      '```',
    ].join('\n'),
  )
  const packages = packageImportsOf(
    '{"imports":{"#http":{"rivulet-source":{"node":"./src/low/tcp.ts","bun":"./src/low/web.ts","default":"./src/low/web.ts"}}}}',
  )
  const forbidden = (file: string, text: string) =>
    forbiddenImports(importsOf(file, text, packages), made.modules)

  it('reads names, and what limits them, from the page', () => {
    expect(made.arrows).toEqual([
      { file: 'src/client.ts', target: 'operators/' },
      { file: 'operators/', target: 'src/low/' },
    ])
    expect(made.named).toEqual(
      expect.arrayContaining(['deep/', 'gone.ts', 'tcp.ts', 'src/low/way.ts', 'high/']),
    )
    expect(made.modules[1]).toEqual({
      path: 'src/low/',
      permissions: [
        { name: 'rxjs', isForTypes: false, files: [] },
        { name: 'undici', isForTypes: false, files: ['http.ts', 'tcp.ts'] },
        { name: 'node:http', isForTypes: true, files: [] },
        { name: 'zod', isForTypes: false, files: [] },
      ],
    })
  })

  it('refuses a picture that it cannot read', () => {
    const list = '- `src/a/`: a.\n  May import: `rxjs`'
    const picture = (line: string) => `\`\`\`\n${line}\n\`\`\`\n${list}`
    expect(() => readPage(picture('src/a/ ◀─ src/b/'))).toThrow('not a chain of arrows: src/a/ ◀─ src/b/')
    expect(() => readPage(picture('src/a/ ─▶ your code'))).toThrow('not a chain of arrows')
    expect(() => readPage(picture('src/a/'))).toThrow('not a chain of arrows')
  })

  it('finds a name that two types of a module have', () => {
    const names = [
      ...typeNamesOf('src/low/a.ts', 'interface A<B> {}\nfunction f() { type C = 1 }\nclass D {}'),
      ...typeNamesOf('src/low/b.ts', 'export type A = 1\nexport interface B {}\nenum C { c }\nconst D = 1'),
      ...typeNamesOf('src/client.ts', 'interface B {}'),
    ]
    expect(repeatedNames(names, made.modules)).toEqual([
      'A is declared in src/low/a.ts, src/low/b.ts',
      'C is declared in src/low/a.ts, src/low/b.ts',
    ])
  })

  it('finds an arrow that is not in the list, and a permission without arrows', () => {
    expect(wrongArrows(made.arrows, made.modules)).toEqual([])
    const swapped = [
      { file: 'src/client.ts', target: 'src/low/' },
      { file: 'src/low/', target: 'operators/' },
    ]
    expect(wrongArrows(swapped, made.modules)).toEqual([
      'src/low/ ─▶ operators/ is in the picture, but not in the list',
      'operators/ may import src/low/, but no arrows lead there',
      'src/client.ts may import operators/, but no arrows lead there',
    ])
  })

  it('refuses a list that it cannot read', () => {
    const list = (names: string) => `- \`src/a/\`: a.\n  May import: ${names}`
    expect(() => readPage(list('the modules above'))).toThrow('not a list of names: `src/a/`')
    expect(() => readPage(list('`rxjs` (mostly)'))).toThrow('not a list of names')
    expect(() => readPage(list('`rxjs` and `zod`'))).toThrow('not a list of names')
    expect(() => readPage('# Nothing')).toThrow('no list of modules')
  })

  it.each([
    ['import a from "../client.ts"', 'src/client.ts'],
    ['import "../client.ts"', 'src/client.ts'],
    ['import type { A } from "../client.ts"', 'types of src/client.ts'],
    ['import { type A } from "../client.ts"', 'src/client.ts'],
    ['export { a } from "../client.ts"', 'src/client.ts'],
    ['export * from "../client.ts"', 'src/client.ts'],
    ['export type { A } from "../client.ts"', 'types of src/client.ts'],
    ['const a = async () => { await import("../client.ts") }', 'src/client.ts'],
    ['let a: Set<import("../client.ts").A>', 'types of src/client.ts'],
    ['let a: typeof import("../client.ts")', 'types of src/client.ts'],
    ['declare module "../client.ts" { interface A {} }', 'types of src/client.ts'],
    ['import a from "left-pad/sub"', 'left-pad'],
    ['import a from "@scope/name/sub"', '@scope/name'],
    ['import a from "rivulet"', 'rivulet'],
    ['import a from "node:fs"', 'node:fs'],
    ['import a from "undici"', 'undici'],
    ['import { createServer } from "node:http"', 'node:http'],
  ])('finds %s where it is not permitted', (text, imported) => {
    expect(forbidden('src/low/other.ts', text)).toEqual([
      `src/low/other.ts imports ${imported}, but src/low/ may import only: rxjs, undici (http.ts, tcp.ts), node:http (types), zod`,
    ])
  })

  it('finds an entry point that the list does not name', () => {
    expect(forbidden('src/cli/main.ts', 'import "rivulet/service"')).toEqual([
      'src/cli/main.ts imports rivulet/service, but src/cli/ may import only: rivulet, rivulet/operators',
    ])
  })

  it('follows the imports of package.json to each of their files', () => {
    expect(importsOf('src/low/a.ts', 'import "#http"', packages).map(({ target }) => target)).toEqual([
      'src/low/tcp.ts',
      'src/low/web.ts',
    ])
    expect(forbidden('src/cli/main.ts', 'import "#http"')).toHaveLength(2)
    expect(() => forbidden('src/low/a.ts', 'import "#other"')).toThrow('package.json has no import #other')
  })

  it('accepts what the list permits', () => {
    expect(forbidden('operators/a.ts', 'import "./deep/b.ts"; import "../src/low/c.ts"')).toEqual([])
    expect(forbidden('src/low/tcp.ts', 'import "undici"; import type { A } from "node:http"')).toEqual([])
    expect(forbidden('src/client.ts', 'import "node:fs"; import "../operators/a.ts"')).toEqual([])
    expect(
      forbidden('src/low/a.ts', '// import "../client.ts"\nconst text = `import "../client.ts"`'),
    ).toEqual([])
  })

  it('refuses a file that it cannot read', () => {
    expect(() => forbidden('src/low/a.ts', 'await import(name)')).toThrow('is not a string literal')
    expect(() => forbidden('src/low/a.ts', 'import from from from')).toThrow('src/low/a.ts: ')
  })

  it('finds a file of no module', () => {
    expect(strayFiles(['src/low/a.ts', 'src/client.ts', 'src/high/a.ts'], made.modules)).toEqual([
      'src/high/a.ts belongs to no module in the list',
    ])
  })

  it('finds an import of the insides of a file of another module', () => {
    const insides = (file: string, specifier: string) => {
      const imported = importsOf(file, `import type { A } from "${specifier}"`, packages)
      return importsOfInsides(imported, ['operators/deep.ts', 'operators/deep/b.ts'], made.modules)
    }
    expect(insides('src/client.ts', '../operators/deep/b.ts')).toEqual([
      'src/client.ts imports types of operators/deep/b.ts, but operators/deep/ holds the insides of operators/deep.ts',
    ])
    expect(insides('src/client.ts', '../operators/deep.ts')).toEqual([])
    expect(insides('operators/other.ts', './deep/b.ts')).toEqual([])
  })

  it('finds an import of one store of a log from another one', () => {
    const between = (file: string, specifier: string) =>
      importsBetweenStores(importsOf(file, `import type { A } from "${specifier}"`, packages))
    const problem = 'but no store imports another: src/log/state/ has what they share'
    expect(between('src/log/nats/journal/a.ts', '../../memory/b.ts')).toEqual([
      `src/log/nats/journal/a.ts imports types of src/log/memory/b.ts, ${problem}`,
    ])
    expect(between('src/log/memory/a.ts', '../sqlite/index.ts')).toEqual([
      `src/log/memory/a.ts imports types of src/log/sqlite/index.ts, ${problem}`,
    ])
    expect(between('src/log/nats/index.ts', './nats/store.ts')).toEqual([])
    expect(between('src/log/nats/a.ts', '../state/b.ts')).toEqual([])
    expect(between('src/log/copy/migrate.ts', '../sqlite/a.ts')).toEqual([])
  })

  it('finds a circle, of types as well', () => {
    const imported = [
      ...importsOf('src/low/a.ts', 'import "./b.ts"; import "./d.ts"', packages),
      ...importsOf('src/low/b.ts', 'import type { C } from "./c.ts"; import "./d.ts"', packages),
      ...importsOf('src/low/c.ts', 'let a: import("./a.ts").A', packages),
    ]
    expect(circleOf(imported)).toBe('src/low/a.ts → src/low/b.ts → src/low/c.ts → src/low/a.ts')
    expect(circleOf(imported.filter(({ isType }) => !isType))).toBeUndefined()
  })

  it('finds a circle of modules in the list', () => {
    const { modules } = readPage(
      '- `src/a/`: a.\n  May import: `src/b/`\n- `src/b/`: b.\n  May import: `src/a/`',
    )
    expect(circleOf(permittedEdges(modules))).toBe('src/a/ → src/b/ → src/a/')
  })
})
