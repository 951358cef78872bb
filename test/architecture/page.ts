import MarkdownIt, { type Token } from 'markdown-it'

/** What a module may import, besides its own files. */
export interface Permission {
  /** A module of the table, a package, an entry point of this package, or `node:*`. */
  readonly name: string
  /** Whether it holds for imports of types alone. */
  readonly isForTypes: boolean
  /** The files that it is limited to, as names within the module; empty where it holds for all of them. */
  readonly files: readonly string[]
}

/** A row of the table of modules. */
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

/** What docs/architecture.md says, as far as a program can compare it with the files. */
export interface Page {
  readonly modules: readonly Module[]
  /** The arrows of the picture, each from the module that imports to the one that it imports. */
  readonly arrows: readonly Arrow[]
  /** The files and folders that the text names. A folder ends with `/`; the beginning of a path may be left out. */
  readonly named: readonly string[]
}

/** Reads the page. The picture is its first code block, the modules are the table with a column "May import". */
export function readPage(text: string): Page {
  const tokens = new MarkdownIt().parse(text, {})
  const picture = tokens.find(({ type }) => type === 'fence')?.content ?? ''
  const names = tokens.flatMap(partsOf).filter(({ type }) => type === 'code_inline')
  return {
    modules: modulesOf(tokens),
    arrows: arrowsOf(picture),
    named: names.map(({ content }) => content).filter((name) => /^[\w*./-]+(\.ts|\/)$/.test(name)),
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
  for (const [head = [], ...rows] of tablesOf(tokens)) {
    const column = head.findIndex((cell) => cell.content === 'May import')
    if (column === -1) continue
    return rows.map((cells) => {
      const path = cells.slice(0, 1).flatMap(partsOf)[0]?.content ?? ''
      return { path, permissions: cells.slice(column, column + 1).flatMap(permissionsOf) }
    })
  }
  throw new Error('there is no table of modules: one with a column "May import"')
}

/** The tables, each as its rows, each as the tokens of its cells' texts. */
function tablesOf(tokens: readonly Token[]): Token[][][] {
  const tables: Token[][][] = []
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'table_open') tables.push([])
    else if (token.type === 'tr_open') tables.at(-1)?.push([])
    else if (/^t[hd]_open$/.test(token.type))
      tables
        .at(-1)
        ?.at(-1)
        ?.push(...tokens.slice(index + 1, index + 2))
  }
  return tables
}

/**
 * The permissions of a cell, a list of names in backticks. What follows a name in parentheses limits it: the word "types",
 * or the files of the module that it is for, in backticks as well.
 */
function permissionsOf(cell: Token): Permission[] {
  const permissions: { name: string; isForTypes: boolean; files: string[] }[] = []
  let isWithin = false
  for (const { type, content } of partsOf(cell)) {
    const last = permissions.at(-1)
    if (type === 'code_inline' && isWithin) last?.files.push(content)
    else if (type === 'code_inline') permissions.push({ name: content, isForTypes: false, files: [] })
    else if (type === 'text' && /^( \(types\))?(\)?, | \(|\))?$/.test(content)) {
      if (content.includes('(types)') && last !== undefined) last.isForTypes = true
      isWithin = content.endsWith('(') || (isWithin && !content.startsWith(')'))
    } else throw new Error(`not a list of names: ${cell.content}`)
  }
  return permissions
}

function partsOf({ children }: Token): readonly Token[] {
  return children ?? []
}
