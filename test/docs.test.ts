import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { EVENT_TYPES } from '../src/protocol/event-types.ts'
import { entryPoints } from './support/entry-points.ts'
import { codeIn, namesIn, rowsOf } from './support/markdown-table.ts'

const root = resolve(import.meta.dirname, '..')
const DOCUMENTS = ['README.md', 'docs/**/*.md', 'operators/*.ts', 'src/**/*.ts']

/** The operators that operators/index.ts exports: each from a file of its own in that folder. */
const operators = [
  ...readFileSync(join(root, 'operators/index.ts'), 'utf8').matchAll(
    /^export \{ (\w+) \} from '\.\/([\w-]+\.ts)'/gm,
  ),
].map(([, name = '', file = '']) => ({ name, file }))

/** A fenced `ts` or `tsx` block, with its file and first line. */
interface Snippet {
  readonly file: string
  /** Counted from 1. */
  readonly line: number
  readonly text: string
  readonly language: 'ts' | 'tsx'
  /** The file that its reader saves it as, which others of the same page import. */
  readonly name?: string | undefined
}

/** The fenced `ts` and `tsx` blocks of a Markdown text, or of the doc comments in a TypeScript one. */
function snippetsOf(file: string, text: string): Snippet[] {
  const margin = file.endsWith('.ts') ? /^\s*\* ?/ : /^/
  const lines = text.split('\n')
  const snippets: Snippet[] = []
  let start: Pick<Snippet, 'line' | 'language' | 'name'> | undefined
  for (const [index, line] of lines.entries()) {
    const bare = line.replace(margin, '')
    // In a source file, only comments contain blocks.
    if (start === undefined && margin.test(line) && (bare === '```ts' || bare === '```tsx')) {
      const [, name] = /^Save this as `([\w-]+\.tsx?)`:$/.exec(lines[index - 2] ?? '') ?? []
      start = { line: index + 2, language: bare === '```ts' ? 'ts' : 'tsx', name }
    } else if (start !== undefined && bare === '```') {
      const block = lines.slice(start.line - 1, index).map((each) => each.replace(margin, ''))
      snippets.push({ file, ...start, text: block.join('\n') })
      start = undefined
    }
  }
  return snippets
}

/** All snippets of the documentation. */
function allSnippets(): Snippet[] {
  const files = globSync(DOCUMENTS, { cwd: root }).toSorted()
  return files.flatMap((file) => snippetsOf(file, readFileSync(join(root, file), 'utf8')))
}

/** Returns the compiler's errors, by document and line; empty if the snippets compile. */
async function compile(snippets: readonly Snippet[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-docs-'))
  try {
    // Links the package under its own name, and its dependencies beside it.
    const modules = join(folder, 'node_modules')
    await mkdir(modules)
    await symlink(root, join(modules, 'rivulet'), 'junction')
    for (const name of [
      'rxjs',
      '@types',
      '@opentelemetry',
      'pino',
      'openai',
      'zod',
      'hono',
      'vitest',
      'parallel-web',
    ]) {
      await symlink(join(root, 'node_modules', name), join(modules, name), 'junction')
    }
    await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    for (const { file, line, language, text, name } of snippets) {
      const page = join(folder, file)
      await mkdir(page, { recursive: true })
      // Padded with empty lines, so that the compiler reports the line numbers of the document.
      await writeFile(join(page, `${line}.${language}`), `${'\n'.repeat(line - 1)}${text}\nexport {}\n`)
      if (name !== undefined) await writeFile(join(page, name), `export * from './${line}.${language}'\n`)
    }
    const config = {
      extends: join(root, 'tsconfig.json'),
      // A snippet need not use what it declares.
      compilerOptions: { rootDir: resolve('/'), noUnusedLocals: false, noUnusedParameters: false },
      include: ['**/*.ts', '**/*.tsx', join(root, 'src/**/*.d.ts')],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    return await compilerErrors(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the repository's compiler on a folder. */
function compilerErrors(folder: string): Promise<string[]> {
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  return new Promise((done) => {
    execFile(process.execPath, [compiler, '--project', folder], { cwd: folder }, (error, stdout, stderr) => {
      if (error === null) done([])
      else done((stdout + stderr || String(error)).trim().split('\n'))
    })
  })
}

describe('the documentation', () => {
  // Compiles all snippets at once, with two wrong ones that must be reported.
  const wrong: Snippet = { file: 'wrong.md', line: 12, language: 'ts', text: 'const text: string = 1' }
  const undefinedName: Snippet = { file: 'undefined.md', line: 3, language: 'ts', text: 'client.search' }
  const made = [wrong, undefinedName]
  let snippets: Snippet[] = []
  let errors: string[] = []
  beforeAll(async () => {
    snippets = allSnippets()
    errors = await compile([...snippets, ...made])
  }, 300_000)

  it('has snippets that compile', () => {
    expect(errors.filter((line) => !made.some(({ file }) => line.startsWith(file)))).toEqual([])
  })

  it('declares or imports every name that it uses', () => {
    expect(errors).toContainEqual(expect.stringMatching(/^undefined\.md\/3\.ts\(3,1\): error TS2304/))
  })

  it('is reported by document and line if a snippet does not compile', () => {
    expect(errors).toContainEqual(expect.stringMatching(/^wrong\.md\/12\.ts\(12,7\): error TS2322/))
  })

  it('is compiled in every file with snippets', () => {
    const files = snippets.map(({ file }) => file)

    expect(files).toEqual(expect.arrayContaining(['README.md', 'src/client.ts', 'src/service/service.ts']))
    expect(files).toEqual(expect.arrayContaining(operators.map(({ file }) => `operators/${file}`)))
  })
})

/** The values that entry points export. */
const exported = (await entryPoints()).flatMap(({ name, values }) =>
  Object.keys(values).map((value) => ({ from: name, value })),
)

describe('the README and the pages of docs', () => {
  const text = globSync(['README.md', 'docs/**/*.md'], { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n')
  const inSentences = new Set(
    codeIn(text.replaceAll(/^```[^]*?^```/gm, '')).map((code) => /^<?(\w*)/.exec(code)?.[1]),
  )
  const imports = [...text.matchAll(/^import \{([^}]*)\} from '([^']+)'/gm)]
  const inPrograms = new Set(
    imports.flatMap(([, names = '', from]) =>
      (names.match(/\w+/g) ?? []).map((name) => `${name} of ${from}`),
    ),
  )

  it('name each value that an entry point exports in a sentence or table, or import it in a program', () => {
    const isNamed = ({ from, value }: (typeof exported)[number]) =>
      inSentences.has(value) || inPrograms.has(`${value} of ${from}`)

    expect(exported.filter((each) => !isNamed(each))).toEqual([])
    expect(exported).toContainEqual({ from: 'rivulet/log', value: 'openLog' })
  })
})

describe('the table of event types', () => {
  it('has each type once, and no other', () => {
    const documented = rowsOf('docs/reference/events.md', '`type`').flatMap(([types]) => codeIn(types))

    expect(documented.toSorted()).toEqual(EVENT_TYPES.toSorted())
  })
})

describe('the table of operators', () => {
  it('has each operator that is exported, and no other', () => {
    const documented = rowsOf('docs/reference/operators.md', 'Operator').flatMap(([call]) => namesIn(call))

    expect(documented.toSorted()).toEqual(operators.map(({ name }) => name).toSorted())
    expect(operators.length).toBeGreaterThan(0)
  })
})
