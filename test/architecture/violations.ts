import type { Import } from './imports.ts'
import type { Arrow, Module, Permission } from './page.ts'
import type { TypeName } from './type-names.ts'

/** The files that belong to no module of the list, a sentence for each. */
export function strayFiles(files: readonly string[], modules: readonly Module[]): string[] {
  return files
    .filter((file) => moduleOf(file, modules) === undefined)
    .map((file) => `${file} belongs to no module in the list`)
}

/** The imports that the list of modules does not permit, a sentence for each. */
export function forbiddenImports(imports: readonly Import[], modules: readonly Module[]): string[] {
  return imports.flatMap((each) => {
    const module = moduleOf(each.file, modules)
    const target = moduleOf(each.target, modules)?.path ?? each.target
    if (module === undefined || target === module.path) return []
    if (module.permissions.some((permission) => permits(permission, module, target, each))) return []
    const permitted = module.permissions.map(describePermission).join(', ') || 'nothing'
    return [`${sentence(each)}, but ${module.path} may import only: ${permitted}`]
  })
}

/**
 * The imports from another module of what a folder hides, a sentence for each. A folder beside a file of the same name holds
 * the insides of that file.
 */
export function importsOfInsides(
  imports: readonly Import[],
  files: readonly string[],
  modules: readonly Module[],
): string[] {
  const known = new Set(files)
  return imports.flatMap((each) => {
    if (moduleOf(each.file, modules) === moduleOf(each.target, modules)) return []
    const owner = foldersOf(each.target).find(
      (folder) => known.has(`${folder}.ts`) || known.has(`${folder}.tsx`),
    )
    return owner === undefined ? [] : [`${sentence(each)}, but ${owner}/ holds the insides of ${owner}.ts`]
  })
}

/** The names of types that several declarations of one module have, a sentence for each. */
export function repeatedNames(names: readonly TypeName[], modules: readonly Module[]): string[] {
  const byName = Map.groupBy(names, ({ file, name }) => `${moduleOf(file, modules)?.path ?? file} ${name}`)
  return [...byName.values()].flatMap((each) =>
    each.length === 1
      ? []
      : [`${each[0]?.name ?? ''} is declared in ${each.map(({ file }) => file).join(', ')}`],
  )
}

/** The rooms of the stores of a log, each with its entry point where it has one. */
const STORES = ['src/log/memory', 'src/log/sqlite', 'src/log/nats']

/** The imports of one store of a log from another one, a sentence for each. */
export function importsBetweenStores(imports: readonly Import[]): string[] {
  const storeOf = (file: string) =>
    STORES.find((store) => file === `${store}.ts` || file.startsWith(`${store}/`))
  return imports.flatMap((each) => {
    const [store, target] = [storeOf(each.file), storeOf(each.target)]
    if (store === undefined || target === undefined || store === target) return []
    return [`${sentence(each)}, but no store imports another: src/log/state/ has what they share`]
  })
}

/** The shortest circle that a walk along the imports comes upon, as its files; undefined where there is none. */
export function circleOf(edges: readonly Pick<Import, 'file' | 'target'>[]): string | undefined {
  const targets = Map.groupBy(edges, ({ file }) => file)
  const done = new Set<string>()
  const path: string[] = []
  let shortest: string[] | undefined
  const visit = (file: string) => {
    if (path.includes(file)) {
      const circle = [...path.slice(path.indexOf(file)), file]
      if (shortest === undefined || circle.length < shortest.length) shortest = circle
      return
    }
    if (done.has(file)) return
    path.push(file)
    for (const { target } of targets.get(file) ?? []) visit(target)
    path.pop()
    done.add(file)
  }
  for (const file of targets.keys()) visit(file)
  return shortest?.join(' → ')
}

/** What the list permits between modules, as edges for {@link circleOf}. */
export function permittedEdges(modules: readonly Module[]): Pick<Import, 'file' | 'target'>[] {
  return modules.flatMap(({ path, permissions }) =>
    permissions.map(({ name }) => ({ file: path, target: name })),
  )
}

/** Where the arrows of the picture differ from the list, a sentence for each. Permissions may be chains of arrows. */
export function wrongArrows(arrows: readonly Arrow[], modules: readonly Module[]): string[] {
  const paths = new Set(modules.map(({ path }) => path))
  const permitted = permittedEdges(modules).filter(({ target }) => paths.has(target))
  const isPermitted = (arrow: Arrow) =>
    permitted.some(({ file, target }) => arrow.file === file && arrow.target === target)
  const right = arrows.filter(isPermitted)
  const reaches = (file: string, target: string): boolean =>
    right.some((arrow) => arrow.file === file && (arrow.target === target || reaches(arrow.target, target)))
  return [
    ...arrows
      .filter((arrow) => !isPermitted(arrow))
      .map(({ file, target }) => `${file} ─▶ ${target} is in the picture, but not in the list`),
    ...permitted
      .filter(({ file, target }) => !reaches(file, target))
      .map(({ file, target }) => `${file} may import ${target}, but no arrows lead there`),
  ]
}

function moduleOf(file: string, modules: readonly Module[]): Module | undefined {
  return modules.find(({ path }) => file === path || (path.endsWith('/') && file.startsWith(path)))
}

function permits(
  { name, isForTypes, files }: Permission,
  module: Module,
  target: string,
  each: Import,
): boolean {
  if (isForTypes && !each.isType) return false
  if (files.length > 0 && !files.some((file) => each.file === `${module.path}${file}`)) return false
  return name === target || (name === 'node:*' && target.startsWith('node:'))
}

function describePermission({ name, isForTypes, files }: Permission): string {
  const limits = isForTypes ? ['types', ...files] : files
  return limits.length === 0 ? name : `${name} (${limits.join(', ')})`
}

function sentence({ file, target, isType }: Import): string {
  return `${file} imports ${isType ? 'types of ' : ''}${target}`
}

/** The folders that a file stands in, from the outermost one. */
function foldersOf(file: string): string[] {
  const parts = file.split('/')
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'))
}
