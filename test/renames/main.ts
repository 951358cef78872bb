/**
 * Runs the tests of an earlier commit against today's sources, with the map of renames beside this file: `npm run earlier-tests`.
 * Beginnings of paths after `--` select some of the files.
 *
 * It runs each test file that imports only what public entries export, helpers of tests and other packages. It exits with 1 if a test
 * fails that the map does not list, or if one passes that the map lists as changed.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, matchesGlob, relative, resolve } from 'node:path'
import { CHANGED, COMMIT, RENAMES } from './renames.ts'

/** A file in a JSON report of Vitest. */
interface FileReport {
  readonly name: string
  readonly message: string
  readonly assertionResults: readonly {
    readonly fullName: string
    readonly status: string
    readonly failureMessages: readonly string[]
  }[]
}

/** Its group has the names in braces, if the import has nothing else. Imports of types do not count: they are gone when a test runs. */
const IMPORT_OF_INSIDES =
  /^import (?!type )(?:\{([^}]*)\}|[^{'\n]*(?:\{[^}]*\})?) from '(?:\.\.\/)+(?:src|operators)\/[^']*'$/gm

/** An import of named values from a public entry. */
const IMPORT_OF_ENTRY = /^import \{([^}]*)\} from '(rivulet(?:\/[^']*)?)'$/gm

const NOT_COPIED = new Set(['.git', 'dist', 'node_modules', 'reference', 'test'])

const root = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'rivulet-earlier-tests-'))
try {
  checkOut()
  const entriesOf = await publicNames()
  for (const file of globSync('test/**/*.{ts,tsx}', { cwd: folder })) rename(join(folder, file), entriesOf)
  const files = globSync('test/**/*.test.{ts,tsx}', { cwd: folder, exclude: ['test/{real,disk}/**'] })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => readFileSync(join(folder, file), 'utf8').search(IMPORT_OF_INSIDES) < 0)
    .toSorted()
  const wanted = process.argv.slice(2)
  const selected = files.filter(
    (file) => wanted.length === 0 || wanted.some((start) => file.startsWith(start)),
  )
  // Vitest would run all files, those of insides too.
  if (selected.length === 0) throw new Error(`no file begins with ${wanted.join(' or ')}`)
  report(files.length, run(selected))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Writes the tests of the commit into the folder, beside copies of all other files of today. */
function checkOut() {
  const archive = execFileSync('git', ['archive', COMMIT, 'test'], { cwd: root, maxBuffer: 2 ** 30 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  // The configuration of today names it. Those tests start everything from its sources.
  writeFileSync(join(folder, 'test/support/builds.setup.ts'), 'export default () => {}\n')
  // Copies, since npm does not pack links.
  for (const name of readdirSync(root).filter((each) => !NOT_COPIED.has(each))) {
    cpSync(join(root, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
}

/** The exported values of all entries, each with the entries that have it. */
async function publicNames(): Promise<ReadonlyMap<string, readonly string[]>> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entriesOf = new Map<string, string[]>()
  for (const [path, { 'rivulet-source': source }] of Object.entries<Record<string, string>>(exports)) {
    if (source === undefined) continue
    for (const name of Object.keys(await import(resolve(root, source)))) {
      entriesOf.set(name, [...(entriesOf.get(name) ?? []), `rivulet${path.slice(1)}`])
    }
  }
  // No public name: tests alone delay and fail a log in memory.
  return entriesOf.set('simulatedStore', [join(folder, 'src/log/memory/store.ts')])
}

function rename(file: string, entriesOf: ReadonlyMap<string, readonly string[]>) {
  const text = readFileSync(file, 'utf8')
  let renamed = ofLog(text)
  for (const [from, to, pattern = '**'] of RENAMES) {
    if (matchesGlob(relative(folder, file), pattern)) renamed = renamed.replaceAll(from, to)
  }
  renamed = renamed
    .replaceAll(IMPORT_OF_INSIDES, (line, list: string | undefined) => {
      const names = namesOf(list ?? '')
      if (names.length === 0 || !names.every((name) => entriesOf.has(nameOf(name)))) return line
      return names.map((name) => `import { ${name} } from '${entriesOf.get(nameOf(name))?.[0]}'`).join('\n')
    })
    .replaceAll(IMPORT_OF_ENTRY, (_line, list: string, entry: string) =>
      namesOf(list)
        .map((name) => {
          const entries = entriesOf.get(nameOf(name)) ?? [entry]
          return `import { ${name} } from '${entries.includes(entry) ? entry : entries[0]}'`
        })
        .join('\n'),
    )
  if (renamed !== text) writeFileSync(file, renamed)
}

function namesOf(list: string): readonly string[] {
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

function nameOf(imported: string): string {
  return imported.replace(/^type | as .*$/g, '')
}

/** A call `client.record({ monitors, log })` is `log.record({ client, monitors })`. */
function ofLog(text: string): string {
  return text.replaceAll(
    /\b([\w.#]+)\.record\((\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})/g,
    (call: string, client: string, options: string) => {
      const log = /,\s*log(?:: ([\w.#]+))?(?=\s*[,}])|(?<=^\{)\s*log(?:: ([\w.#]+))?(?:,|(?=\s*\}))/.exec(
        options,
      )
      if (log === null) return call
      const named = client === 'client' ? client : `client: ${client}`
      return `${log[1] ?? log[2] ?? 'log'}.record({ ${named},${options.replace(log[0], '').slice(1)}`
    },
  )
}

function run(files: readonly string[]): readonly FileReport[] {
  const output = join(folder, 'report.json')
  const { status } = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--reporter=json',
      `--outputFile=${output}`,
      ...files,
    ],
    { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] },
  )
  if (status === null) throw new Error('the run was ended')
  return JSON.parse(readFileSync(output, 'utf8')).testResults
}

function report(found: number, files: readonly FileReport[]) {
  const counts = { found, files: files.length, passed: 0, skipped: 0, changed: 0, failed: 0 }
  const print = (text: string) => process.stdout.write(`${text}\n`)
  for (const { name, message, assertionResults } of files) {
    const file = name.slice(folder.length + 1)
    const changed = Object.keys(CHANGED[file] ?? {})
    if (assertionResults.length === 0 && changed.includes('')) counts.changed++
    else if (assertionResults.length === 0) {
      counts.failed++
      print(`${file}: ${message}`)
    }
    for (const { fullName, status, failureMessages } of assertionResults) {
      const isChanged = changed.some((start) => fullName.startsWith(start))
      if (status === 'passed' && isChanged) {
        counts.failed++
        print(`${file}: "${fullName}" passes, although the map says that it changed`)
      } else if (status === 'passed') counts.passed++
      else if (status !== 'failed') counts.skipped++
      else if (isChanged) counts.changed++
      else {
        counts.failed++
        print(`${file}: ${fullName}\n${failureMessages.join('\n').replaceAll(/^/gm, '    ')}`)
      }
    }
  }
  print(JSON.stringify(counts))
  if (counts.failed > 0) process.exitCode = 1
}
