import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { copyFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../package/build.ts'
import type { InstalledPackage } from '../package/build.ts'
import { installPackage } from '../package/installed.ts'

const FOLDER = resolve(import.meta.dirname, 'typescript')
const modules = join(FOLDER, 'node_modules')
const { devDependencies }: { readonly devDependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(join(FOLDER, 'package.json'), 'utf8'),
)
/** The supported compilers, oldest first. */
const versions = Object.keys(devDependencies).filter((name) => name.startsWith('typescript-'))

type Resolution = 'node16' | 'nodenext' | 'bundler'

/** Projects, each with a program of the same name in `test/package`, which uses every entry point that works there. */
const PROJECTS = {
  'without-dom': { lib: ['es2023'], types: ['node'] },
  'without-node': { lib: ['es2023', 'dom'], types: [] },
} as const
type Project = keyof typeof PROJECTS

/** The newest compiler, which is fast, resolves in every way, the others as is usual for the project. */
const cases = versions.flatMap((version): [string, Project, Resolution][] =>
  version === versions.at(-1)
    ? (['without-dom', 'without-node'] as const).flatMap((project) =>
        (['node16', 'nodenext', 'bundler'] as const).map((resolution): [string, Project, Resolution] => [
          version,
          project,
          resolution,
        ]),
      )
    : [
        [version, 'without-dom', 'node16'],
        [version, 'without-node', 'bundler'],
      ],
)

/** The file of a project's program. It is compiled with the sources too. */
const program = (project: string) => join(ROOT, 'test/package', `${project}.ts`)

let installed: InstalledPackage
beforeAll(async () => {
  installed = await installPackage()
  for (const project of Object.keys(PROJECTS)) {
    await copyFile(program(project), join(installed.folder, `${project}.ts`))
  }
})
afterAll(() => installed[Symbol.asyncDispose]())

/** What a compiler says about a project. */
async function complaints(version: string, project: Project, resolution: Resolution): Promise<string> {
  const config = join(installed.folder, `${version}-${project}-${resolution}.json`)
  const compilerOptions = {
    ...PROJECTS[project],
    module: resolution === 'bundler' ? 'esnext' : resolution,
    moduleResolution: resolution,
    target: 'es2022',
    strict: true,
    // The declarations of packages are checked, without the compiler's own.
    skipLibCheck: false,
    skipDefaultLibCheck: true,
    // A type without a public name cannot be written into the declarations of a user's package.
    declaration: true,
    emitDeclarationOnly: true,
    outDir: join(installed.folder, 'declarations', version),
  }
  await writeFile(config, JSON.stringify({ compilerOptions, files: [`${project}.ts`] }))
  const compiler = join(modules, version, 'bin/tsc')
  return promisify(execFile)(process.execPath, [compiler, '-p', config], { cwd: installed.folder }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }) => stdout + stderr,
  )
}

describe('the packed package in a project that checks the declarations of its libraries', () => {
  it('is tried from TypeScript 5.4 to the newest one', () => {
    expect(versions.slice(0, 2)).toEqual(['typescript-5.4', 'typescript-5.5'])
    expect(versions.length).toBeGreaterThan(7)
  })

  it.each(cases)('compiles with %s, %s, moduleResolution %s', async (version, project, resolution) => {
    expect(await complaints(version, project, resolution)).toBe('')
  })

  it('has a program that imports every entry point', () => {
    const programs = Object.keys(PROJECTS).map((project) => readFileSync(program(project), 'utf8'))
    const { exports }: { readonly exports: Readonly<Record<string, unknown>> } = JSON.parse(
      readFileSync(installed.path('package.json'), 'utf8'),
    )
    const entries = Object.keys(exports).filter((name) => !name.endsWith('.json'))

    expect(entries.length).toBeGreaterThan(10)
    expect(
      entries.filter((name) => !programs.some((text) => text.includes(`from 'rivulet${name.slice(1)}'`))),
    ).toEqual([])
  })
})
