import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const DOCUMENTS = ['README.md', 'docs/*.md', 'operators/*.ts', 'src/**/*.ts']

/** A fenced `ts` block, and where its first line stands. */
interface Snippet {
  readonly file: string
  /** Counted from 1. */
  readonly line: number
  readonly text: string
}

/** The fenced `ts` blocks of a Markdown text, or of the doc comments in a TypeScript one. */
function snippetsOf(file: string, text: string): Snippet[] {
  const margin = file.endsWith('.ts') ? /^\s*\* ?/ : /^/
  const lines = text.split('\n')
  const snippets: Snippet[] = []
  let start: number | undefined
  for (const [index, line] of lines.entries()) {
    // In a source file, what stands outside of comments opens no block.
    if (start === undefined && margin.test(line) && line.replace(margin, '') === '```ts') start = index + 1
    else if (start !== undefined && line.replace(margin, '') === '```') {
      const block = lines.slice(start, index).map((each) => each.replace(margin, ''))
      snippets.push({ file, line: start + 1, text: block.join('\n') })
      start = undefined
    }
  }
  return snippets
}

/** All that the documentation shows. */
function allSnippets(): Snippet[] {
  const files = globSync(DOCUMENTS, { cwd: root }).toSorted()
  return files.flatMap((file) => snippetsOf(file, readFileSync(join(root, file), 'utf8')))
}

/** What the compiler has to say about the snippets, each by its document and line; nothing when they are right. */
async function compile(snippets: readonly Snippet[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-docs-'))
  try {
    // The package under its own name, as its users have it, and what stands beside it there.
    const modules = join(folder, 'node_modules')
    await mkdir(modules)
    await symlink(root, join(modules, 'rivulet'), 'junction')
    for (const name of ['rxjs', '@types', 'zod', 'hono', 'vitest']) {
      await symlink(join(root, 'node_modules', name), join(modules, name), 'junction')
    }
    await writeFile(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
    for (const { file, line, text } of snippets) {
      const path = join(folder, `${file}-${line}.ts`)
      await mkdir(dirname(path), { recursive: true })
      // Empty lines before it make the compiler name the document's own lines.
      await writeFile(path, `${'\n'.repeat(line - 1)}${text}\nexport {}\n`)
    }
    const config = {
      extends: join(root, 'tsconfig.json'),
      // A snippet shows how a thing is called, and may leave it at that.
      compilerOptions: { rootDir: resolve('/'), noUnusedLocals: false, noUnusedParameters: false },
      include: ['**/*.ts', join(root, 'src/**/*.d.ts')],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    return await complaintsOf(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the compiler of this repository on a folder. */
function complaintsOf(folder: string): Promise<string[]> {
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  return new Promise((done) => {
    execFile(process.execPath, [compiler, '--project', folder], { cwd: folder }, (error, stdout, stderr) => {
      if (error === null) done([])
      else done((stdout + stderr || String(error)).trim().split('\n'))
    })
  })
}

describe('the documentation', () => {
  // One run of the compiler for all of them, and for one that shows that it looks.
  const wrong = { file: 'wrong.md', line: 12, text: 'const text: string = 1' }
  const undefinedName = { file: 'undefined.md', line: 3, text: 'client.search' }
  const made = [wrong, undefinedName]
  let snippets: Snippet[] = []
  let complaints: string[] = []
  beforeAll(async () => {
    snippets = allSnippets()
    complaints = await compile([...snippets, ...made])
  }, 60_000)

  it('shows code that compiles as it stands', () => {
    expect(complaints.filter((line) => !made.some(({ file }) => line.startsWith(file)))).toEqual([])
  })

  it('declares or imports every name that it uses', () => {
    expect(complaints).toContainEqual(expect.stringMatching(/^undefined\.md-3\.ts\(3,1\): error TS2304/))
  })

  it('would be found out, by document and line, if it did not', () => {
    expect(complaints).toContainEqual(expect.stringMatching(/^wrong\.md-12\.ts\(12,7\): error TS2322/))
  })

  it('is read wherever it has code', () => {
    const files = snippets.map(({ file }) => file)

    expect(files).toEqual(expect.arrayContaining(['README.md', 'src/client.ts', 'src/service/service.ts']))
    const operators = ['dedupe', 'deliver', 'iterate', 'merge-webhooks', 'of-type', 'reconnect']
    expect(files).toEqual(expect.arrayContaining(operators.map((name) => `operators/${name}.ts`)))
  })
})
