/**
 * Measures the answers of the embedded service: `npm run quality -- --half tuning --misses`, or `--only search` for one set;
 * docs/internals/quality.md explains the sets and the figures. Only misses of the half `tuning` are listed, since `held` must not be tuned for.
 */
import { parseArgs } from 'node:util'
import { measureAnswers } from './answers/measure.ts'
import type { Question } from './answers/question.ts'
import { HALVES, type Half } from './half.ts'
import { readItems } from './items.ts'
import { measureMonitors } from './monitors/measure.ts'
import type { LabelledMonitor } from './monitors/monitor.ts'
import { type Figure, type Measured, reaches } from './report.ts'
import { measureSearch } from './search/measure.ts'
import type { Query } from './search/query.ts'
import { serveInstalled } from './service.ts'

const SETS = ['search', 'answers', 'monitors'] as const
type Set = (typeof SETS)[number]

/** One set, measured over one half. */
interface Result extends Measured {
  readonly set: Set
  readonly half: Half
  readonly items: number
}

const { sets, halves, misses, json } = parseCommandLine()
const results: Result[] = []
for (const set of sets) {
  for (const half of halves) {
    const result = await measure(set, half)
    results.push(result)
    if (!json) printResult(result)
  }
}
if (json) print(JSON.stringify({ quality: results.map(withPrintedMisses) }))

async function measure(set: Set, half: Half): Promise<Result> {
  if (set === 'search') {
    const items = readItems<Query>('search', half)
    await using service = await serveInstalled()
    return { set, half, items: items.length, ...(await measureSearch(service, items)) }
  }
  if (set === 'monitors') {
    const items = readItems<LabelledMonitor>('monitors', half)
    return { set, half, items: items.length, ...(await measureMonitors(items)) }
  }
  const items = readItems<Question>('questions', half)
  await using service = await serveInstalled()
  return { set, half, items: items.length, ...(await measureAnswers(service, items)) }
}

/** Parses the command line. Prints an error and ends where it is not valid. */
function parseCommandLine() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string', multiple: true },
        half: { type: 'string' },
        misses: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
      },
    })
    return {
      sets: values.only?.map((name) => oneOf('--only', SETS, name)) ?? SETS,
      halves: values.half === undefined ? HALVES : [oneOf('--half', HALVES, values.half)],
      misses: values.misses,
      json: values.json,
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}

function oneOf<const Name extends string>(option: string, names: readonly Name[], given: string): Name {
  const name = names.find((one) => one === given)
  if (name === undefined) throw new Error(`${option} takes one of ${names.join(', ')}; got ${given}`)
  return name
}

function withPrintedMisses({ misses: all, ...rest }: Result): Omit<Result, 'misses'> & Partial<Result> {
  return misses && rest.half === 'tuning' ? { ...rest, misses: all } : rest
}

function printResult(result: Result): void {
  print(`${result.set}, ${result.half}: ${result.items} items`)
  for (const figure of result.figures) print(line(figure))
  for (const { id, detail } of withPrintedMisses(result).misses ?? []) print(`    ${id}: ${detail}`)
}

function line(figure: Figure): string {
  const { name, value, of, target } = figure
  const reached = reaches(figure)
  const mark = reached === undefined ? ' ' : reached ? '✓' : '✗'
  const bound = target === undefined ? '' : 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`
  return `  ${mark} ${name.padEnd(45)} ${value.toFixed(3)}  ${bound.padEnd(7)} of ${of}`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
