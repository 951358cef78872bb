import MarkdownIt, { type Token } from 'markdown-it'

/** What precedes the names that a module may import. */
const MAY_IMPORT = 'May import: '

/** What a module may import, besides its own files. */
export interface Permission {
  /** A module of the list, a package, an entry point of this package, or `node:*`. */
  readonly name: string
  /** Whether it holds for imports of types alone. */
  readonly isForTypes: boolean
  /** The files that it is limited to, as names within the module; empty if it holds for all of them. */
  readonly files: readonly string[]
}

/** An item of the list of modules. */
export interface Module {
  /** A folder with a `/` at its end, or a file: a path from the root of the repository. */
  readonly path: string
  readonly permissions: readonly Permission[]
}

/** An arrow of the picture: `file ─▶ target`. */
export interface Arrow {
  readonly file: string
  readonly target: string
}

/** What docs/internals/architecture.md says, as far as a program can compare it with the files. */
export interface Page {
  readonly modules: readonly Module[]
  /** The arrows of the picture, each from the module that imports to the one that it imports. */
  readonly arrows: readonly Arrow[]
  /** The files and folders that the text names. A folder ends with `/`; the beginning of a path may be left out. */
  readonly named: readonly string[]
}

/** Reads the page. The picture is its first code block, the modules are the items of lists with "May import". */
export function readPage(text: string): Page {
  const tokens = new MarkdownIt().parse(text, {})
  const [picture = '', ...ways] = tokens.filter(({ type }) => type === 'fence').map(({ content }) => content)
  const names = tokens.flatMap(partsOf).filter(({ type }) => type === 'code_inline')
  const isName = (name: string) => /^[\w*./-]+(\.ts|\/)$/.test(name)
  return {
    modules: modulesOf(tokens),
    arrows: arrowsOf(picture),
    named: [
      ...names.map(({ content }) => content),
      ...ways.flatMap((way) => way.match(/[\w/-]+(\.ts|\/)(?!\w)/g) ?? []),
    ].filter(isName),
  }
}

/** The arrows of lines such as `src/a/ ─▶ src/b/ ─▶ src/c/`. Anything else in the picture is an error. */
function arrowsOf(picture: string): Arrow[] {
  const lines = picture.split('\n').map((line) => line.trim())
  return lines.filter(Boolean).flatMap((line) => {
    const names = line.split(/ ─+▶ /)
    const strange = names.find((name) => !/^[\w./-]+$/.test(name))
    if (strange !== undefined || names.length === 1) throw new Error(`not a chain of arrows: ${line}`)
    return names.slice(1).map((target, index) => ({ file: names[index] ?? '', target }))
  })
}

function modulesOf(tokens: readonly Token[]): Module[] {
  const modules = tokens.flatMap((token) => {
    const parts = partsOf(token)
    const start = parts.findIndex(({ type, content }) => type === 'text' && content.startsWith(MAY_IMPORT))
    if (start === -1) return []
    if (parts[start]?.content !== MAY_IMPORT) throw new Error(`not a list of names: ${token.content}`)
    return [{ path: parts[0]?.content ?? '', permissions: permissionsOf(parts.slice(start + 1)) }]
  })
  if (modules.length === 0) throw new Error(`there is no list of modules: one with "${MAY_IMPORT}"`)
  return modules
}

/**
 * The permissions of a module, a list of names in backticks. What follows a name in parentheses limits it: the word "types",
 * or the files of the module that it is for, in backticks as well.
 */
function permissionsOf(parts: readonly Token[]): Permission[] {
  const permissions: { name: string; isForTypes: boolean; files: string[] }[] = []
  let isWithin = false
  for (const { type, content } of parts) {
    const last = permissions.at(-1)
    if (type === 'code_inline' && isWithin) last?.files.push(content)
    else if (type === 'code_inline') permissions.push({ name: content, isForTypes: false, files: [] })
    else if (type === 'text' && /^( \(types\))?(\)?, | \(|\))?$/.test(content)) {
      if (content.includes('(types)') && last !== undefined) last.isForTypes = true
      isWithin = content.endsWith('(') || (isWithin && !content.startsWith(')'))
    } else throw new Error(`not a list of names: ${parts.map((part) => part.content).join('')}`)
  }
  return permissions
}

function partsOf({ children }: Token): readonly Token[] {
  return children ?? []
}
