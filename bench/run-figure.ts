/** Measures one file of figures: `run-figure.ts {name}`. Sends its report to the parent process, and ends with that process. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { SkippedError } from './figure.ts'
import type { Measure, Report } from './figure.ts'

const [name] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'rivulet-bench-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
// Without these handlers, a signal would end the process and leave the folder.
process.once('SIGINT', () => process.exit(1))
process.once('SIGTERM', () => process.exit(1))
process.once('disconnect', () => process.exit())

const report = await measured()
process.send?.(report, () => process.disconnect())

async function measured(): Promise<Report> {
  try {
    const { measure }: { measure: Measure } = await import(`./figures/${name}.ts`)
    return { results: await measure(folder) }
  } catch (error) {
    if (error instanceof SkippedError) return { skipped: error.message }
    process.stderr.write(`${inspect(error)}\n`)
    return { failure: error instanceof Error ? error.message : String(error) }
  }
}
