/**
 * Measures the overhead of Rivulet: `npm run bench -- --json`, or `--only stream` for one file of figures. Each file is measured in a
 * separate process; docs/internals/performance.md explains the figures.
 */
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { constants, cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ended, messageOf } from './child.ts'
import { isReport, SkippedError } from './figure.ts'
import type { Result, Target } from './figure.ts'

/** Files of figures whose set-up takes minutes: only measured by their names. */
const SLOW: ReadonlySet<string> = new Set(['service-search-100k'])

/** A file of figures without results, and why. */
interface Without {
  readonly name: string
  readonly message: string
}

const { chosen, json } = parseCommandLine()
let running: ChildProcess | undefined
endWithSignal('SIGINT')
endWithSignal('SIGTERM')

const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length }
if (!json) print(Object.values(machine).join(', '))

const bench: Result[] = []
const skipped: Without[] = []
const failed: Without[] = []
for (const name of chosen) {
  try {
    const results = await measured(name)
    bench.push(...results)
    if (!json) for (const each of results) print(line(each))
  } catch (error) {
    const list = error instanceof SkippedError ? skipped : failed
    list.push({ name, message: messageOfError(error) })
  }
}
if (json) {
  print(JSON.stringify({ bench, machine, skipped, failed }))
} else {
  for (const { name, message } of skipped) print(`skipped: ${name}: ${message}`)
  for (const { name, message } of failed) print(`failed: ${name}: ${message}`)
}
if (failed.length > 0) process.exitCode = 1

/** Parses the command line. Prints an error and ends where it is not valid. */
function parseCommandLine(): { readonly chosen: readonly string[]; readonly json: boolean } {
  try {
    const { values } = parseArgs({
      options: { only: { type: 'string', multiple: true }, json: { type: 'boolean', default: false } },
    })
    const all = readdirSync(new URL('figures', import.meta.url)).map((file) => file.replace(/\.ts$/, ''))
    const wrong = values.only?.find((name) => !all.includes(name))
    if (wrong !== undefined) throw new Error(`--only takes one of ${all.join(', ')}; got ${wrong}`)
    return { chosen: values.only ?? all.filter((name) => !SLOW.has(name)), json: values.json }
  } catch (error) {
    process.stderr.write(`${messageOfError(error)}\n`)
    process.exit(1)
  }
}

function endWithSignal(signal: 'SIGINT' | 'SIGTERM'): void {
  process.once(signal, () => {
    running?.kill(signal)
    process.exit(128 + constants.signals[signal])
  })
}

async function measured(name: string): Promise<readonly Result[]> {
  const runner = fileURLToPath(new URL('run-figure.ts', import.meta.url))
  const child = fork(runner, [name], { execArgv: ['--conditions=rivulet-source', '--expose-gc'] })
  running = child
  const report = await messageOf(child, `the process of ${name}`, 'sent its results')
  await ended(child)
  if (!isReport(report)) throw new Error(`the process of ${name} sent something other than its results`)
  if ('failure' in report) throw new Error(report.failure)
  if ('skipped' in report) throw new SkippedError(report.skipped)
  return report.results
}

function messageOfError(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function line({ name, ratio, target, ok, ...details }: Result): string {
  const rest = Object.entries(details).map(([key, value]) => `${key} ${String(value)}`)
  const mark = target === undefined ? '·' : ok ? '✓' : '✗'
  return `${mark} ${name.padEnd(31)} ${String(ratio).padStart(7)}  ${boundOf(target).padEnd(8)}  ${rest.join(', ')}`
}

function boundOf(target: Target | undefined): string {
  if (target === undefined) return ''
  return 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
