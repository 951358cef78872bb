/**
 * What Rivulet costs beside what cannot be avoided: `npm run bench -- --json`, or `--only stream` for one file of figures.
 * Each file is measured in a process of its own; docs/performance.md says what each figure means.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Result } from './figure.ts'

const { values } = parseArgs({
  options: { only: { type: 'string', multiple: true }, json: { type: 'boolean', default: false } },
})
const all = readdirSync(new URL('figures', import.meta.url)).map((file) => file.replace(/\.ts$/, ''))
const chosen = values.only ?? all
for (const name of chosen) {
  if (!all.includes(name)) throw new Error(`there is no figure ${name}, but: ${all.join(', ')}`)
}

const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length }
if (!values.json) print(Object.values(machine).join(', '))

const bench: Result[] = []
for (const name of chosen) {
  const results = await measured(name)
  bench.push(...results)
  if (!values.json) for (const each of results) print(line(each))
}
if (values.json) print(JSON.stringify({ bench, machine }))

async function measured(name: string): Promise<readonly Result[]> {
  const runner = fileURLToPath(new URL('run-figure.ts', import.meta.url))
  const child = fork(runner, [name], { execArgv: ['--conditions=rivulet-source', '--expose-gc'] })
  let results: readonly Result[] | undefined
  child.once('message', (message: readonly Result[]) => {
    results = message
  })
  const [code] = await once(child, 'exit')
  if (results === undefined) throw new Error(`the figures of ${name} ended with ${code} and no result`)
  return results
}

function line({ name, ratio, target, ok, ...details }: Result): string {
  const bound = 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`
  const rest = Object.entries(details).map(([key, value]) => `${key} ${String(value)}`)
  return `${ok ? '✓' : '✗'} ${name.padEnd(28)} ${String(ratio).padStart(7)}  ${bound.padEnd(8)}  ${rest.join(', ')}`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
