import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately, median, seconds } from '../rounds.ts'

const PROJECT = fileURLToPath(new URL('../..', import.meta.url))
const ENTRY = 'dist/src/index.js'
const ROUNDS = 21

/**
 * The time of `import 'rivulet'` from the built package, against importing only the packages that it imports, which are read from
 * the built files. Each import is timed in a new Node process, without a compile cache. The details have the whole process.
 */
export const measure: Measure = async () => {
  build()
  const dependencies = await imported()
  const processes: Record<'ours' | 'theirs', number[]> = { ours: [], theirs: [] }
  const timed = (side: 'ours' | 'theirs', names: readonly string[]) => async () => {
    let within = NaN
    const whole = await seconds(() => {
      within = importInNewProcess(names)
    })
    processes[side].push(whole * 1_000)
    return within
  }
  const { ratio, ...details } = await alternately(timed('ours', ['rivulet']), timed('theirs', dependencies), {
    rounds: ROUNDS,
  })
  return [
    result(
      'import',
      ratio,
      { atMost: 1.15 },
      {
        ...details,
        unit: 'ms',
        dependencies,
        processOurs: rounded(median(processes.ours)),
        processTheirs: rounded(median(processes.theirs)),
      },
    ),
  ]
}

/** Imports all of them in a new process; in ms. */
function importInNewProcess(names: readonly string[]): number {
  const imports = names.map((name) => `import(${JSON.stringify(name)})`).join(', ')
  const script = `
    const began = process.hrtime.bigint()
    await Promise.all([${imports}])
    process.stdout.write(String(process.hrtime.bigint() - began))`
  const { NODE_OPTIONS: _options, NODE_COMPILE_CACHE: _cache, ...env } = process.env
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    cwd: PROJECT,
    env,
  })
  return Number(output.toString()) / 1e6
}

/** The packages that the built entry imports, itself or through its own files. */
async function imported(): Promise<readonly string[]> {
  const graph = await rolldown({
    input: ENTRY,
    cwd: PROJECT,
    platform: 'node',
    external: (id) => /^[^./#]/.test(id),
    treeshake: false,
  })
  const { output } = await graph.generate()
  await graph.close()
  return output[0].imports.filter((name) => !name.startsWith('node:') && !builtinModules.includes(name))
}

/** Builds the package unless the build is newer than the sources. */
function build(): void {
  const builtAt =
    statSync(new URL(`../../${ENTRY}`, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (['src', 'operators'].some((folder) => newestIn(folder) > builtAt)) {
    execFileSync('npm', ['run', 'build'], { cwd: PROJECT })
  }
}

/** The time of the last change in the folder, Unix time in ms. */
function newestIn(folder: string): number {
  const root = fileURLToPath(new URL(`../../${folder}`, import.meta.url))
  const times = readdirSync(root, { recursive: true, encoding: 'utf8' }).map(
    (path) => statSync(`${root}/${path}`).mtimeMs,
  )
  return Math.max(...times)
}
